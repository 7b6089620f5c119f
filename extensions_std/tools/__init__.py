"""Standard tools."""
