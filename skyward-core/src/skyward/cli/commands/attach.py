"""`sky attach`: go on with a pool that was detached, until its calls have ended."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from skyward.cli.terminal import complain, say
from skyward.errors import SkywardError
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.pool import Pool

INTERRUPTED = 130
_GOES_ON = "interrupted; the pool goes on without a client. To go on with it: sky attach {}"


def arguments(parser: ArgumentParser) -> None:
    """Add which pool is meant."""
    parser.add_argument("pool", metavar="POOL", help="name or id of the pool")


def run(options: Namespace) -> int:
    """
    Show what the pool prints and what its calls give, and end it; an interrupt detaches it once more.

    Raises:
        SkywardError: If no pool of that name is detached.
    """
    from skyward.attaching import attach
    from skyward.engine.instances.detached_records import DETACHED
    from skyward.engine.instances.owner_lock import without_client
    from skyward.model.fields.setting import nearest

    known = DETACHED.heads()
    if not any(options.pool in (about.pool_id, about.pool_name) for about in known):
        close = nearest(options.pool, [about.pool_name for about in known])
        raise SkywardError(
            f"No pool {options.pool!r} is detached.",
            hint=f"Did you mean {close!r}?"
            if close
            else "It may be attached elsewhere, ended, or of another user or computer. Type: sky detached",
        )
    try:
        with attach(options.pool) as pool:
            return shown(pool)
    except KeyboardInterrupt:
        # It came while the pool was entered.
        if not any(options.pool in (about.pool_id, about.pool_name) for about in without_client()):
            raise
        complain(_GOES_ON.format(options.pool))
        return INTERRUPTED


def shown(pool: Pool) -> int:
    """
    Wait for the calls that were left, say what each gave, and return the exit code.

    Args:
        pool: The pool, attached.
    """
    from skyward.node.task.script import run_script

    code = 0
    try:
        for call in pool.calls():
            error = call.future.exception()
            if error is not None:
                complain(f"{call.function}() failed: {type(error).__name__}: {error}")
                code = code or 1
            elif call.function == run_script.__name__:
                # The exit code of a script of `sky run`.
                code = code or call.result()
            else:
                say(f"{call.function}(): {call.result()!r}")
    except KeyboardInterrupt:
        complain(_GOES_ON.format(pool.detach()))
        return INTERRUPTED
    return code


COMMAND = Command(run, summary="Go on with a detached pool: its lines, its results, its end.", arguments=arguments)
