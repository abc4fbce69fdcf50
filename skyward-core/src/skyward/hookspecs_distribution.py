"""
The hooks of a distribution: functions of the module that its entry point names, which register what it brings.

`skyward.hookspecs` has them and all others, and is what to import from.
"""

# mypy: disable-error-code="empty-body"
# A hook has no body of its own.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from skyward.model.accelerators.device import Device
    from skyward.model.cli_command import Command

hookspec = HookspecMarker("skyward")
hookimpl = HookimplMarker("skyward")


@hookspec
def skyward_providers() -> Mapping[str, Callable[..., Any]]:
    """
    Register providers.

    When: once, before the first name is looked up that core does not have.
    Runs on: the client.

    Returns:
        Their classes by name. The tables of all distributions are joined; a name used twice is a PluginError.

    Example: `return {"SampleCloud": SampleCloud}` makes `sky.SampleCloud`.
    Since: 0.1
    """


@hookspec
def skyward_plugins() -> Mapping[str, Callable[..., Any]]:
    """
    Register plugins.

    When: once, before the first name is looked up that core does not have.
    Runs on: the client.

    Returns:
        What makes each of them, by name; a class or a function. Joined as providers are.

    Example: `return {"torch": torch}` makes `sky.plugins.torch(...)` and `@sky.integrations.torch(...)`.
    Since: 0.1
    """


@hookspec
def skyward_integrations() -> Mapping[str, Any]:
    """
    Register what `sky.integrations` holds besides the plugins' decorators.

    When: once, before the first name is looked up that core does not have.
    Runs on: the client.

    Returns:
        Classes and functions by name. Joined as providers are, and a name of a plugin cannot be used again.

    Example: `return {"JoblibPool": JoblibPool}` makes `sky.integrations.JoblibPool`.
    Since: 0.1
    """


@hookspec
def skyward_names() -> Mapping[str, Any]:
    """
    Register public names of `sky` that are no providers.

    When: once, before the first name is looked up that core does not have.
    Runs on: the client.

    Returns:
        Classes, functions and modules by name. Joined as providers are, and a name of a provider cannot be used again.

    Example: `return {"Storage": Storage, "storage": presets}` makes `sky.Storage` and `sky.storage`.
    Since: 0.1
    """


@hookspec
def skyward_accelerators() -> Iterable[Device]:
    """
    Register accelerators that the catalogue lacks.

    When: once, before the first name is looked up that core does not have.
    Runs on: the client.

    Returns:
        The devices. All are added to the catalogue; a spelling that means two devices is a PluginError.

    Example: `return [Device(name="X1", manufacturer="AMD", architecture="X", variants=[Variant(memory_gb=96)])]`
    Since: 0.1
    """


@hookspec
def skyward_commands() -> Mapping[str, Command]:
    """
    Register commands of `sky`.

    When: once, when `sky` is typed with a command that core does not have, or lists all.
    Runs on: the client.

    Returns:
        The commands by the name they are typed with: small letters, digits and hyphens. Joined as providers are; the
        names of core's own commands cannot be used again.

    Example: `return {"budget": Command(show, summary="Show what was spent.", arguments=lambda parser: ...)}`
    Since: 0.1
    """
