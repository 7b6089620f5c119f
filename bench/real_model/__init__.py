"""`just real-model`: a real model on this machine, asked through the command line. See `__main__`."""
