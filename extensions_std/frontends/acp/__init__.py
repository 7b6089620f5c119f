"""The Agent Client Protocol on standard streams: `camshaft acp`, for editors (`design/acp.md`)."""
