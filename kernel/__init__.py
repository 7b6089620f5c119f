"""What is true: data, reducers, state machines, projections. No await, no clock, no I/O."""
