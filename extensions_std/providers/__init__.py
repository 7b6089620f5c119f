"""Standard providers."""
