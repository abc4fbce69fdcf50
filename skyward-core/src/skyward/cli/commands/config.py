"""`sky config`: what configuration files say together, what is wrong in them, and their schema."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from skyward.cli.terminal import say
from skyward.errors import ConfigError
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add what is to be done, and how it is written."""
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="show|validate|schema")
    show = subjects.add_parser("show", help="show all values, with the file that each comes from")
    show.add_argument("--json", action="store_true", help="as JSON")
    check = subjects.add_parser("validate", help="list all errors, each with its place")
    check.add_argument("file", nargs="?", metavar="FILE", help="a skyward.toml, if not the nearest")
    check.add_argument("--json", action="store_true", help="as JSON")
    subjects.add_parser("schema", help="print the JSON schema, for editors")


def run(options: Namespace) -> int:
    """
    Show, check or describe configuration files; 1 if one has errors.

    Raises:
        ConfigError: If there is no file, or it cannot be read.
    """
    match options.subject:
        case "show":
            return _show(as_json=options.json)
        case "validate":
            return _validate(options.file, as_json=options.json)
    from skyward.plan.config.config_schema import config_schema
    from skyward.registry import installed

    _say_json(config_schema(installed().providers, installed().plugins))
    return 0


def _show(*, as_json: bool) -> int:
    from skyward.cli import config_listing
    from skyward.engine.pool.pool_file import read_config

    config = read_config(trusted=False)
    if config is None:
        raise _none()
    if as_json:
        _say_json(config_listing.as_json(config))
    else:
        say("\n".join(config_listing.lines(config)).rstrip())
    return 0


def _validate(file: str | None, *, as_json: bool) -> int:
    from skyward.engine.pool.kept_texts import look_up
    from skyward.engine.pool.pool_file import read_config
    from skyward.plan.config.config_check import problems_of
    from skyward.plan.config.config_tree import place_of
    from skyward.plan.config.key_places import dotted
    from skyward.registry import plugin, provider

    try:
        config = read_config(file=file, trusted=False)
    except ConfigError as error:
        # Such as a file that is no TOML; it has its place in the message.
        if as_json:
            _say_json({"files": [], "errors": [{"message": str(error)}]})
        else:
            say(str(error))
        return 1
    if config is None:
        raise _none()
    rows = []
    for problem in problems_of(config, provider_of=provider, plugin_of=plugin, look_up=look_up):
        place = place_of(problem, config.texts)
        message = f"{problem.message} {problem.hint}" if problem.hint else problem.message
        where = {"file": problem.file, "line": place.line, "column": place.column}
        rows.append({**where, "key": dotted(problem.at), "message": message})
    if as_json:
        _say_json({"files": list(config.texts), "errors": rows})
        return int(bool(rows))
    for row in rows:
        say("{file}:{line}:{column}: {key}: {message}".format(**row))
    if not rows:
        say(f"{' and '.join(config.texts)}: no errors.")
    return int(bool(rows))


def _say_json(value: Any) -> None:
    import json

    say(json.dumps(value, indent=2))


def _none() -> ConfigError:
    return ConfigError(
        f"There is no skyward.toml in {Path.cwd()} or above it, and none among your settings.",
        hint="Write one, with [pools.NAME] for each pool.",
    )


COMMAND = Command(run, summary="Show, check or describe skyward.toml.", arguments=arguments)
