"""The scenario runner: plays one scenario file against the kernel's public faces and writes its trace."""
