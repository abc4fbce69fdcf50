"""`sky providers`: what is installed, how to get more, and whether a provider can be used."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skyward.cli.terminal import add_json, complain, quiet, say, say_json, table
from skyward.errors import UsageError
from skyward.model.cli_command import Command

_WORDS = {True: "ok", False: "FAILED", None: "?"}

Facts = Mapping[str, "str | bool | None"]


def arguments(parser: ArgumentParser) -> None:
    """Add how the list is printed, and that a provider is checked."""
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="check")
    check = actions.add_parser("check", description="Check whether a provider can be used.", allow_abbrev=False)
    check.add_argument("provider", metavar="PROVIDER", help="its name, such as aws")
    # Without a default of its own, which would overwrite what is typed before the word.
    check.add_argument("--json", action="store_true", default=SUPPRESS, help="print one JSON value, for programs")


def run(options: Namespace) -> int:
    """
    List providers, plugins and storage, those that are installed and those that could be; or check a provider.

    Raises:
        ConfigError: If there is none of that name.
    """
    if options.action:
        return _check(options.provider, as_json=options.json)
    # Late, because the list of commands needs none of it.
    from skyward.registry import BESIDES, EXTRAS, installed

    registry = installed()
    stores = {name: made for name, made in registry.names.items() if f"sky.{name}" in BESIDES}
    found = {
        "providers": list(_facts(registry.providers, "sky.", EXTRAS.keys() - BESIDES)),
        "plugins": list(_facts(registry.plugins, "sky.plugins.", EXTRAS.keys() - BESIDES)),
        "storage": list(_facts(stores, "sky.", BESIDES)),
    }
    if options.json:
        say_json(found)
        return 0
    say("\n\n".join(f"{kind}:\n{table(map(_row, facts))}" for kind, facts in found.items()))
    return 0


def _check(name: str, *, as_json: bool) -> int:
    """Check the providers of a name, of which a skyward.toml may have several; return the exit code."""
    from skyward.engine.pool.event_loop import engine_loop
    from skyward.market.asking import provider_handles
    from skyward.market.provider_check import check_provider

    with quiet("skyward.market.handles"):
        named, installed, failures = provider_handles(only=(name,))
    failures.pop("skyward.toml", None) if named or installed else None
    handles = [*named, *installed]
    if not handles and not failures:
        raise UsageError(
            f"A provider {name!r} cannot be made without arguments.", hint="Describe a pool with it in skyward.toml."
        )
    checked = [(handle, engine_loop().run(check_provider(handle))) for handle in handles]
    good = not failures and all(check.ok is not False for _, checks in checked for check in checks)
    if as_json:
        found = [
            {"provider": handle.name, "checks": [{"check": c.what, "ok": c.ok, "detail": c.detail} for c in checks]}
            for handle, checks in checked
        ]
        say_json({"ok": good, "providers": found, "failures": {one: str(error) for one, error in failures.items()}})
        return int(not good)
    for handle, checks in checked:
        rows = [(check.what, _WORDS[check.ok], check.detail) for check in checks]
        say(f"{handle.name}:\n{table(rows)}")
    for one, error in failures.items():
        complain(f"{one}: {error}")
    return int(not good)


def _facts(there: Mapping[str, Any], prefix: str, among: Iterable[str]) -> Iterator[Facts]:
    from skyward.origin import install
    from skyward.registry import EXTRAS

    for name in sorted(there):
        yield {"name": f"{prefix}{name}", "installed": True, "summary": _summary(there[name]), "install": None}
    for full in sorted(among):
        name = full.removeprefix(prefix)
        if full.startswith(prefix) and "." not in name and name not in there:
            yield {"name": full, "installed": False, "summary": None, "install": install(EXTRAS[full])}


def _row(facts: Facts) -> tuple[str, str]:
    said = facts["summary"] if facts["installed"] else f"not installed; type: {facts['install']}"
    return str(facts["name"]), str(said)


def _summary(factory: Any) -> str:
    lines = (factory.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


COMMAND = Command(run, summary="List providers, plugins and storage, and what to type for more.", arguments=arguments)
