"""Real implementations of the ports of `actors/world.py`."""
