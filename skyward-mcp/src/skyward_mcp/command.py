"""The command `skyward-mcp`."""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence

from skyward_mcp.apart import apart

__all__ = ["main"]

FAILED, MISTYPED = 1, 2


def main(words: Sequence[str] | None = None) -> int:
    """
    Serve until the client is gone, and return the exit code.

    Args:
        words: What is typed after `skyward-mcp`; None is what was.
    """
    options = _parser().parse_args(words)
    return apart(lambda: _serve(options))


def _serve(options: Namespace) -> int:
    from skyward.errors import ConfigError, SkywardError
    from skyward_mcp.serving import serve
    from skyward_mcp.session import Limits, Session, known_providers

    try:
        allowed = known_providers(options.provider) if options.provider else None
        serve(Session(Limits(budget=options.budget, providers=allowed, lease=options.lease)))
    except SkywardError as error:
        sys.stderr.write(f"skyward-mcp: {error}\n")
        return MISTYPED if isinstance(error, ConfigError) else FAILED
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="skyward-mcp",
        description="Let an agent rent machines over the Model Context Protocol, on standard input and output.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--budget", type=_more_than_0, required=True, metavar="USD", help="what all pools together may cost"
    )
    parser.add_argument(
        "--provider",
        action="append",
        metavar="NAME",
        help="rent from it; may be said more than once. Without it from all that are installed, never on this machine",
    )
    parser.add_argument(
        "--lease",
        type=_more_than_0,
        metavar="SECONDS",
        help="how long a pool may go on without this server at most; without it, all pools end with the server",
    )
    return parser


def _more_than_0(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return value
