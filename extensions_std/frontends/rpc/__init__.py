"""RPC mode: commands of a client on standard input, answers and events on standard output."""
