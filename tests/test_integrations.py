"""
A plugin as a decorator of one function: above `@sky.function`, below it, and without it.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import pytest

import skyward as sky
from skyward.errors import PluginError, UsageError
from skyward.integrations import Integration
from skyward.plugin import Plugin


def shouting(mark: str = "!") -> Plugin:
    """Return a plugin that raises the voice of results."""
    return Plugin.create("shouting").with_decorator(lambda fn: lambda *args: f"{fn(*args)}{mark}")


shout = Integration("shouting", shouting)


def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


def broken(name: str) -> str:
    """Need what no machine has, as a user's function may."""
    import nowhere_to_be_found  # noqa: F401 # type: ignore[import-not-found]

    return name


def test_a_plain_function_is_wrapped_directly() -> None:
    """The decorated function looks like the plain one."""
    wrapped = shout()(greet)
    assert "hello you!" == wrapped("you")
    assert ("greet", "Greet somebody.") == (wrapped.__name__, wrapped.__doc__)


@pytest.mark.parametrize(
    "function",
    [sky.function(shout("?")(greet)), shout("?")(sky.function(greet)), shout("?")(sky.function(timeout=9)(greet))],
    ids=["below", "above", "above, with options"],
)
def test_a_function_is_wrapped_above_and_below(function: Any) -> None:
    """Both orders give a function whose calls are pending, and whose options are kept."""
    assert isinstance(function, sky.Function)
    assert "hello you?" == function.local("you")
    assert function.timeout in {None, 9}


def test_a_generator_function_stays_one() -> None:
    """What streams without the plugin streams with it."""

    @sky.function
    @Integration("idle", lambda: Plugin.create("idle").with_decorator(lambda fn: fn))()
    def letters() -> Iterator[str]:
        yield from "ab"

    assert inspect.isgeneratorfunction(letters.local)
    assert ["a", "b"] == list(letters.local())


def test_the_plugin_is_asked_where_the_call_runs() -> None:
    """Decorating asks the plugin nothing, because its packages are on the nodes and may not be here."""
    asked: list[str] = []
    plugin = Plugin.create("lazy").with_decorator(lambda fn: asked.append("asked") or fn)
    wrapped = Integration("lazy", lambda: plugin)()(greet)
    assert [] == asked
    wrapped("you")
    assert ["asked"] == asked


def test_a_decorated_function_travels() -> None:
    """Function and plugin are pickled together."""
    assert "hello you!" == pickle.loads(cloudpickle.dumps(shout()(greet)))("you")


def needs(where: str) -> Callable[[], Plugin]:
    """Return what makes a plugin that lacks its package when it wraps, or when it is called."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if where == "call":
                import nowhere_to_be_found  # noqa: F401 # type: ignore[import-not-found]
            return fn(*args)

        if where == "wrap":
            import nowhere_to_be_found  # noqa: F401 # type: ignore[import-not-found]
        return call

    return lambda: Plugin.create("torch").with_decorator(decorate)


@pytest.mark.parametrize("where", ["wrap", "call"])
def test_a_missing_package_names_the_pool_plugin(where: str) -> None:
    """Where the plugin's package is missing, the error says how the pool gets it."""
    wrapped = Integration("torch", needs(where))()(greet)
    with pytest.raises(
        PluginError, match=r"needs nowhere_to_be_found, .* Open the pool with plugins=\[sky\.plugins\.torch"
    ):
        wrapped("you")


def test_a_package_that_the_function_misses_is_its_own_affair() -> None:
    """The user's own missing import is raised as it is."""
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        shout()(broken)("you")


def test_an_error_of_the_function_stays_its_own() -> None:
    """What the function raises comes out as it is."""
    with pytest.raises(ZeroDivisionError):
        shout()(lambda: 1 // 0)()


def test_a_plugin_without_a_decorator_belongs_to_a_pool() -> None:
    """A plugin that does nothing around a task is refused with what to write."""
    with pytest.raises(UsageError, match=r"mps does nothing around a single function\. .*plugins=\[sky\.plugins\.mps"):
        Integration("mps", lambda: Plugin.create("mps"))()


@pytest.mark.parametrize("target", [greet, sky.function(greet)], ids=["plain", "function"])
def test_forgotten_brackets_are_named(target: Any) -> None:
    """The decorator is what the brackets return."""
    with pytest.raises(UsageError, match=r"Write @sky\.integrations\.shouting\(\)"):
        shout(target)


def test_only_functions_are_decorated() -> None:
    """A pending call, or anything else that is no function, is refused."""
    with pytest.raises(UsageError, match="decorates functions, not 3"):
        shout()(3)
