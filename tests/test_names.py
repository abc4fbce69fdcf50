"""
Every public name resolves to what it should, and what is not there says so.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import skyward as sky
from skyward import names
from skyward.errors import NotInstalledError
from skyward.registry import EXTRAS
from tests.distributions import is_installed


def _sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("names.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            words.extend(line.split())
    return found


NAMES = _sections()
PAIRS = [pair.split("=") for pair in NAMES["older"]]


@pytest.mark.parametrize("name", NAMES["core"] + NAMES["members"])
def test_a_public_name_resolves(name: str) -> None:
    """What the documents name is there."""
    attrgetter(name)(sky)


@pytest.mark.parametrize("name", NAMES["core"])
def test_a_public_name_is_documented(name: str) -> None:
    """What can carry a docstring does: modules, classes and functions."""
    value = getattr(sky, name)
    assert not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)) or value.__doc__


@pytest.mark.parametrize("name", NAMES["core"])
def test_a_public_name_is_listed(name: str) -> None:
    """`dir(sky)` offers every public name to an editor."""
    assert name in dir(sky)


@pytest.mark.parametrize("older", [older for older, _ in PAIRS])
def test_an_older_name_is_listed_nowhere(older: str) -> None:
    """Each thing is offered once, under its newer name."""
    assert older not in dir(sky)
    assert older not in sky.__all__


@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_an_older_name_is_the_newer_thing(older: str, newer: str) -> None:
    """An older name stands for the same object as its newer one."""
    assert getattr(sky, newer) is getattr(sky, older)


def test_the_tables_hold_exactly_the_names_of_the_documents() -> None:
    """No name is in the tables alone or in the list alone."""
    extras = {f"sky.{pair.partition('=')[0]}": pair.partition("=")[2] for pair in NAMES["installable"]}
    assert dict(PAIRS) == dict(names.OLDER)
    assert extras == {name: extra for name, extra in EXTRAS.items() if name.count(".") == 1}
    assert {*NAMES["core"]} == {*names.LIVES_IN, *names.MODULES}


@pytest.mark.parametrize("pair", [pair for pair in NAMES["installable"] if is_installed(pair.partition("=")[2])])
def test_a_name_that_is_installed_is_there(pair: str) -> None:
    """A provider with its distribution is found, documented and listed."""
    name = pair.partition("=")[0]
    assert getattr(sky, name).__doc__
    assert name in dir(sky)


@pytest.mark.parametrize("pair", [pair for pair in NAMES["installable"] if not is_installed(pair.partition("=")[2])])
def test_a_name_that_is_not_installed_says_what_to_type(pair: str) -> None:
    """A provider without its distribution raises an error with the command that installs it."""
    name, extra = pair.split("=")
    with pytest.raises(NotInstalledError, match=rf"sky\.{name} .* Type: pip install .*skyward-{extra}"):
        getattr(sky, name)
    assert not hasattr(sky, name)


@pytest.mark.parametrize("name", NAMES["absent"])
def test_what_is_not_built_yet_does_not_exist(name: str) -> None:
    """A name of a later part is no stub: it raises as any unknown attribute does."""
    with pytest.raises(AttributeError, match=rf"{name.rpartition('.')[2]}"):
        attrgetter(name)(sky)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Compte", r"no attribute 'Compte'\. Did you mean sky\.Compute\?$"),
        ("_private", "cannot import name '_private'"),
    ],
)
def test_an_import_of_what_is_not_there_says_the_same(name: str, said: str) -> None:
    """Python itself would drop that, and propose what sounds like it."""
    with pytest.raises(ImportError, match=said) as raised:
        exec(f"from skyward import {name}", {})
    assert name.startswith("_") or getattr(raised.value, "name_from", None) is None


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("Compte", "Compute"), ("function_", "function"), ("computepol", "Compute"), ("image", "Image")],
)
def test_an_unknown_name_offers_the_nearest_one(wrong: str, nearest: str) -> None:
    """A misspelt name is answered with the one that was probably meant."""
    with pytest.raises(AttributeError, match=rf"no attribute '{wrong}'\. Did you mean sky\.{nearest}\?"):
        getattr(sky, wrong)


def test_an_unlike_name_offers_nothing() -> None:
    """Where no name is near, none is offered."""
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzy'\.$"):
        sky.xyzzy  # noqa: B018


def test_a_name_is_offered_once_in_a_traceback() -> None:
    """The interpreter adds no second offer to ours."""
    run = subprocess.run(
        [sys.executable, "-c", "import skyward as sky; sky.Compte"], capture_output=True, text=True, check=False
    )
    assert 1 == run.stderr.count("Did you mean")


def test_probes_of_tools_are_answered_at_once() -> None:
    """A name with a leading underscore is looked for in no table and no plugin."""
    script = "import sys, skyward; hasattr(skyward, '__wrapped__'); print('difflib' in sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert "False\n" == run.stdout


@pytest.mark.parametrize("module", ["skyward.function", "skyward.pool"])
def test_a_submodule_does_not_hide_the_name_it_shares(module: str) -> None:
    """`sky.pool` stays the decorator after `skyward.pool` was imported, in whichever order."""
    script = f"""
import {module}
import skyward as sky
name = {module!r}.split(".")[1]
print(type(getattr(sky, name)).__name__, type(sys.modules[{module!r}]).__name__)
"""
    run = subprocess.run([sys.executable, "-c", f"import sys{script}"], capture_output=True, text=True, check=True)
    assert "function module\n" == run.stdout


def test_the_target_is_the_package() -> None:
    """`sky.sky` is the module, so that `from skyward import sky` gives the same target as `import skyward as sky`."""
    assert sky is sky.sky


def test_a_submodule_can_be_imported_from_the_package() -> None:
    """`from skyward import errors` gives the module, although names are looked up lazily."""
    from skyward import errors

    assert import_module("skyward.errors") is errors


def test_a_star_import_brings_the_public_names() -> None:
    """`from skyward import *` brings what `dir` lists of core, but for what would hide a name of Python itself."""
    space: dict[str, Any] = {}
    exec("from skyward import *", space)
    assert {"dict", "set"} == {*NAMES["core"]} - {*space}


def test_type_checkers_are_told_what_the_tables_say() -> None:
    """The imports under `TYPE_CHECKING` in the package name the same objects as the tables, and no others."""
    told = dict(_told_to_type_checkers())
    tables = {
        **{name: f"{module}.{name}" for name, module in names.LIVES_IN.items()},
        **names.MODULES,
        **{older: f"{names.LIVES_IN[newer]}.{newer}" for older, newer in names.OLDER.items()},
    }
    assert [] == list(difflib.unified_diff(sorted(map(str, tables.items())), sorted(map(str, told.items())), n=0))


def _told_to_type_checkers() -> Iterator[tuple[str, str]]:
    """Yield each name that the package exports to type checkers, and what it stands for."""
    package = ast.parse(Path(sky.__file__ or "").read_text(encoding="utf-8"))
    block = next(
        node for node in package.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    known = {"skyward": "skyward"}
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                known[alias.name] = f"{node.module}.{alias.name}"
                if alias.asname:
                    yield alias.name, known[alias.name]
        elif isinstance(node, ast.Assign):
            yield ast.unparse(node.targets[0]), known[ast.unparse(node.value)]


def test_a_function_runs_here_when_asked_to() -> None:
    """`.local` is on every function, also on those that were wrapped by call."""
    assert 3 == sky.function(len).local("abc")


def test_public_modules_are_modules() -> None:
    """The short names of modules give the modules themselves."""
    assert all(isinstance(getattr(sky, name), ModuleType) for name in names.MODULES)
