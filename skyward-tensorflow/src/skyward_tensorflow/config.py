"""
What TF_CONFIG says, and whether the processes of a broadcast can form the cluster that it names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import field, frozen

__all__ = ["State", "is_aftermath", "met", "tf_config"]

_OF_COLLECTIVES = frozenset(
    {"AbortedError", "CancelledError", "DeadlineExceededError", "FailedPreconditionError", "InternalError"}
    | {"UnavailableError", "UnknownError"}
)


def _workers(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return addresses as a tuple, which compares as one wants."""
    return None if given is None else tuple(given)


@frozen
class State:
    """
    Hold what a rank sends the others of its process.

    Args:
        address: Host and port at which its TensorFlow is to serve.
        cluster: Addresses of the cluster that its TensorFlow is set up for; empty if it runs without one, None if it
            has not been used yet.

    >>> State.parse(State("10.0.0.7:2222", ["10.0.0.7:2222"]).render())
    State(address='10.0.0.7:2222', cluster=('10.0.0.7:2222',))
    """

    address: str
    cluster: tuple[str, ...] | None = field(default=None, converter=_workers)

    def render(self) -> str:
        """Render it as text."""
        return json.dumps([self.address, self.cluster])

    @classmethod
    def parse(cls, text: str) -> State:
        """Read what `render` gave."""
        return cls(*json.loads(text))


def met(states: Sequence[State]) -> tuple[tuple[str, ...], bool]:
    """
    Return the cluster of a broadcast, and whether the processes of all ranks can be in it.

    TensorFlow sets up a process once: those that it was set up in otherwise have to be replaced.

    Args:
        states: Of all ranks, in their order.

    >>> met([State("a:1"), State("b:1")]), met([State("a:1"), State("b:1", ["a:2", "b:1"])])
    ((('a:1', 'b:1'), True), (('a:1', 'b:1'), False))
    """
    workers = tuple(state.address for state in states)
    clusters = {state.cluster for state in states}
    return workers, clusters in ({None}, {workers})


def tf_config(workers: Sequence[str], rank: int) -> str:
    """
    Render TF_CONFIG as TensorFlow documents it: all ranks are workers, of which the first is the chief.

    Source: tensorflow.org/guide/distributed_training, "Setting up the TF_CONFIG environment variable".

    Args:
        workers: Address of each rank.
        rank: Whose it is.

    >>> tf_config(["10.0.0.7:2222", "10.0.0.8:2222"], 1)
    '{"cluster": {"worker": ["10.0.0.7:2222", "10.0.0.8:2222"]}, "task": {"type": "worker", "index": 1}}'
    """
    return json.dumps({"cluster": {"worker": list(workers)}, "task": {"type": "worker", "index": rank}})


def is_aftermath(error: BaseException) -> bool:
    """
    Return whether an error may say only that another rank is gone.

    Args:
        error: What a rank ended with.

    >>> is_aftermath(ValueError("no"))
    False
    """
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return "OpError" in kinds and kinds[0] in _OF_COLLECTIVES
