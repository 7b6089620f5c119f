"""Measurements of camshaft through its public faces."""
