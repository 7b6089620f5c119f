"""Sample extensions, to read and to copy."""
