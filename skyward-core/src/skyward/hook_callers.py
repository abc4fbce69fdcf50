"""
The hooks that a module, provider or plugin implements, checked against their specifications.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from skyward.errors import PluginError

if TYPE_CHECKING:
    from pluggy import PluginManager

__all__ = ["GROUP", "hook_callers"]

GROUP = "skyward"
"""Name of the group of entry points, and of the marks on hooks."""


def hook_callers(implementation: object, name: str) -> PluginManager:
    """
    Return a manager that knows only the hooks of one module, provider or plugin.

    Args:
        implementation: The module, or the value whose class has the hooks as methods.
        name: What errors call it.

    Raises:
        PluginError: If it has no hook, one that does not exist, or one with arguments that the hook has not.
    """
    from pluggy import PluginManager, PluginValidationError

    from skyward import hookspecs

    manager = PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    hooks = _marked(implementation)
    if not hooks:
        raise PluginError(
            f"{name!r} is no plugin: it has no function that is marked @hookimpl.",
            plugin=name,
            hint="skyward.hookspecs lists the hooks.",
        )
    try:
        # Only the marked functions are registered: a value may be unhashable, equal to another, or have properties that
        # must not be looked at.
        manager.register(SimpleNamespace(**hooks), name)
        manager.check_pending()
    except PluginValidationError as error:
        raise PluginError(f"{name!r} implements a hook wrongly: {error}", plugin=name) from error
    return manager


def _marked(implementation: object) -> dict[str, Any]:
    """Return the functions marked as hooks, by name."""
    # Methods are found on the class, so that no property of a value is run.
    home = implementation if isinstance(implementation, ModuleType) else type(implementation)
    found: dict[str, Any] = {}
    for name in dir(home):
        value = getattr(home, name, None)
        # Modules may look for what they are asked for: `import skyward as sky` would look through the registry.
        options = None if isinstance(value, ModuleType) else getattr(value, "skyward_impl", None)
        if not isinstance(options, dict):
            continue
        if options["wrapper"] or options["hookwrapper"] or options["specname"]:
            raise PluginError(
                f"{name} of {implementation!r} must be marked @hookimpl without wrapper= and specname=.",
                hook=name,
            )
        found[name] = getattr(implementation, name)
    return found
