"""Importing extensions: which module an import means, what a second loading evaluates, and that nothing stays behind.

Extensions here note what they see: `api.note(value)`.
"""

import os
import sys
from pathlib import Path

import pytest

from camshaft.actors.extension_modules import MODULE_PREFIX
from camshaft.actors.host import ExtensionSource, InstalledExtension
from tests.actors.extensions_on_disk import Generations, loaded, with_generations, write

NOTE = "def setup(api):\n    api.note(VALUE)\n"
HELPER = "VALUE = {!r}\n"


def notes(import_line: str, value: str = "VALUE") -> str:
    """An extension that imports something and notes a value of it."""
    return f"{import_line}\ndef setup(api):\n    api.note({value})\n"


def source(*parts: object) -> ExtensionSource:
    return ExtensionSource(path=os.path.join(*[str(part) for part in parts]))


# -- which module an import means ------------------------------------------------------------


IMPORTS = {
    "relative": "from .helper import VALUE",
    "module of the package": "from . import helper; VALUE = helper.VALUE",
    "plain": "import helper; VALUE = helper.VALUE",
    "plain from": "from helper import VALUE",
    "plain as": "import helper as h; VALUE = h.VALUE",
    "plain star": "from helper import *",
    "plain of a package": "import deep.inner; VALUE = deep.inner.VALUE",
    "relative of a package": "from .deep.inner import VALUE",
    "relative of a package, star": "from .deep import *; VALUE = inner.VALUE",
    "of a folder that is no package": "from plain_folder.inner import VALUE",
    "by the import system": "import importlib; VALUE = importlib.import_module('.helper', __package__).VALUE",
    "in a function": "VALUE = (lambda: __import__('helper').VALUE)()",
}
MODULES = {
    "helper.py": HELPER.format("own"),
    "deep/__init__.py": "__all__ = ['inner']\n",
    "deep/inner.py": "from ..helper import VALUE\n",
    "plain_folder/inner.py": "import helper\nVALUE = helper.VALUE\n",
}


@pytest.mark.rule("EXT-14")
@pytest.mark.parametrize("line", IMPORTS.values(), ids=IMPORTS)
@pytest.mark.parametrize("kind", ["package", "listed", "alone"])
def test_the_modules_of_an_extension_import_each_other(tmp_path: Path, line: str, kind: str) -> None:
    name = {"package": "my_ext/__init__.py", "listed": "my_ext/main.py", "alone": "my_ext/main.py"}[kind]
    write(tmp_path / "my_ext", MODULES)
    write(tmp_path, {name: notes(line)})
    write(tmp_path / "my_ext", {"pyproject.toml": "[tool.camshaft]\nextensions = ['main.py']\n"} if kind == "listed" else {})

    noted = loaded(source(tmp_path, name if kind == "alone" else "my_ext"))

    assert noted == (["own"], [])


@pytest.mark.rule("EXT-14")
def test_a_folder_extension_may_use_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, {"my_ext/__init__.py": notes("from my_ext.a import VALUE"), "my_ext/a.py": HELPER.format("own")})

    assert loaded(source(tmp_path, "my_ext")) == (["own"], [])


@pytest.mark.rule("EXT-14")
def test_listed_files_of_one_folder_share_their_modules_also_in_src(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[tool.camshaft]\nextensions = ['./src/a.py', './src/deep.er/b.py']\n",
        "src/a.py": "import shared\nshared.SEEN.append('a')\ndef setup(api): api.note(shared.SEEN)\n",
        "src/deep.er/b.py": "from src.shared import SEEN\nSEEN.append('b')\ndef setup(api): api.note(SEEN)\n",
        "src/shared.py": "SEEN = []\n",
    }

    assert loaded(source(write(tmp_path / "ext", files))) == (["['a']", "['a', 'b']"], [])


@pytest.mark.rule("EXT-14")
def test_equally_named_modules_of_two_extensions_never_meet(tmp_path: Path) -> None:
    lazy = "def setup(api):\n    import helper\n    from . import helper as other\n    api.note(helper.VALUE + other.VALUE)\n"
    write(tmp_path, {"one/__init__.py": lazy, "one/helper.py": HELPER.format("1")})
    write(tmp_path, {"two/__init__.py": lazy, "two/helper.py": HELPER.format("2")})

    assert loaded(source(tmp_path, "one"), source(tmp_path, "two")) == (["11", "22"], [])
    assert "helper" not in sys.modules


@pytest.mark.rule("EXT-14")
def test_in_a_folder_of_files_installed_modules_come_before_neighbours_and_in_a_package_own_ones_do(tmp_path: Path) -> None:
    trap = {"trio.py": "raise ValueError('the wrong trio')\n", "json.py": "raise ValueError('the wrong json')\n"}
    asks = notes("import json, trio, helper", "json.dumps(trio.__name__ + helper.VALUE)")
    write(tmp_path / "files", {**trap, "asks.py": asks, "helper.py": HELPER.format("!")})
    write(
        tmp_path / "package",
        {"__init__.py": notes("import json, trio", "json.dumps(trio.OWN)"), "trio.py": "OWN = 'own'\n", "json.py": trap["json.py"]},
    )

    assert loaded(source(tmp_path, "files", "asks.py"), source(tmp_path, "package")) == (['"trio!"', '"own"'], [])


HOSTILE = {
    "imports itself": (notes("import asks"), ["VALUE"]),
    "puts something else in its place": (
        "import sys, types\nother = types.SimpleNamespace(setup=lambda api: api.note('other'))\nsys.modules[__name__] = other\n",
        ["other"],
    ),
    "takes itself out": ("import sys\ndel sys.modules[__name__]\ndef setup(api): api.note('there')\n", ["there"]),
    "prints": ("print('noise')\ndef setup(api): print('more'); api.note('there')\n", ["there"]),
    "starts a thread": (
        "import threading\nSEEN = []\nt = threading.Thread(target=lambda: SEEN.append(1))\nt.start()\nt.join()\n"
        "def setup(api): api.note(SEEN)\n",
        ["[1]"],
    ),
    "has data classes": (
        "from __future__ import annotations\nimport dataclasses, typing, pickle\n"
        "@dataclasses.dataclass\nclass A:\n    b: typing.ClassVar[int] = 1\n    c: int = 2\n"
        "def setup(api): api.note([typing.get_type_hints(A)['c'].__name__, pickle.loads(pickle.dumps(A())).c])\n",
        ["['int', 2]"],
    ),
}


@pytest.mark.parametrize(("text", "noted"), HOSTILE.values(), ids=HOSTILE)
def test_an_odd_module_loads_all_the_same(tmp_path: Path, text: str, noted: list[str]) -> None:
    write(tmp_path, {"asks.py": f"{text}\nVALUE = 'VALUE'\n"})

    assert loaded(source(tmp_path, "asks.py")) == (noted, [])


NAMES = ["with space.py", "über.py", "1st.py", "a.b.c.py", "class.py", "'quoted'.py"]


@pytest.mark.rule("EXT-3")
@pytest.mark.parametrize("name", NAMES)
def test_a_file_may_be_called_anything(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: notes("from . import helper", "helper.VALUE"), "helper.py": HELPER.format("own")})

    assert loaded(source(tmp_path, name)) == (["own"], [])


# -- what goes wrong ---------------------------------------------------------------------------

BROKEN = {
    "a helper raises": ("import helper", "x = 1\nraise ValueError('bad')\n", "ValueError: bad ({folder}/helper.py, line 2)"),
    "a helper's syntax": ("import helper", "x = 1\nx = (\n", "'(' was never closed ({folder}/helper.py, line 2)"),
    "a helper lacks a module": (
        "from . import helper",
        "\nimport no_such_module\n",
        "ModuleNotFoundError: No module named 'no_such_module' ({folder}/helper.py, line 2)",
    ),
    "a missing helper": ("import helper.x", "", "ModuleNotFoundError: No module named 'helper.x' ({folder}/main.py, line 1)"),
    "an exit": (
        "import helper",
        "import sys\nsys.exit(3)\n",
        "ImportError: the module called sys.exit(3) while it was imported ({folder}/helper.py, line 2)",
    ),
    "a loop of its own": (
        "import trio\ntrio.run(trio.sleep, 0)",
        "",
        "RuntimeError: Attempted to call run() from inside a run() ({folder}/main.py, line 2)",
    ),
    "a null character": ("x = '\0'", "", "source code string cannot contain null bytes ({folder}/main.py)"),
}


@pytest.mark.rule("EXT-25", "EXT-14")
@pytest.mark.parametrize(("line", "helper", "error"), BROKEN.values(), ids=BROKEN)
def test_an_error_names_file_and_line_and_what_failed_is_forgotten(tmp_path: Path, line: str, helper: str, error: str) -> None:
    write(tmp_path, {"main.py": notes(line), "helper.py": helper})
    before = sorted(sys.modules)

    _noted, errors = loaded(source(tmp_path, "main.py"))

    assert [(path, text.replace("SyntaxError: ", "").replace("ValueError: source", "source")) for path, text in errors] == [
        (f"{tmp_path}/main.py", f"Failed to load extension: {error.format(folder=tmp_path)}")
    ]
    assert sorted(sys.modules) == before


def test_an_interrupt_while_importing_goes_through_and_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "import helper\nraise KeyboardInterrupt\n", "helper.py": ""})
    before = sorted(sys.modules)

    with pytest.raises(BaseExceptionGroup) as caught:
        loaded(source(tmp_path, "main.py"))

    assert caught.value.subgroup(KeyboardInterrupt) is not None
    assert sorted(sys.modules) == before


def test_a_file_that_is_no_module_says_what_was_expected(tmp_path: Path) -> None:
    write(tmp_path, {"notes.txt": "hello"})

    _noted, errors = loaded(source(tmp_path, "notes.txt"))

    assert [text for _path, text in errors] == [
        f"Failed to load extension: ImportError: '{tmp_path}/notes.txt' is no Python file; expected NAME.py or a folder with __init__.py"
        f" ({tmp_path}/notes.txt)"
    ]


# -- what a second loading evaluates -------------------------------------------------------------

COUNTING = "import helper\nCALLS = []\ndef setup(api):\n    CALLS.append(1)\n    api.note([helper.VALUE, len(CALLS)])\n"


@pytest.mark.rule("EXT-28")
def test_a_replacement_calls_the_factory_of_the_same_module_and_a_reload_or_another_folder_evaluates_it_anew(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": COUNTING, "helper.py": HELPER.format("1")})

    async def lives(generations: Generations) -> list[list[str]]:
        seen = [(await generations.load(source(tmp_path, "main.py"))).noted()]
        write(tmp_path, {"helper.py": HELPER.format("2")})
        seen.append((await generations.load(source(tmp_path, "main.py"))).noted())
        generations.modules.clear()
        seen.append((await generations.load(source(tmp_path, "main.py"))).noted())
        write(tmp_path, {"helper.py": HELPER.format("3")})
        seen.append((await generations.load(source(tmp_path, "main.py"), cwd=str(tmp_path))).noted())
        return seen

    assert with_generations(lives) == [["['1', 1]"], ["['1', 2]"], ["['2', 1]"], ["['3', 1]"]]


@pytest.mark.rule("EXT-28")
def test_an_installed_extension_is_evaluated_anew_after_a_reload(tmp_path: Path) -> None:
    name = f"installed_for_test_{os.getpid()}"
    write(
        tmp_path,
        {
            f"{name}/__init__.py": "",
            f"{name}/ext.py": "class Face:\n    @staticmethod\n    def begin(api): api.note('begun')\nCALLS = []\n",
        },
    )
    entry = InstalledExtension(name="x", distribution="d", module=f"{name}.ext", attribute="Face.begin")

    async def lives(generations: Generations) -> list[object]:
        sys.path.append(str(tmp_path))
        seen: list[object] = []
        for again in (False, False, True):
            if again:
                generations.modules.clear()
            await generations.load(entry)
            seen.append((generations.noted(), id(sys.modules[f"{name}.ext"].CALLS)))
        sys.path.remove(str(tmp_path))
        return seen

    first, second, third = with_generations(lives)

    assert first == second
    assert first[0] == third[0] == ["begun"]
    assert first[1] != third[1]


def test_many_reloads_leave_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": COUNTING, "helper.py": HELPER.format("1"), "ext/__init__.py": NOTE.replace("VALUE", "1")})
    before = (sorted(sys.modules), list(sys.path), list(sys.meta_path), sorted(sys.path_importer_cache))

    async def lives(generations: Generations) -> int:
        for _ in range(20):
            await generations.load(source(tmp_path, "main.py"), source(tmp_path, "ext"))
            generations.modules.clear()
        await generations.load(source(tmp_path, "main.py"), source(tmp_path, "ext"))
        return len([name for name in sys.modules if name.startswith(MODULE_PREFIX)])

    assert with_generations(lives) == 4
    assert (sorted(sys.modules), list(sys.path), list(sys.meta_path), sorted(sys.path_importer_cache)) == before
    assert sorted(each.name for each in tmp_path.rglob("__pycache__")) == []


def test_a_change_of_the_same_length_within_the_same_second_is_seen(tmp_path: Path) -> None:
    async def lives(generations: Generations) -> list[str]:
        seen = []
        for number in range(3):
            write(tmp_path, {"main.py": notes("import helper", "helper.VALUE"), "helper.py": HELPER.format(number)})
            generations.modules.clear()
            seen += (await generations.load(source(tmp_path, "main.py"))).noted()
        return seen

    assert with_generations(lives) == ["0", "1", "2"]
