"""The command line options of the checks: a plugin of pytest."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say which provider is checked, with what patience, and what must never be shown."""
    group = parser.getgroup("skyward", "conformance of a Skyward provider")
    group.addoption("--skyward-provider", metavar="MODULE:FACTORY", help="What makes the provider when it is called.")
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
        help="How long a machine may take to run, or to be gone.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a provider that there is not, before anything is checked."""
    if target := config.getoption("skyward_provider"):
        load(target)


def load(target: str) -> Callable[[], Any]:
    """
    Import what makes a provider.

    Args:
        target: `module:factory`; the factory may be a class, or an attribute's attribute.

    Raises:
        UsageError: pytest's own, if there is no such thing.
    """
    module, colon, path = target.partition(":")
    if not colon or not path:
        raise pytest.UsageError(f"--skyward-provider must be MODULE:FACTORY, not {target!r}")
    found: Any = None
    try:
        found = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(f"--skyward-provider {target}: {error}") from error
    if not callable(found):
        raise pytest.UsageError(f"--skyward-provider {target}: that is no function and no class")
    made: Callable[[], Any] = found
    return made
