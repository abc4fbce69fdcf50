"""
What can be typed next: commands, options, pools, providers; nothing that is installed is loaded for it.

An argument whose metavar is `POOL`, `POOL[:NODE]`, `PROVIDER`, `GPU` or `FILE` is completed with such.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence

from skyward.errors import SkywardError

__all__ = ["FILES", "candidates"]

FILES = (":files", "")
"""What stands for the names of files, which the shell knows better."""

DOOR_TIMEOUT = 0.3
"""Seconds that an open pool has to say its name."""

Candidate = tuple[str, str]


def candidates(words: Sequence[str]) -> list[Candidate]:
    """
    Return what may stand in the place of the last word, each with a description.

    Args:
        words: What is typed after `sky`, up to the cursor; the last word may be empty, or the beginning of one.

    >>> candidates(["provi"])
    [('providers', 'List providers, plugins and storage, and what to type for more.')]
    """
    given, current = list(words[:-1]), words[-1] if words else ""
    if not given or given[0] == "help":
        found: Iterator[Candidate] = _commands() if len(given) < 2 else iter(())
    else:
        found = _of_command(given[0], given[1:], current)
    # What begins with a hyphen is asked for by one.
    hyphen = current.startswith("-")
    fitting = {each for each in found if each == FILES or each[0].startswith(current)}
    return sorted(each for each in fitting if hyphen or not each[0].startswith("-"))


def _commands() -> Iterator[Candidate]:
    from skyward.cli.known_commands import ANSWERED, summaries

    yield from {**summaries(), **ANSWERED}.items()
    yield from (("--help", "List the commands."), ("--version", "Show the version."))


def _of_command(name: str, given: list[str], current: str) -> Iterator[Candidate]:
    from skyward.cli.command_parser import command_parser
    from skyward.cli.commands import command, names

    if name in names():
        found = command(name)
    else:
        from skyward.cli.known_commands import others

        if name not in (known := others()):
            return
        found = known[name]
    yield from _of_parser(command_parser(name, found), given, current)


def _of_parser(parser: ArgumentParser, given: list[str], current: str) -> Iterator[Candidate]:
    """Walk through what is given, and return what the word after it may be."""
    actions: list[Action] = parser._actions
    options = {name: action for action in actions for name in action.option_strings}
    places = [action for action in actions if not action.option_strings]
    waits: Action | None = None
    for index, word in enumerate(given):
        if waits is not None:
            waits = None
        elif word == "--":
            yield FILES
            return
        elif word in options:
            waits = options[word] if options[word].nargs != 0 else None
        elif not word.startswith("-") and places:
            inner = (places[0].choices or {}) if places[0].nargs == argparse.PARSER else {}
            if isinstance(inner, Mapping) and word in inner:
                yield from _of_parser(inner[word], given[index + 1 :], current)
                return
            if places[0].nargs == argparse.REMAINDER:
                yield FILES
                return
            if places[0].nargs not in ("*", "+"):
                places.pop(0)
    name, assigned, _ = current.partition("=")
    if waits is not None:
        yield from _values(waits, current)
    elif assigned and name in options:
        for value, about in _values(options[name], current):
            yield (value, about) if value == FILES[0] else (f"{name}={value}", about)
    else:
        yield from ((option, action.help or "") for option, action in options.items())
        if places and places[0].nargs == argparse.REMAINDER:
            yield FILES
        elif places:
            yield from _values(places[0], current)


def _values(action: Action, current: str) -> Iterator[Candidate]:
    if action.choices is not None:
        yield from ((str(choice), "") for choice in action.choices)
    elif isinstance(action.metavar, str) and action.metavar in _VALUES:
        yield from _VALUES[action.metavar](current)


def _pools(current: str) -> Iterator[Candidate]:
    """Find the names of pools that are open, detached, or described in the nearest skyward.toml."""
    from skyward.engine.pool.asked_pools import ask_each

    with contextlib.suppress(OSError):
        for answer in ask_each("facts", within=DOOR_TIMEOUT):
            if "pool" in answer.facts:
                yield str(answer.facts["pool"]), "open"
    yield from _detached()
    with contextlib.suppress(OSError, SkywardError, ValueError):
        from skyward.engine.pool.pool_file import find_pool_file
        from skyward.plan.config.named_pools import pool_names

        if (path := find_pool_file()) is not None:
            yield from ((name, "in skyward.toml") for name in pool_names(path.read_text(encoding="utf-8")))


def _detached() -> Iterator[Candidate]:
    """Read the first lines of what is written down of detached pools; the rest takes the classes of pools."""
    from skyward.engine.guardian.state_folder import journal_path

    for path in sorted(journal_path().with_name("detached").glob("[!.]*")):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError), path.open("rb") as file:
            yield str(json.loads(file.readline(1 << 16))["pool_name"]), "detached"


def _nodes(current: str) -> Iterator[Candidate]:
    """Find pools, and behind a colon the nodes of one."""
    pool, colon, _ = current.rpartition(":")
    if not colon:
        yield from _pools(current)
        return
    from skyward.engine.pool.asked_pools import ask_each

    for answer in ask_each("facts", pool, within=DOOR_TIMEOUT):
        for node in answer.facts.get("nodes", ()):
            yield f"{pool}:{node['node']}", f"{node['provider']} {node['machine']}, {node['state']}"


def _providers(current: str) -> Iterator[Candidate]:
    """Find the names of providers that are installed, by the names of their distributions."""
    from importlib.metadata import entry_points

    from skyward.hook_callers import GROUP
    from skyward.registry import BESIDES, EXTRAS

    yield from (("local", "this machine"), ("ssh", "machines that one has"))
    clouds = {extra for name, extra in EXTRAS.items() if name.count(".") == 1 and name not in BESIDES}
    yield from ((point.name, "") for point in entry_points(group=GROUP) if point.name in clouds)


def _gpus(current: str) -> Iterator[Candidate]:
    from skyward.model.accelerators.catalogue import CATALOGUE

    yield from ((device.name, device.manufacturer) for device in CATALOGUE)


def _files(current: str) -> Iterator[Candidate]:
    yield FILES


_VALUES: Mapping[str, Callable[[str], Iterator[Candidate]]] = {
    "POOL": _pools,
    "POOL[:NODE]": _nodes,
    "PROVIDER": _providers,
    "GPU": _gpus,
    "FILE": _files,
    "SCRIPT": _files,
    "PATH": _files,
}
