"""A cloud of simulated machines, whose times are drawn from a seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import asyncssh
from attrs import frozen

from skyward.hookspecs import Instance, InstanceState, LaunchRequest, Offer, ProviderFacts, hookimpl
from tests.simulated.machine import Machine


@frozen(kw_only=True)
class Times:
    """
    Say how long things take, each in seconds from and to.

    Args:
        answer: Until a launch is answered.
        boot: Until a machine runs.
        server: From then on until its SSH server answers.
        login: A login.
        bootstrap: Making a node of it.
        end: Ending it.
    """

    answer: tuple[float, float]
    boot: tuple[float, float]
    server: tuple[float, float]
    login: tuple[float, float]
    bootstrap: tuple[float, float]
    end: tuple[float, float]


SLOW = Times(
    answer=(0.5, 2.0), boot=(15.0, 60.0), server=(0.0, 30.0), login=(0.3, 3.0), bootstrap=(1.0, 20.0), end=(5.0, 40.0)
)
"""A cloud of virtual machines."""

QUICK = Times(
    answer=(0.1, 0.3), boot=(2.0, 9.0), server=(0.0, 5.0), login=(0.05, 0.3), bootstrap=(0.5, 3.0), end=(0.5, 3.0)
)
"""A cloud of containers."""


class SimulatedCloud:
    """
    Rent machines that take as long as the seed says to boot, to be made ready, and to end.

    Args:
        seed: The seed.
        times: How long things take.
        taken: How many machines, the first ones, go away in the middle of their bootstrap.
    """

    def __init__(self, seed: int, times: Times, *, taken: int = 0) -> None:
        self._taken = taken
        self._times = times
        self._random = random.Random(seed)
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._entering = 0
        self.machines: dict[str, Machine] = {}
        self.rented: list[Machine] = []
        self.most_entering = 0
        self.batches: list[int] = []
        self.asked_at: list[float] = []
        self.looks: list[float] = []
        self.endings: list[tuple[float, float]] = []

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="simulated", ends_own_bill=True)

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        return [Offer(provider="simulated", instance_type="small", on_demand_price=0.0)]

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        self.batches.append(len(request.nodes))
        self.asked_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self._random.uniform(*self._times.answer))
        return [self._rent(request, node) for node in request.nodes]

    def _rent(self, request: LaunchRequest, node: int) -> Instance:
        times, drawn = self._times, self._random.uniform
        runs = drawn(*times.boot)
        machine = self.machines[f"i-{len(self.rented)}"] = Machine(
            self._key,
            runs=runs,
            answers=runs + drawn(*times.server),
            enters=drawn(*times.login),
            prepares=drawn(*times.bootstrap),
            guests=self._came,
            taken=len(self.rented) < self._taken,
        )
        self.rented.append(machine)
        return Instance(
            id=f"i-{len(self.rented) - 1}",
            node=node,
            provider="simulated",
            state=InstanceState.PENDING,
            tags=request.tags_of(node),
        )

    @hookimpl
    async def skyward_instances(self) -> Sequence[Instance]:
        self.looks.append(asyncio.get_running_loop().time())
        return [
            Instance(
                id=name,
                node=0,
                provider="simulated",
                state=machine.state,
                address=machine.address if machine.state is InstanceState.RUNNING else None,
            )
            for name, machine in self.machines.items()
        ]

    @hookimpl
    async def skyward_terminate(self, ids: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(self._random.uniform(*self._times.end))
        for name in ids:
            self.machines.pop(name).end()
            self.endings.append((began, loop.time()))

    def _came(self, change: int) -> None:
        self._entering += change
        self.most_entering = max(self.most_entering, self._entering)
