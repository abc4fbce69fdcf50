"""
What `sky.integrations` is: each plugin as a decorator of one function.

    @sky.integrations.torch(backend="nccl")
    @sky.function
    def train(): ...

Only what the plugin, and those that it builds on, do around a task is applied, above `@sky.function` or below it.
What it does to a pool's image, nodes and processes needs `plugins=[...]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

from attrs import frozen

from skyward.errors import ConfigError, PluginError, UsageError
from skyward.plugin import completed, decorated, implements
from skyward.wrapping import alike

__all__ = ["Integration"]


@frozen
class Integration:
    """
    Make decorators that apply a plugin to one function.

    Args:
        name: The plugin's name.
        factory: What makes the plugin.
    """

    name: str
    factory: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        """
        Return a decorator for a function, plain or made by `@sky.function`.

        Args:
            args: As the plugin takes them.
            kwargs: As the plugin takes them.

        Raises:
            UsageError: If the plugin does nothing around a task, or the brackets are missing.
        """
        if len(args) == 1 and not kwargs and (isinstance(args[0], FunctionType) or _is_function(args[0])):
            raise UsageError(
                f"@sky.integrations.{self.name} needs brackets.", hint=f"Write @sky.integrations.{self.name}()."
            )
        plugins = completed([self.factory(*args, **kwargs)])
        if not implements(plugins, "decorate"):
            raise UsageError(
                f"sky.integrations.{self.name} does nothing around a single function.",
                hint=f"Give it to the pool: plugins=[sky.plugins.{self.name}(...)].",
            )
        return partial(_applied, self.name, plugins)


def __getattr__(name: str) -> Any:
    """Return what has a name; an AttributeError says what to type, or what was meant."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from skyward.registry import integration, plugin_factories

    try:
        found = integration(name)
    except ConfigError as error:
        if isinstance(error, AttributeError):
            raise
        raise AttributeError(str(error), name=name) from None
    return Integration(name, found) if name in plugin_factories() else found


def __dir__() -> list[str]:
    """List the decorators, and what else was registered."""
    from skyward.registry import installed

    return sorted({*installed().plugins, *installed().integrations})


def _applied(name: str, plugins: tuple[Any, ...], target: Any) -> Any:
    """Return a function with plugins around its calls; they are asked where the call runs, not here."""
    if _is_function(target):
        return target.wrapped(partial(_applied, name, plugins))
    if not callable(target):
        raise UsageError(f"@sky.integrations.{name}() decorates functions, not {target!r}.")
    return alike(target, partial(decorated, plugins, target), partial(_explained, name, target))


def _is_function(target: object) -> bool:
    """Return whether `@sky.function` made it."""
    return callable(getattr(type(target), "wrapped", None))


@contextmanager
def _explained(name: str, fn: Callable[..., Any]) -> Iterator[None]:
    """Explain which plugin brings a package that is missing where the call runs."""
    try:
        yield
    except (ModuleNotFoundError, PluginError) as error:
        missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        if not isinstance(missing, ModuleNotFoundError) or _passed_through(missing, fn):
            raise
        raise PluginError(
            f"@sky.integrations.{name}() needs {missing.name}, which is not installed where the call runs.",
            plugin=name,
            hook="decorate",
            hint=f"Open the pool with plugins=[sky.plugins.{name}(...)].",
        ) from missing


def _passed_through(error: BaseException, fn: Any) -> bool:
    """Return whether an error came out of a function, or out of what that function wraps."""
    codes = []
    while fn is not None:
        codes.append(getattr(fn, "__code__", None))
        fn = getattr(fn, "__wrapped__", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False
