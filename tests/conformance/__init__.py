"""The conformance suites: recorded scenarios and vectors, run against camshaft."""
