"""Check that instances are distinct, are as offered, prove their identity, and terminate themselves."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence

import pytest
from attrs import evolve

import skyward as sky
from skyward.hookspecs import Instance, InstanceState, LocalAddress, Offer, SSHAddress, Topology
from skyward.plan.instances.guardian_duty import ender
from skyward.testing.conformance.rental import Rental
from skyward.testing.conformance.trial import Trial

__all__ = [
    "check_end_command",
    "check_identity",
    "check_network",
    "check_offer_is_followed",
    "check_several",
    "check_ttl",
    "places",
]

SEVERAL = 3
"""Instances that a pool of several has."""

_CLOCKS = 900.0
_FACTOR = 2.0


def check_several(trial: Trial) -> None:
    """
    Check that instances that are launched by one call are distinct, and terminated one by one or together.

    Args:
        trial: What asks.
    """
    with trial.rental(nodes=SEVERAL) as rental:
        launched = rental.fill()
        assert len({each.node for each in launched}) == len(launched), "Two instances were launched for one node."
        assert {each.node for each in launched} <= set(range(SEVERAL)), (
            "An instance is for a node that was not asked for."
        )
        running = rental.all_running()
        _check_apart(trial, running)
        first, *others = (each.id for each in running)
        rental.end(first)
        trial.until(lambda: first not in rental.coming(), f"{first} is gone after skyward_terminate")
        missing = sorted({*others} - {*rental.coming()})
        assert not missing, f"{', '.join(missing)} ended when {first} alone was terminated."
        rental.end(*others)
        trial.until(lambda: not rental.coming(), f"{', '.join(others)} are gone after one skyward_terminate")


def _check_apart(trial: Trial, running: Sequence[Instance]) -> None:
    for each in running:
        assert each.state is InstanceState.RUNNING
        assert each.address is not None, f"{each.id} runs, and has no address."
    places = [_door(each) for each in running]
    assert len(set(places)) == len(places), f"Two instances have one address: {', '.join(sorted(map(str, places)))}."
    private = [each.private_ip for each in running if isinstance(each.address, SSHAddress) and each.private_ip]
    reach = trial.facts.nodes_reach_each_other
    if reach and isinstance(running[0].address, SSHAddress):
        assert len(private) == len(running), "Nodes reach each other, say the facts, and an instance has no private_ip."
    assert not reach or len(set(private)) == len(private), f"Two instances have one private_ip: {', '.join(private)}."
    for each in running:
        if each.launched_at is not None:
            off = abs(time.time() + trial.handle.ahead - each.launched_at)
            assert off < trial.patience + _CLOCKS, f"launched_at of {each.id} is {off:.0f} s off; seconds since 1970."


def _door(machine: Instance) -> tuple[str, int | None]:
    address = machine.address
    return (address.directory, None) if isinstance(address, LocalAddress) else (address.host, address.port)  # type: ignore[union-attr]


def places(ways: Sequence[tuple[Offer, bool]], *, spot: bool) -> Iterator[list[tuple[Offer, bool]]]:
    """
    Yield the ways to launch that differ in what a provider may ignore: two regions, and the spot market.

    Args:
        ways: All ways, the cheapest first.
        spot: Whether the provider sells spot instances.
    """
    regions = list(dict.fromkeys(offer.region for offer, _ in ways))[:2]
    for region in regions:
        yield [way for way in ways if way[0].region == region and not way[1]] or [
            way for way in ways if way[0].region == region
        ]
    if spot:
        yield [way for way in ways if way[1]]


def check_offer_is_followed(trial: Trial) -> None:
    """
    Check that an instance is of the region, type, market and price of its offer.

    Args:
        trial: What asks.
    """
    for ways in places(trial.ways(), spot=trial.facts.spot):
        if not ways:
            continue
        with trial.rental(ways=ways) as rental:
            machine = rental.running()
            _check_as_offered(machine, rental)
            if trial.switches.books is not None:
                _check_booked(trial, rental)


def _check_as_offered(machine: Instance, rental: Rental) -> None:
    offer = rental.offer
    assert machine.spot == rental.spot, (
        f"{machine.id} was launched with spot={rental.spot}, and has spot={machine.spot}."
    )
    for name, wanted in (("region", offer.region), ("instance_type", offer.instance_type)):
        found = getattr(machine, name)
        same = wanted is None or found in (None, wanted)
        assert same, f"The {name} of {machine.id} is {found!r}; launched was an offer of {wanted!r}."
    price, rate = offer.price(spot=rental.spot), rental.machine.hourly_rate
    if price and rate is not None:
        fits = price / _FACTOR <= rate <= price * _FACTOR
        assert fits, f"{machine.id} costs {rate} an hour by its hourly_rate, and {price} by its offer."


def _check_booked(trial: Trial, rental: Rental) -> None:
    name = rental.machine.id
    booked = trial.booked().get(name)
    assert booked is not None, f"{name} runs, and the test cloud's books do not have it."
    wanted = {"region": rental.offer.region, "instance_type": rental.offer.instance_type, "spot": rental.spot}
    for field, value in wanted.items():
        found = getattr(booked, field)
        same = value is None or found in (None, value)
        assert same, f"The {field} of {name} is {found!r} in the cloud's books, and {value!r} was launched."


def check_identity(trial: Trial) -> None:
    """
    Check that an instance lets the pool's key in, and that another one in its place is found out.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    with trial.rental() as rental:
        address = rental.running().address
        if not isinstance(address, SSHAddress):
            return
        pinned = address.host_key is not None or bool(address.fingerprints)
        assert pinned or address.known_hosts is not None, (
            "An SSHAddress needs host_key= or fingerprints=, or a known_hosts= of the instance's own: "
            "whatever answers at its address would be trusted."
        )
        assert "there" == trial.shell(address, "echo there"), (
            f"{rental.machine.id} lets the pool's key in, and runs nothing."
        )
    # Where the cloud tells no key, the first contact cannot be checked.
    if not pinned:
        return
    with trial.switched("impersonate"), trial.rental() as rental:
        address = rental.running().address
        assert isinstance(address, SSHAddress)
        refused = trial.is_impostor(address)
        assert refused, f"{rental.machine.id} proved itself by another host key than its own, and was let in."


def check_network(trial: Trial) -> None:
    """
    Check that the nodes of a pool reach each other where the facts say so.

    Args:
        trial: What asks.
    """
    if not trial.facts.nodes_reach_each_other or not trial.facts.rents:
        return
    plugin = sky.Plugin.create("conformance").with_topology(lambda cluster: Topology(collective=True))
    spec = evolve(trial.spec, nodes=2, plugins=[plugin])
    with sky.Compute(spec, options=sky.Options(console=False, logging=False)) as pool:
        infos = sky.function(sky.instance_info)() @ pool
    assert {0, 1} == {info.node for info in infos}


def check_end_command(trial: Trial) -> None:
    """
    Check that an instance that runs `end_command` ends its own bill.

    Args:
        trial: What asks.
    """
    if not _ends_itself(trial):
        return
    with trial.rental() as rental:
        machine = rental.running()
        if not isinstance(machine.address, SSHAddress):
            return
        command = trial.facts.end_command
        assert command, "skyward_facts says that instances end their own bill, and names no end_command."
        trial.shell(machine.address, f"nohup {shlex.join(command)} >/dev/null 2>&1 </dev/null & sleep 2")
        trial.until(lambda: not _billed(trial, rental), f"{machine.id} is gone after it ran its end_command")


def check_ttl(trial: Trial) -> None:
    """
    Check that an instance terminates itself on which no node was made, because its client died.

    Args:
        trial: What asks.
    """
    if not _ends_itself(trial) or not trial.facts.end_command:
        return
    ttl = trial.switches.ttl
    if ttl is None:
        pytest.skip("The test cloud has no `ttl` after which an instance terminates itself in time for a test.")
    offer, spot = trial.ways()[0]
    rental = Rental(trial=trial, offer=offer, spot=spot, ttl=ttl)
    with rental.opened():
        rental.launch()
        name = rental.running().id
        trial.until(lambda: not _billed(trial, rental), f"{name} terminated itself, as no client came within {ttl:g} s")


def _ends_itself(trial: Trial) -> bool:
    return trial.facts.rents and ender(trial.facts, InstanceState.RUNNING) != "guardian"


def _billed(trial: Trial, rental: Rental) -> bool:
    """Return whether the pool's instance is billed: by the cloud's books, else by its list."""
    name = rental.machine.id
    return name in (rental.coming() if trial.switches.books is None else trial.booked())
