"""One module a vector family: `run(case_input)` gives the family's output (VECTORS.md section 5).

The runner has expanded the input notation. The process directory is the root of the case's
file tree (fresh and empty), `HOME` the case's home folder (likewise), `TMPDIR` a third one.
The output may hold real paths of these folders; the runner writes `<cwd>`, `<home>` and
`<spill>` (a file in the temporary folder) for them. `<file>` is the module's own to write.
`run` may be async; it then runs under Trio. What it raises is recorded as a crash.
"""
