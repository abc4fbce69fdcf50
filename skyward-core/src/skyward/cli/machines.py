"""What commands about machines have in common: how they are chosen, and what is said when a cloud does not answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from skyward.cli.terminal import complain

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from skyward.engine.provider_handle import ProviderHandle
    from skyward.errors import SkywardError
    from skyward.market.owned import Owned
    from skyward.model.machine import Instance


def add_choice(parser: ArgumentParser) -> None:
    """Add the arguments that machines are chosen by."""
    parser.add_argument("pools", nargs="*", metavar="POOL", help="name or id of a pool")
    parser.add_argument("--expired", action="store_true", help="only machines whose client is gone")


def ask_clouds(options: Namespace) -> tuple[Owned, list[tuple[ProviderHandle, Instance]]]:
    """
    Ask the clouds which machines there are.

    Returns:
        What they say, and of that the machines that are meant.
    """
    # Late, because the list of commands needs nothing that asks clouds.
    from skyward.engine.loop import engine_loop
    from skyward.market.owned import look
    from skyward.plan.owned import chosen

    owned = engine_loop().run(look())
    meant = set(map(id, chosen(owned.instances, pools=options.pools, only_expired=options.expired, now=time.time())))
    return owned, [(handle, instance) for handle, instance in owned.found if id(instance) in meant]


def complain_of(failures: Mapping[str, SkywardError]) -> int:
    """Say which clouds could not be asked, and give the exit code."""
    for name, error in failures.items():
        complain(f"{name} cannot be asked, and may have more: {error}")
    return 1 if failures else 0


def nothing_of(owned: Owned) -> str:
    """Say that there is no machine, and who was asked."""
    if not owned.asked:
        return "No provider that rents machines is installed or named in a skyward.toml here. Type: sky providers"
    return f"{', '.join(owned.asked)}: no machine that is meant."
