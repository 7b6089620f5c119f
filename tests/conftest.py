"""Settings that hold for every test."""

from hypothesis import settings

# The same examples in every run: a failure that nobody can repeat helps nobody. No deadline: two cores, shared.
settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")
