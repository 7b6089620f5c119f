"""What an agent can do out of the box: tools, providers, frontends."""
