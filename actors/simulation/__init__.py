"""The simulated world: ports without machine behind them, and their faults."""
