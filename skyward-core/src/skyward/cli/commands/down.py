"""`sky down`: machines are ended, one's own unless it is said otherwise."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skyward.cli.left_at_home import end_left, left_at_home
from skyward.cli.machines import (
    add_choice,
    agreed,
    ask_clouds,
    complain_of,
    complain_of_left,
    complain_of_none,
    pool_names,
    waiting_until,
)
from skyward.cli.terminal import complain, say, table
from skyward.errors import ConfigError, UsageError
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.model.instances.machine import Instance

ELSEWHERE = 25.0
"""Seconds that a program on another computer has to end its pool itself; it looks at its machines every 15."""

_LOOK = 2.0


def arguments(parser: ArgumentParser) -> None:
    """Add what machines are chosen by."""
    add_choice(parser)
    parser.add_argument("--all", action="store_true", help="all machines of all pools")
    parser.add_argument("--all-owners", action="store_true", help="also what other people, or other computers, rented")
    parser.add_argument("--yes", action="store_true", help="end them without asking")


def run(options: Namespace) -> int:
    """
    End machines, after asking.

    Raises:
        UsageError: If nothing says which.
    """
    from skyward.cli.instance_table import HEADER, row
    from skyward.engine.instances.identity import owner
    from skyward.engine.pool.event_loop import engine_loop
    from skyward.market.listed_instances import end
    from skyward.plan.instances.owned_instances import chosen, expired

    if not (options.pools or options.expired or options.all):
        raise UsageError("Nothing says which machines to end.", hint="Name a pool, or write --expired or --all.")
    if at_home := left_at_home(options):
        code = end_left(at_home, yes=options.yes)
        if options.pools and {name for one in at_home for name in (one.pool_id, one.pool_name)} >= set(options.pools):
            return code
    owned, meant = ask_clouds(options)
    instances = [instance for _, instance in meant]
    whose = None if options.all_owners else owner()
    own = set(map(id, chosen(instances, pools=options.pools, owner=whose, now=0.0)))
    found = [(handle, instance) for handle, instance in meant if id(instance) in own]
    others = _others([instance for instance in instances if id(instance) not in own])
    if not found:
        if others:
            complain(others)
        elif not owned.failures:
            code = complain_of_none(owned, options.pools, known=pool_names(owned.values))
            return complain_of(owned.unknown) or code
        return complain_of(owned.unknown) or int(bool(others))
    until = waiting_until()
    say(table([HEADER, *(row(instance, now=handle.now(), waits=until) for handle, instance in found)], indent=""))
    if others:
        complain(others)
    if not options.yes and not agreed("end them", _question([instance for _, instance in found])):
        say("Nothing was ended.")
        return 1
    if not options.expired:
        _call_off([instance for _, instance in found])
        foreign = [(handle, one) for handle, one in found if one.tags is not None and one.tags.owner != owner()]
        # The programs of the others are gone.
        _tell_elsewhere([(handle, one) for handle, one in foreign if not expired(one, now=handle.now())])
    failures = engine_loop().run(end(found))
    complain_of_left(found, failures, "ended")
    return complain_of(owned.failures) or int(bool(failures))


def _question(instances: Sequence[Instance]) -> str:
    pools = len({instance.tags.pool_id for instance in instances if instance.tags is not None})
    machines = "this machine" if len(instances) == 1 else f"these {len(instances)} machines"
    return f"End {machines}{f' of {pools} pools' if pools > 1 else ''}, and lose what runs there?"


def _others(instances: Sequence[Instance]) -> str:
    """Return which machines are not ended because they are not one's own; nothing if there are none."""
    if not instances:
        return ""
    owners = sorted({(each.tags.owner if each.tags is not None else "") or "an unknown owner" for each in instances})
    machines = "1 machine is" if len(instances) == 1 else f"{len(instances)} machines are"
    return f"{machines} meant too and left alone: of {', '.join(owners)}. To end all: write --all-owners"


def _call_off(instances: Sequence[Instance]) -> None:
    """Keep the programs of pools on this computer from taking these machines, or renting others in their place."""
    from skyward.engine.instances.call_journal import forget_calls
    from skyward.engine.instances.detached_records import DETACHED
    from skyward.engine.instances.lingering_records import forget
    from skyward.engine.pool.stopped_elsewhere import call_off

    try:
        pools = {instance.tags.pool_id for instance in instances if instance.tags is not None}
        forget(pools)
        DETACHED.forget(pools)
        for pool_id in pools:
            forget_calls(pool_id)
        call_off(pools)
    except (OSError, ConfigError) as error:
        complain(f"the programs of these pools cannot be notified, and may rent other machines: {error}")


def _tell_elsewhere(found: Sequence[tuple[ProviderHandle, Instance]]) -> None:
    """Order programs on other computers to end their pools themselves, and wait for a look at their lists."""
    from skyward.engine.pool.event_loop import engine_loop
    from skyward.market.listed_instances import call_off, look

    if not found:
        return
    loop, providers = engine_loop(), list({id(handle): handle.provider for handle, _ in found}.values())
    notified = loop.run(call_off(found))
    deadline = time.monotonic() + ELSEWHERE
    while notified and time.monotonic() < deadline:
        time.sleep(_LOOK)
        notified &= {instance.id for instance in loop.run(look(providers)).values}


COMMAND = Command(run, summary="End machines of pools, one's own unless it is said otherwise.", arguments=arguments)
