"""
What the installed distributions bring: providers, further public names, plugins, integrations, accelerators, commands.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.errors import ConfigError, NotInstalledError, PluginError
from skyward.hook_callers import GROUP, hook_callers
from skyward.model.cli_command import Command
from skyward.model.fields.setting import nearest
from skyward.origin import install
from skyward.plugin import Plugin, name_of

if TYPE_CHECKING:
    from pluggy import PluginManager

    from skyward.model.accelerators.device import Device

__all__ = [
    "BESIDES",
    "EXTRAS",
    "Registry",
    "installed",
    "integration",
    "named",
    "names",
    "plugin",
    "plugin_factories",
    "plugins_checked",
    "provider",
    "providers",
    "read",
    "with_disks",
]

CORE = tuple(
    EntryPoint(name=name, value=module, group=GROUP)
    for name, module in (("core", "skyward.providers"), ("sky", "skyward.cli.registered"))
)
"""How core registers what it brings itself: through the door that everybody uses."""

_COMMAND = re.compile("[a-z][a-z0-9-]*")
_ANSWERED = ("help", "version")
"""Commands that `sky` answers before it looks for any."""

_PREFIXES = {"provider": "sky.", "plugin": "sky.plugins.", "integration": "sky.integrations."}
"""What is written in front of a name of each kind."""

EXTRAS: Mapping[str, str] = {
    **{f"sky.{name}": name.lower() for name in "AWS Container DigitalOcean RunPod Verda VastAI".split()},
    **{
        f"sky.{room}.{name}": name
        for name in "torch jax keras tensorflow accelerate transformers joblib sklearn mig mps cuml otel".split()
        for room in ("plugins", "integrations")
    },
    "sky.Storage": "storage",
    "sky.storage": "storage",
    "sky.integrations.JoblibPool": "joblib",
    "sky.integrations.ScikitLearnPool": "sklearn",
    "sky.integrations.joblib_backend": "joblib",
    "sky.integrations.sklearn_backend": "sklearn",
}
"""Extra of the `skyward` distribution that brings a name which core does not have."""

BESIDES = frozenset({"sky.Storage", "sky.storage"})
"""Those of them that are neither providers nor plugins."""


@frozen(kw_only=True)
class Registry:
    """
    Hold what was registered.

    Args:
        providers: Classes of providers by name.
        names: What `sky` has besides, by name.
        plugins: What makes each plugin, by name.
        integrations: What `sky.integrations` holds besides the plugins.
        accelerators: Devices to add to the catalogue.
        commands: Commands of `sky` by name.
        packages: Import packages of the distributions, core's left out; nodes need them to unpickle plugins.
    """

    providers: Mapping[str, Callable[..., Any]] = field(factory=dict)
    names: Mapping[str, Any] = field(factory=dict)
    plugins: Mapping[str, Callable[..., Any]] = field(factory=dict)
    integrations: Mapping[str, Any] = field(factory=dict)
    accelerators: tuple[Device, ...] = ()
    commands: Mapping[str, Command] = field(factory=dict)
    packages: tuple[str, ...] = ()


def read(found: Iterable[EntryPoint]) -> Registry:
    """
    Load distributions, and ask each what it brings.

    Args:
        found: The entry points, one for each distribution.

    Raises:
        PluginError: If two have one name, one implements a hook wrongly or fails in it, or two register one name.
    """
    modules = _loaded(found)
    providers: dict[str, Any] = {}
    names: dict[str, Any] = {}
    plugins: dict[str, Any] = {}
    integrations: dict[str, Any] = {}
    accelerators: list[Device] = []
    commands: dict[str, Command] = {}
    owners: dict[tuple[str, str], str] = {}
    for owner, module in modules.items():
        hooks = hook_callers(module, owner)
        tables = {"providers": providers, "names": names, "plugins": plugins, "integrations": integrations}
        for hook, table in tables.items():
            for name, value in dict(_registered(hooks, owner, hook) or {}).items():
                usable = callable(value) or (hook == "names" and isinstance(value, ModuleType))
                if not (isinstance(name, str) and name.isidentifier() and not name.startswith("_") and usable):
                    raise _wrong(owner, hook, f"{name!r} must be an identifier, and what it names must be callable")
                # Plugins and integrations stand side by side in `sky.integrations`, providers and names in `sky`.
                home = "sky" if hook in ("providers", "names") else "plugins"
                other = owners.setdefault((home, name), owner)
                if name in table or other != owner:
                    raise _wrong(owner, hook, f"{name!r} is registered by {other!r} already")
                table[name] = value
        accelerators += _registered(hooks, owner, "accelerators") or ()
        for name, command in dict(_registered(hooks, owner, "commands") or {}).items():
            _check_command(owner, name, command)
            other = owners.setdefault(("commands", name), owner)
            if other != owner:
                raise _wrong(owner, "commands", f"{name!r} is registered by {other!r} already")
            commands[name] = command
    packages = {module.__name__.partition(".")[0] for module in modules.values()} - {__name__.partition(".")[0]}
    return Registry(
        providers=providers,
        names=names,
        plugins=plugins,
        integrations=integrations,
        accelerators=tuple(accelerators),
        commands=commands,
        packages=tuple(sorted(packages)),
    )


@cache
def installed() -> Registry:
    """
    Return what the installed distributions bring; they are loaded the first time, and their devices catalogued.

    Raises:
        PluginError: As `read`.
    """
    from skyward.model.accelerators.catalogue import CATALOGUE

    registry = read((*CORE, *entry_points(group=GROUP)))
    for device in registry.accelerators:
        try:
            CATALOGUE.register(device)
        except ConfigError as error:
            raise PluginError(f"A plugin registers an accelerator that cannot be: {error}") from error
    return registry


def providers() -> Mapping[str, Callable[..., Any]]:
    """
    Return the classes of installed providers by name.

    >>> "Local" in providers()
    True
    """
    return installed().providers


def with_disks() -> tuple[str, ...]:
    """
    Return the names of installed providers that attach disks of the user's, see `sky.Disk`.

    >>> "Local" in with_disks()
    False
    """
    found = []
    for name, make in sorted(providers().items()):
        # One that cannot be made without settings has to be tried by the user.
        with contextlib.suppress(Exception):
            if make().skyward_facts().disks:
                found.append(name)
    return tuple(found)


def names() -> Mapping[str, Any]:
    """Return what installed distributions add to `sky` besides providers, by name."""
    return installed().names


def named(name: str) -> Any:
    """
    Return what a distribution adds to `sky`: the class of a provider, or another public name.

    Args:
        name: As it is written after `sky.`.

    Raises:
        NotInstalledError: If it comes with a distribution that is not installed; the message has the command.
        ConfigError: If there is none of this name; the nearest is offered.

    >>> named("Local").__name__
    'Local'
    """
    return _get({**installed().names, **installed().providers}, "provider", name)


def plugin_factories() -> Mapping[str, Callable[..., Any]]:
    """Return what makes each installed plugin, by name."""
    return installed().plugins


def provider(name: str) -> Callable[..., Any]:
    """
    Return the class of a provider.

    Args:
        name: As it is written after `sky.`.

    Raises:
        NotInstalledError: If it comes with a distribution that is not installed; the message has the command.
        ConfigError: If there is none of this name; the nearest is offered.
    """
    factory: Callable[..., Any] = _get(installed().providers, "provider", name)
    return factory


def plugin(name: str) -> Callable[..., Any]:
    """
    Return what makes a plugin.

    Args:
        name: As it is written after `sky.plugins.`.

    Raises:
        NotInstalledError: If it comes with a distribution that is not installed; the message has the command.
        ConfigError: If there is none of this name; the nearest is offered.

    >>> plugin("tourch")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: There is no plugin 'tourch'. Did you mean sky.plugins.torch?
    """
    factory: Callable[..., Any] = _get(installed().plugins, "plugin", name)
    return factory


def integration(name: str) -> Any:
    """
    Return what makes a plugin, or what was registered for `sky.integrations` besides the plugins.

    Args:
        name: As it is written after `sky.integrations.`.

    Raises:
        NotInstalledError: If it comes with a distribution that is not installed; the message has the command.
        ConfigError: If there is none of this name; the nearest is offered.
    """
    return _get({**installed().plugins, **installed().integrations}, "integration", name)


def plugins_checked(plugins: Iterable[Any]) -> None:
    """
    Refuse what is no plugin, or implements a hook wrongly.

    Args:
        plugins: As in `plugins=[...]`.

    Raises:
        ConfigError: If two have one name.
        PluginError: If one has no hook at all, one that does not exist, or one with arguments it does not get.
    """
    seen: set[str] = set()
    for each in plugins:
        name = name_of(each)
        if name in seen:
            raise ConfigError(f"plugins holds {name!r} twice.", hint="Leave one of them out.")
        seen.add(name)
        if not isinstance(each, Plugin):
            hook_callers(each, name)


def _loaded(found: Iterable[EntryPoint]) -> dict[str, ModuleType]:
    """Return the module of each entry point by its name, in the order of names."""
    points: dict[str, EntryPoint] = {}
    for point in found:
        other = points.setdefault(point.name, point)
        if other.value != point.value:
            raise PluginError(
                f"Two distributions register the name {point.name!r}: {other.value} and {point.value}.",
                plugin=point.name,
                hint="Uninstall one of them.",
            )
    modules = {}
    for name, point in sorted(points.items()):
        try:
            module = point.load()
        except Exception as error:
            if point in CORE:
                raise
            warnings.warn(
                f"The Skyward plugin {name!r} is left out, because {point.value} cannot be imported: "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
            continue
        if not isinstance(module, ModuleType):
            raise PluginError(f"The entry point of {name!r}, {point.value}, must name a module.", plugin=name)
        modules[name] = module
    return modules


def _registered(hooks: PluginManager, owner: str, hook: str) -> Any:
    """Return what one distribution answers to a hook that registers; None if it has none."""
    for implementation in getattr(hooks.hook, f"skyward_{hook}").get_hookimpls():
        try:
            return implementation.function()
        except Exception as error:
            raise _wrong(owner, hook, f"{type(error).__name__}: {error}") from error
    return None


def _check_command(owner: str, name: object, command: object) -> None:
    """Refuse what cannot be typed, or run."""
    if not (isinstance(name, str) and _COMMAND.fullmatch(name)):
        raise _wrong(owner, "commands", f"{name!r} must be made of small letters, digits and hyphens")
    if name in _ANSWERED:
        raise _wrong(owner, "commands", f"{name!r} is answered by `sky` itself")
    if not isinstance(command, Command):
        raise _wrong(owner, "commands", f"{name!r} must be a Command, not a {type(command).__name__}")


def _wrong(owner: str, hook: str, reason: str) -> PluginError:
    """Return the error that blames a distribution."""
    return PluginError(f"Plugin {owner!r} failed in skyward_{hook}: {reason}.", plugin=owner, hook=f"skyward_{hook}")


def _get(table: Mapping[str, Any], kind: str, name: str) -> Any:
    """Return an entry of a table, or say what to type to get it."""
    if name in table:
        return table[name]
    prefix = _PREFIXES[kind]
    extra = EXTRAS.get(f"{prefix}{name}")
    if extra is not None:
        raise NotInstalledError(
            f"{prefix}{name} comes with a distribution that is not installed.",
            hint=f"Type: {install(extra)}",
        )
    rest = (full.removeprefix(prefix) for full in EXTRAS if full.startswith(prefix))
    meant = nearest(name, {*table, *(known for known in rest if "." not in known)})
    raise ConfigError(f"There is no {kind} {name!r}.", hint=f"Did you mean {prefix}{meant}?" if meant else None)
