"""Pools without a client on the user's own machines, which no cloud lists: ended by a client that attaches them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skyward.cli.machines import agreed
from skyward.cli.terminal import complain, say
from skyward.errors import SkywardError

if TYPE_CHECKING:
    from skyward.plan.instances.detached_pool import Detached

__all__ = ["end_left", "left_at_home"]

_PROVIDER = "ssh"


class _Ended(Exception):
    """Leave an attached pool without waiting for its calls."""


def left_at_home(options: Namespace) -> list[Detached]:
    """
    List the pools that are meant, and that were left on machines of `sky.SSH`.

    Args:
        options: What was typed.
    """
    from skyward.engine.instances.owner_lock import without_client

    return [about for about in without_client() if about.provider == _PROVIDER and _meant(about, options)]


def end_left(pools: Sequence[Detached], *, yes: bool) -> int:
    """
    End the nodes of pools, after asking, and return the exit code; their machines stay.

    Args:
        pools: The pools.
        yes: Whether they are ended without asking.

    Raises:
        UsageError: If standard input is no terminal.
    """
    for about in pools:
        say(f"{about.pool_name} ({about.pool_id}): {about.calls} calls on {', '.join(about.machines)}")
    what = "this pool" if len(pools) == 1 else f"these {len(pools)} pools"
    if not yes and not agreed("end them", f"End {what}, and lose what runs there?"):
        say("Nothing was ended.")
        return 1
    ended = [_end(about) for about in pools]
    return int(not all(ended))


def _meant(about: Detached, options: Namespace) -> bool:
    if options.expired:
        return False
    return options.all or about.pool_id in options.pools or about.pool_name in options.pools


def _end(about: Detached) -> bool:
    from skyward.attaching import attach

    try:
        with attach(about.pool_id, console=False, logging=False):
            raise _Ended
    except _Ended:
        return True
    except SkywardError as error:
        complain(f"{about.pool_name} ({about.pool_id}) is not ended: {error}")
        return False
