"""The adapter for editors, driven by the protocol's own client."""
