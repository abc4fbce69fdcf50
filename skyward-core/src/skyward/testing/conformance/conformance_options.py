"""The command line options of the checks: a plugin of pytest."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: which provider is checked, with what patience, and what must never be shown."""
    group = parser.getgroup("skyward", "conformance of a Skyward provider")
    group.addoption("--skyward-provider", metavar="MODULE:FACTORY", help="What makes the provider when it is called.")
    group.addoption(
        "--skyward-switches",
        metavar="MODULE:FUNCTION",
        help="What returns the Switches of the provider's test cloud when it is called with the provider.",
    )
    group.addoption(
        "--skyward-secret",
        metavar="NAME",
        action="append",
        default=[],
        help="A field of the provider, or an environment variable, whose text must never be shown; may be repeated.",
    )
    group.addoption(
        "--skyward-patience",
        metavar="SECONDS",
        type=float,
        default=600.0,
        help="Seconds that an instance may take to run, or to be gone.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a provider, or switches, that cannot be imported, before anything is checked."""
    for name in ("provider", "switches"):
        if target := config.getoption(f"skyward_{name}"):
            load(target, f"--skyward-{name}")


def load(target: str, option: str) -> Callable[..., Any]:
    """
    Import what makes a provider, or switches.

    Args:
        target: `module:factory`; the factory may be a class, or an attribute's attribute.
        option: The option that names it, for the error.

    Raises:
        UsageError: pytest's own, if there is no such thing.
    """
    module, colon, path = target.partition(":")
    if not colon or not path:
        raise pytest.UsageError(f"{option} must be MODULE:FACTORY, not {target!r}")
    found: Any = None
    try:
        found = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(f"{option} {target}: {error}") from error
    if not callable(found):
        raise pytest.UsageError(f"{option} {target}: that is no function and no class")
    made: Callable[..., Any] = found
    return made
