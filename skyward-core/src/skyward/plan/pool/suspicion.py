"""
Which nodes have been silent for too long: a state machine that is given the time, and does no I/O.

A node that sends nothing for some seconds is suspected: it gets no new calls. While other nodes are heard, so that
the client's own line works, its calls are begun elsewhere, and some time later it counts as lost.
Where all nodes are silent, the client's line may be to blame: they are given as long as their leases last, unless
the machine of one is known to answer.

Only time in which the client itself looks counts: a loop that was blocked, or a laptop that slept, heard nothing
because it did not listen.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

N = TypeVar("N", bound=Hashable)

LOOKS: Final = 6
"""How often nodes are looked at before one that falls silent is suspected."""

BEATS: Final = 3
"""How many heartbeats a node sends in the same time; it skips one after it has sent anything else."""

SETTLING: Final = 1 / 3
"""The share of that time for which the client's line has to work before calls are begun elsewhere."""

_LATE: Final = 2.0
"""A look that comes so many times later than it should counts as one in time: the client did not listen."""


class Sign(NamedTuple):
    """
    What a look finds of a node.

    Args:
        arrivals: How often something has arrived from it.
        patience: Seconds that it may be silent where the client's own line may be to blame.
    """

    arrivals: int
    patience: float


class Verdict(Enum):
    """What becomes of a node."""

    SUSPECT = "suspect"
    """It gets no new calls."""
    EVACUATE = "evacuate"
    """Its calls are begun elsewhere, those that may."""
    TRUST = "trust"
    """It was heard again: it is used as before."""
    LOSE = "lose"
    """It counts as lost, and is replaced."""


class Judgement(NamedTuple, Generic[N]):
    """A verdict on a node, and for how many seconds it has been silent."""

    node: N
    verdict: Verdict
    silent: float


class _Silence:
    """What is known of one node."""

    __slots__ = ("answers", "count", "evacuated", "lost", "silent", "suspected")

    def __init__(self, count: int) -> None:
        self.begin(count)

    def begin(self, count: int) -> None:
        """Record that it was heard."""
        self.count = count
        self.silent = 0.0
        self.suspected = self.evacuated = self.answers = self.lost = False


class Suspicion(Generic[N]):
    """
    Decide about nodes by their silence.

    Args:
        suspect: Seconds of silence after which a node is suspected.
        lose: Seconds of silence after which it counts as lost, where the client's own line is known to work.

    >>> suspicion = Suspicion[str](suspect=15.0, lose=60.0)
    >>> heard = {"a": 7, "b": 3}
    >>> for second in range(0, 20, 2):
    ...     heard["a"] += 1
    ...     for node, verdict, silent in suspicion.look({n: Sign(c, 600.0) for n, c in heard.items()}, float(second)):
    ...         print(second, node, verdict.value, silent)
    16 b suspect 16.0
    16 b evacuate 16.0
    """

    def __init__(self, suspect: float, lose: float) -> None:
        self._suspect = suspect
        self._lose = max(suspect, lose)
        self._nodes: dict[N, _Silence] = {}
        self._looked: float | None = None
        # For how long at least one node has been heard.
        self._line = 0.0

    @property
    def interval(self) -> float:
        """Return the seconds between two looks."""
        return self._suspect / LOOKS

    def suspected(self, node: N) -> bool:
        """Return whether a node is suspected, and was not heard since."""
        return node in self._nodes and self._nodes[node].suspected

    def answers(self, node: N) -> None:
        """Record that the machine of a silent node answers: the line to it is not to blame."""
        if node in self._nodes:
            self._nodes[node].answers = True

    def look(self, signs: Mapping[N, Sign], now: float) -> list[Judgement[N]]:
        """
        Decide about all nodes.

        Args:
            signs: What there is of each; those that are left out are forgotten.
            now: Seconds on a clock that does not go back.
        """
        passed = self._passed(now)
        found: list[Judgement[N]] = []
        for gone in [node for node in self._nodes if node not in signs]:
            del self._nodes[gone]
        latest = inf
        for node, sign in signs.items():
            silence = self._nodes.get(node)
            if silence is None:
                silence = self._nodes[node] = _Silence(sign.arrivals)
            elif sign.arrivals == silence.count:
                silence.silent += passed
            else:
                if silence.suspected:
                    found.append(Judgement(node, Verdict.TRUST, silence.silent))
                silence.begin(sign.arrivals)
            latest = min(latest, silence.silent)
        self._line = self._line + passed if latest < self._gap else 0.0
        for node, silence in self._nodes.items():
            if silence.silent >= self._suspect:
                verdicts = self._of(silence, signs[node].patience, others=latest <= silence.silent - self._gap)
                found += (Judgement(node, verdict, silence.silent) for verdict in verdicts)
        return found

    @property
    def _gap(self) -> float:
        """Return the seconds after which a node that works has sent something, at the latest."""
        return 2 * self._suspect / BEATS

    def _passed(self, now: float) -> float:
        """Return the seconds since the last look, no more than the client can have listened."""
        passed = 0.0 if self._looked is None else now - self._looked
        self._looked = now
        return passed if passed <= _LATE * self.interval else self.interval

    def _of(self, silence: _Silence, patience: float, *, others: bool) -> list[Verdict]:
        """Return what becomes of a node that has been silent for too long; others may have been heard since."""
        found = []
        if not silence.suspected:
            silence.suspected = True
            found.append(Verdict.SUSPECT)
        if not silence.evacuated and others and self._line >= SETTLING * self._suspect:
            silence.evacuated = True
            found.append(Verdict.EVACUATE)
        proven = silence.answers or (others and self._line >= self._suspect)
        if not silence.lost and silence.silent >= (self._lose if proven else max(self._lose, patience)):
            silence.lost = True
            found.append(Verdict.LOSE)
        return found
