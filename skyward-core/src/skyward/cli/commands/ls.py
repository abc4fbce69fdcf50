"""`sky ls`: the machines there are, as the clouds and this user's open pools list them."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from skyward.cli.machines import add_choice, ask_clouds, complain_of, complain_of_none, pool_names, waiting_until
from skyward.cli.terminal import add_json, say, say_json, table
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.model.instances.machine import Instance


def arguments(parser: ArgumentParser) -> None:
    """Add what machines are chosen by."""
    add_choice(parser)
    add_json(parser)


def run(options: Namespace) -> int:
    """List the machines; fail if a cloud cannot be asked, for what it has is not known then."""
    from skyward.cli.instance_table import HEADER, row
    from skyward.cli.json_facts import answered, instance_facts
    from skyward.cli.open_pools import open_machines
    from skyward.plan.instances.owned_instances import chosen

    owned, listed = ask_clouds(options)
    there, silent = open_machines(options.providers)
    seen, now = {(one.provider, one.id) for one in owned.values}, time.time()
    # Of what no cloud lists: processes of this machine, hosts, and what a list of a cloud has not yet.
    unlisted = [one for one in there if (one.provider, one.id) not in seen]
    meant = chosen(unlisted, pools=options.pools, only_expired=options.expired, now=now)
    found: list[tuple[float, Instance]] = [*((handle.now(), one) for handle, one in listed), *((now, m) for m in meant)]
    failures, until = {**owned.unknown, **silent}, waiting_until()
    if options.json:
        facts = (instance_facts(one, until) for _, one in found)
        say_json(answered("machines", facts, owned.asked, failures))
    elif found:
        say(table([HEADER, *(row(one, now=moment, waits=until) for moment, one in found)], indent=""))
    elif not owned.failures:
        known = pool_names([*owned.values, *there])
        return complain_of(failures) | complain_of_none(owned, options.pools, known=known)
    return complain_of(failures) or int(bool(options.pools) and not found)


COMMAND = Command(run, summary="List the machines of all pools, as the clouds list them.", arguments=arguments)
