"""The only place where things happen: Trio, files, processes, clocks, sockets."""
