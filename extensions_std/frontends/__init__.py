"""Standard frontends."""
