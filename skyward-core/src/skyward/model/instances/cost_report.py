"""
What a pool costs, and where its time went.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from skyward.markup import DIM, FRAME, cell, element, escaped, table

__all__ = ["Cost", "FirstResult", "NodeReceipt", "Receipt", "money"]

# Machines that a notebook shows; the rest is counted.
_ROWS = 50
_HEADS = ("node", "machine", "billed", "booting", "preparing", "computing", "idle", "ending", "cost", "")


def money(usd: float) -> str:
    """
    Return an amount of USD; small ones keep two digits that count.

    >>> money(12.5), money(0.0042), money(0.0000083), money(0)
    ('$12.50', '$0.0042', '$0.0000083', '$0.00')
    """
    if usd >= 0.1 or usd == 0:
        return f"${usd:,.2f}"
    return f"${usd:.{1 - math.floor(math.log10(abs(usd)))}f}"


@frozen(kw_only=True)
class Cost:
    """
    Say what a pool has cost until one moment, in USD.

    Args:
        accumulated: What is owed for the time until then, rounded up as the cloud does.
        hourly_rate: What an hour of the machines costs that are billed at that moment.
        savings: How much less that is than the same machines would have cost on demand.
        spot_count: Machines billed at that moment that may be reclaimed.
        ondemand_count: Machines billed at that moment that may not.
        seconds: Seconds since the first machine was rented, or until the last one ended.

    >>> Cost(accumulated=1.5, hourly_rate=3.0).accumulated
    1.5
    """

    accumulated: float = 0.0
    hourly_rate: float = 0.0
    savings: float = 0.0
    spot_count: int = 0
    ondemand_count: int = 0
    seconds: float = 0.0


@frozen(kw_only=True)
class FirstResult:
    """
    Say what the time until a pool's first result went into, in seconds, in the order of the phases.

    The phases follow one another without a gap, along the node that gave the result.

    Args:
        offers: Until the first machine was asked for: what is sold was listed, and one chosen.
        launch: Until the cloud had granted the machine.
        boot: Until it could be reached.
        bootstrap: Until its environment was made.
        agent: Until its agent and workers took calls.
        waiting: Until a call began: the program did something else, or waited for other nodes.
        first_call: Until the call's result was there.

    >>> FirstResult(offers=1, launch=1, boot=30, bootstrap=20, agent=2, waiting=0, first_call=1).total
    55
    """

    offers: float
    launch: float
    boot: float
    bootstrap: float
    agent: float
    waiting: float
    first_call: float

    @property
    def total(self) -> float:
        """Add up the phases."""
        return self.offers + self.launch + self.boot + self.bootstrap + self.agent + self.waiting + self.first_call


@frozen(kw_only=True)
class NodeReceipt:
    """
    Say what one machine of a pool did with its time, and what it cost.

    `booting`, `preparing`, `computing`, `idle` and `ending` add up to `seconds`.

    Args:
        node: Index of the node it was rented for.
        instance_id: The provider's name for it.
        provider: The provider's name.
        instance_type: The provider's name for this kind of machine.
        accelerator: Its accelerators, such as `"8 × A100 40GB"`; None without any, or where that is not known.
        spot: Whether the provider might have reclaimed it.
        hourly_rate: What it cost, in USD an hour; 0 where nothing is billed.
        seconds: From the answer to its launch until its end was confirmed.
        billed_seconds: The same, rounded up as the cloud does.
        booting: Seconds until it could be reached.
        preparing: Seconds from then until its workers took calls.
        computing: Seconds in which at least one call ran on it.
        idle: Seconds in which it was ready and no call ran.
        ending: Seconds from the request to terminate it until the provider confirmed that.
        cost: In USD: its rate times the billed seconds.
        ended: Whether the provider confirmed its end; if not, it may still be billed.
        reason: Why it was terminated, such as a failed health check; empty where it was not.
    """

    node: int
    instance_id: str
    provider: str
    instance_type: str | None
    spot: bool
    hourly_rate: float
    seconds: float
    billed_seconds: float
    booting: float
    preparing: float
    computing: float
    idle: float
    ending: float
    cost: float
    ended: bool
    accelerator: str | None = None
    reason: str = ""


@frozen(kw_only=True)
class Receipt:
    """
    Say what a pool has cost in the end, and where the time went.

    All times were measured by the client's monotonic clock; money is in USD.

    Args:
        nodes: One for each machine, in the order of their launch; a node that was replaced has several.
        total_cost: What all of them cost.
        savings: How much less that is than they would have cost on demand.
        seconds: From the first launch until the last confirmed end.
        foreseen: What the nodes asked for cost at their prices if each lives for `timeout=`, without replacements;
            None where the pool has no `timeout=`, because nothing said then how long it would last.
        first_result: What the time until the first result went into; None if there was none.
        lingering: How many machines wait for the next pool.
        linger_s: How long they wait at most, in seconds.
        linger_cost: What that costs at most, in USD; no part of the total.
    """

    nodes: tuple[NodeReceipt, ...] = ()
    total_cost: float = 0.0
    savings: float = 0.0
    seconds: float = 0.0
    foreseen: float | None = None
    first_result: FirstResult | None = None
    lingering: int = 0
    linger_s: float = 0.0
    linger_cost: float = 0.0

    def spent(self, what: Literal["booting", "preparing", "computing", "idle", "ending"]) -> float:
        """
        Add up the seconds that all machines spent on something.

        Args:
            what: The name of a field of their receipts.

        >>> Receipt().spent("idle")
        0.0
        """
        return math.fsum(getattr(node, what) for node in self.nodes)

    def _repr_html_(self) -> str:
        """Return the receipt as a table, for notebooks."""
        return _receipt_html(self)


def _receipt_html(receipt: Receipt) -> str:
    parts = [element("div", line) for line in _lines(receipt)]
    if receipt.nodes:
        parts.append(table(map(_row, receipt.nodes[:_ROWS]), _HEADS))
    if len(receipt.nodes) > _ROWS:
        parts.append(element("div", escaped(f"+ {len(receipt.nodes) - _ROWS:,} more"), DIM))
    return element("div", "".join(parts), FRAME)


def _lines(receipt: Receipt) -> Iterator[str]:
    saved = f", {money(receipt.savings)} less than on demand" if receipt.savings > 0 else ""
    yield f"{element('b', escaped(money(receipt.total_cost)))} {escaped(f'for {_time(receipt.seconds)}{saved}')}"
    if receipt.foreseen is not None:
        yield element("span", escaped(f"foreseen {money(receipt.foreseen)}"), DIM)
    if receipt.first_result is not None:
        yield element("span", escaped(f"first result after {_time(receipt.first_result.total)}"), DIM)
    if receipt.lingering:
        most = f", for {money(receipt.linger_cost)} more at most" if receipt.linger_cost else ""
        waits = f"{receipt.lingering} waiting for the next pool for {_time(receipt.linger_s)}{most}"
        yield element("span", escaped(waits), DIM)


def _row(node: NodeReceipt) -> list[str]:
    kind = " ".join(filter(None, ("spot" if node.spot else "", node.instance_type, node.accelerator or "")))
    spent = (node.booting, node.preparing, node.computing, node.idle, node.ending)
    notes = " · ".join(filter(None, (node.reason, "" if node.ended else "may still be billed")))
    facts = [
        f"node-{node.node}",
        f"{node.provider} {node.instance_id} {kind}".strip(),
        _time(node.billed_seconds),
        *map(_time, spent),
        money(node.cost),
        notes,
    ]
    return [cell(escaped(fact)) for fact in facts]


def _time(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
