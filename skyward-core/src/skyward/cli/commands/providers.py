"""`sky providers`: what is installed, and how to get more."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skyward.cli.terminal import say, table
from skyward.model.cli_command import Command
from skyward.origin import install
from skyward.registry import BESIDES, EXTRAS, installed


def run(options: Namespace) -> None:
    """List providers, plugins and storage, those that are installed and those that could be."""
    registry = installed()
    say("providers:")
    say(table(_rows(registry.providers, "sky.", EXTRAS.keys() - BESIDES)))
    say("\nplugins:")
    say(table(_rows(registry.plugins, "sky.plugins.", EXTRAS.keys() - BESIDES)))
    say("\nstorage:")
    stores = {name: made for name, made in registry.names.items() if f"sky.{name}" in BESIDES}
    say(table(_rows(stores, "sky.", BESIDES)))


def _rows(there: Mapping[str, Any], prefix: str, among: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in sorted(there):
        yield f"{prefix}{name}", _summary(there[name])
    for full in sorted(among):
        name = full.removeprefix(prefix)
        if full.startswith(prefix) and "." not in name and name not in there:
            yield full, f"not installed; type: {install(EXTRAS[full])}"


def _summary(factory: Any) -> str:
    lines = (factory.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


COMMAND = Command(run, summary="List providers, plugins and storage, and what to type for more.")
