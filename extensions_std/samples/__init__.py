"""Sample extensions, to read and to copy: each is one file, loaded with `camshaft -e FILE`, and says first what it keeps and where.

Where to begin: `hello` is the smallest tool, `permission_gate` the smallest gate, `tools` keeps state that follows the
branch, `file_trigger` has a task of its own, `git_checkpoint` uses most of what there is.
"""
