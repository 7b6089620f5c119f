"""The stores behind the log port."""
