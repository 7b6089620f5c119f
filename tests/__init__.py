"""Tests of camshaft; a package, so that they can share code by its full name."""
