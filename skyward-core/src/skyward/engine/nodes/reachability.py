"""Whether nodes whose ranks form one job can reach each other, found out before a task is sent to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain, pairwise

from skyward.engine.nodes.membership import address
from skyward.engine.nodes.node_shell import NodeShell
from skyward.errors import ProvisionError, SkywardError

WITHIN = 5.0
"""Seconds that a connection between two nodes may take: three times TCP sends its first packet by then."""

EVERY = 60.0
"""Seconds between two looks at nodes that have met."""

TOLD_AGAIN = 600.0
"""Seconds after which it is reported again that two nodes do not reach each other."""

_LISTEN = 30.0


class Reaching:
    """
    Connect each node that is new to a pool and those that are there already to each other's ports.

    Args:
        patience: Seconds in which all of them have to say what they found.
        report: Takes a node and a sentence when it does not reach another one later.
        every: Seconds between two looks at nodes that have met.
    """

    def __init__(
        self,
        patience: float = 20.0,
        report: Callable[[NodeShell, str], object] = lambda *_: None,
        every: float = EVERY,
    ) -> None:
        self._patience = patience
        self._every = every
        self._report = report
        self._watching: asyncio.Task[None] | None = None
        self._told: dict[tuple[str, str], float] = {}
        self._there: list[NodeShell] = []

    async def meet(self, shell: NodeShell) -> None:
        """
        Check that a node and those that came before it reach each other.

        Args:
            shell: The node; its agent answers.

        Raises:
            ProvisionError: If it cannot reach one of the others, or one of them cannot reach it.
        """
        others = [other for other in self._there if not other.leaving]
        self._there = [*others, shell]
        met = False
        try:
            async with asyncio.timeout(self._patience):
                await self._meet(shell, others)
            met = True
            if others and self._watching is None:
                self._watching = asyncio.get_running_loop().create_task(self._watch())
        except TimeoutError:
            raise ProvisionError(
                f"{shell.where} and the others did not say within {self._patience:g} s whether they can meet.",
                node=shell.index,
            ) from None
        finally:
            if not met:
                self._there = [other for other in self._there if other is not shell]

    def close(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        """Ask each node again and again whether it reaches the next one."""
        while True:
            await asyncio.sleep(self._every)
            there = [shell for shell in self._there if not shell.leaving]
            if len(there) > 1:
                await asyncio.gather(*(self._look(*pair) for pair in pairwise([*there, there[0]])))

    async def _look(self, shell: NodeShell, other: NodeShell) -> None:
        try:
            async with asyncio.timeout(self._patience):
                sentences = await _unreached(shell, [(other, await _port(other))])
        except (TimeoutError, SkywardError):
            # Their links tell what is wrong with them.
            return
        now, pair = asyncio.get_running_loop().time(), (shell.where, other.where)
        if sentences and now - self._told.get(pair, -TOLD_AGAIN) >= TOLD_AGAIN:
            self._told[pair] = now
            self._report(shell, sentences[0])

    async def _meet(self, shell: NodeShell, others: list[NodeShell]) -> None:
        if not others:
            return
        own, *theirs = await asyncio.gather(_port(shell), *map(_port, others), return_exceptions=True)
        if isinstance(own, BaseException):
            raise own
        # One that is lost meanwhile is replaced, and its replacement comes here by itself.
        there = [(other, port) for other, port in zip(others, theirs, strict=True) if isinstance(port, int)]
        found = await asyncio.gather(
            _unreached(shell, there), *(_unreached(other, [(shell, own)]) for other, _ in there)
        )
        sentences = [*chain.from_iterable(found)]
        if sentences:
            raise ProvisionError(
                sentences[0],
                node=shell.index,
                hint="The plugins make one job of all ranks, which connect to each other at any port: "
                "open the firewall between the nodes, or name hosts by addresses at which they see each other.",
            )


async def _port(shell: NodeShell) -> int:
    """Ask a node to listen."""
    return int((await shell.ask({"listen": _LISTEN}))["port"])


async def _unreached(shell: NodeShell, others: list[tuple[NodeShell, int]]) -> list[str]:
    """Return which others a node cannot reach, a sentence each; none if it is lost, which its link reports."""
    places = [[address(other.info), port] for other, port in others]
    try:
        reasons = (await shell.ask({"reach": places, "within": WITHIN}))["unreached"]
    except SkywardError:
        return []
    return [
        f"{shell.where} cannot reach {other.where} at {host}:{port}: {why}."
        for (other, _), (host, port), why in zip(others, places, reasons, strict=True)
        if why and not other.leaving
    ]
