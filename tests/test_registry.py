"""
What is installed is found through entry points, and what is not says what to type.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

import skyward as sky
from skyward import origin, registry
from skyward.errors import ConfigError, NotInstalledError, PluginError
from skyward.plugins import Plugin
from skyward.providers.local import Local
from skyward.registry import EXTRAS, Registry, read
from tests.distributions import is_installed

Install = Callable[..., Registry]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Install:
    """Return a function that makes modules of these names and texts, and reads their entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(**texts: str) -> Registry:
        points = []
        for name, text in texts.items():
            module = f"distribution_{abs(hash((request.node.nodeid, name)))}"
            (tmp_path / f"{module}.py").write_text("from skyward.hookspecs import hookimpl\n" + textwrap.dedent(text))
            points.append(EntryPoint(name=name, value=module, group="skyward"))
        return read(points)

    return made


ONE = """
@hookimpl
def skyward_plugins():
    return {"one": print}
"""


def test_core_registers_local_as_anybody_would() -> None:
    """What is built in comes through the same hooks as all others."""
    assert ["skyward.providers", "skyward.cli.registered"] == [point.value for point in registry.CORE]
    assert Local is registry.providers()["Local"] is registry.provider("Local") is sky.Local


def test_distributions_are_joined(install: Install) -> None:
    """What two distributions bring stands in one table."""
    found = install(a=ONE, b=ONE.replace("one", "two"))
    assert ["one", "two"] == list(found.plugins)


def test_a_name_registered_twice_is_refused(install: Install) -> None:
    """Two distributions that bring one name are both named, whichever was installed first."""
    with pytest.raises(PluginError, match=r"Plugin 'b' failed in skyward_plugins: 'one' is registered by 'a' already"):
        install(b=ONE, a=ONE)


def test_a_distribution_of_the_same_name_is_refused() -> None:
    """One entry-point name stands for one distribution."""
    points = [EntryPoint(name="torch", value=value, group="skyward") for value in ("one", "two")]
    with pytest.raises(PluginError, match="Two distributions register the name 'torch': one and two"):
        read(points)


def test_what_cannot_be_imported_is_left_out(install: Install) -> None:
    """A broken third party costs a warning that names it, and nothing else."""
    with pytest.warns(RuntimeWarning, match=r"Skyward plugin 'broken' is left out.*ModuleNotFoundError.*nowhere"):
        found = install(a=ONE, broken="import nowhere_to_be_found")
    assert ["one"] == list(found.plugins)


def test_a_hook_that_raises_names_its_distribution(install: Install) -> None:
    """A registration that fails is the distribution's failure."""
    with pytest.raises(PluginError, match="Plugin 'a' failed in skyward_plugins: ZeroDivisionError") as caught:
        install(a=ONE.replace("print", "1 / 0"))
    assert ("a", "skyward_plugins") == (caught.value.plugin, caught.value.hook)


@pytest.mark.parametrize("entry", ['{"a b": print}', '{"_one": print}', '{"one": 3}', "{1: print}"])
def test_names_are_identifiers_of_what_can_be_called(install: Install, entry: str) -> None:
    """What could not be written after `sky.plugins.` is refused."""
    with pytest.raises(PluginError, match="must be an identifier, and what it names must be callable"):
        install(a=ONE.replace('{"one": print}', entry))


COMMANDS = """
from skyward.hookspecs import Command

@hookimpl
def skyward_commands():
    return {"ls": Command(print, summary="List.")}
"""


def test_a_command_registered_twice_is_refused(install: Install) -> None:
    """As everything is; core's own are no exception."""
    with pytest.raises(PluginError, match=r"'b' failed in skyward_commands: 'ls' is registered by 'a' already"):
        install(a=COMMANDS, b=COMMANDS)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ('{"Ls": Command(print, summary="List.")}', "'Ls' must be made of small letters, digits and hyphens"),
        ('{"-x": Command(print, summary="List.")}', "'-x' must be made of"),
        ('{3: Command(print, summary="List.")}', "3 must be made of"),
        ('{"help": Command(print, summary="List.")}', "'help' is answered by `sky` itself"),
        ('{"ls": print}', "'ls' must be a Command, not a builtin_function_or_method"),
        ('{"ls": Command(print, summary=" ")}', "ConfigError: summary must not be blank"),
        ('{"ls": Command(3, summary="List.")}', "ConfigError: A command is run by calling it, and 3 cannot be called"),
    ],
)
def test_what_is_no_command_is_refused(install: Install, wrong: str, reason: str) -> None:
    """The distribution and the reason are named."""
    with pytest.raises(PluginError, match=f"Plugin 'a' failed in skyward_commands: {re.escape(reason)}"):
        install(a=COMMANDS.replace('{"ls": Command(print, summary="List.")}', wrong))


def test_a_module_without_hooks_is_refused(install: Install) -> None:
    """An entry point that registers nothing is a mistake."""
    with pytest.raises(PluginError, match=r"'a' is no plugin: it has no function that is marked @hookimpl"):
        install(a="")


def test_a_hook_wrapper_is_refused(install: Install) -> None:
    """Hooks are asked one by one, so that there is nothing to wrap."""
    with pytest.raises(PluginError, match=r"skyward_plugins .* without wrapper= and specname="):
        install(a=ONE.replace("@hookimpl", "@hookimpl(wrapper=True)").replace("return", "yield"))


def test_an_entry_point_names_a_module(install: Install) -> None:
    """A class or function as an entry point is refused."""
    with pytest.raises(PluginError, match="entry point of 'a', builtins:print, must name a module"):
        read([EntryPoint(name="a", value="builtins:print", group="skyward")])


def test_packages_of_distributions_are_known(install: Install) -> None:
    """Nodes get the packages that plugins are pickled by reference to, core's own apart."""
    assert () == read(registry.CORE).packages
    assert [True] == [name.startswith("distribution_") for name in install(a=ONE).packages]


@pytest.mark.parametrize("full", sorted(full for full, extra in EXTRAS.items() if not is_installed(extra)))
def test_what_is_not_installed_says_what_to_type(full: str) -> None:
    """A known name without its distribution raises the command that installs it."""
    _, *rooms, name = full.split(".")
    home = getattr(sky, rooms[0]) if rooms else sky
    command = rf"{full} comes with .* Type: {re.escape(origin.install(EXTRAS[full]))}"
    with pytest.raises(NotInstalledError, match=command):
        getattr(home, name)
    assert not hasattr(home, name)


@pytest.mark.parametrize(
    ("look_up", "wrong", "message"),
    [
        (registry.plugin, "tourch", "There is no plugin 'tourch'. Did you mean sky.plugins.torch?"),
        (registry.provider, "Lokal", "There is no provider 'Lokal'. Did you mean sky.Local?"),
        (registry.provider, "aws", "There is no provider 'aws'. Did you mean sky.AWS?"),
        (registry.integration, "kears", "There is no integration 'kears'. Did you mean sky.integrations.keras?"),
        (registry.plugin, "xyzzy", "There is no plugin 'xyzzy'."),
    ],
)
def test_an_unknown_name_offers_the_nearest(look_up: Callable[[str], object], wrong: str, message: str) -> None:
    """A misspelt name is answered with the one that was probably meant, installed or not."""
    with pytest.raises(ConfigError) as caught:
        look_up(wrong)
    assert message == str(caught.value)


@pytest.mark.parametrize("home", [sky.plugins, sky.integrations])
def test_a_wrong_attribute_is_an_attribute_error(home: ModuleType) -> None:
    """Tools that probe for attributes get the error that they expect."""
    with pytest.raises(AttributeError, match=r"Did you mean sky\.\w+\.torch\?"):
        home.tourch  # noqa: B018
    assert not hasattr(home, "__wrapped__")


def test_the_public_modules_list_what_is_installed() -> None:
    """`dir` gives plugins that can be used now, and no others."""
    assert "Plugin" in dir(sky.plugins)
    for name, extra in registry.EXTRAS.items():
        room, _, plugin = name.removeprefix("sky.").partition(".")
        if room == "plugins":
            assert is_installed(extra) == (plugin in dir(sky.plugins)), plugin


def test_the_plugin_class_is_in_both_places() -> None:
    """`skyward.plugins.Plugin` and `sky.Plugin` are one class."""
    assert sky.Plugin is Plugin


def test_devices_of_plugins_are_found_when_a_name_is_unknown(tmp_path: Path) -> None:
    """A name that the catalogue lacks is looked for in installed distributions before it is refused."""
    (tmp_path / "chips.py").write_text(
        "from skyward.hookspecs import Device, Variant, hookimpl\n"
        "@hookimpl\n"
        "def skyward_accelerators():\n"
        '    return [Device(name="X1", manufacturer="AMD", architecture="X", variants=[Variant(memory_gb=96)])]\n'
    )
    facts = tmp_path / "chips-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: chips\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[skyward]\nchips = chips\n")
    script = "import sys; sys.path.insert(0, sys.argv[1]); import skyward as sky; print(sky.Spec(accelerator='X1:2'))"
    run = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    assert "X1" in run.stdout
