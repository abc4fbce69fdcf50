"""What ranks tell each other of their processes, and what TF_CONFIG says then."""

from __future__ import annotations

import json

import pytest

from skyward_tensorflow.config import State, is_aftermath, met, tf_config

HERE, THERE = "10.0.0.7:2222", "10.0.0.8:2223"
BOTH = (HERE, THERE)


@pytest.mark.parametrize(
    ("clusters", "possible"),
    [
        ((None, None), True),
        ((BOTH, BOTH), True),
        ((None, BOTH), False),
        (((), None), False),
        (((), ()), False),
        (((HERE, "10.0.0.8:9"), None), False),
        (((THERE, HERE), (THERE, HERE)), False),
    ],
)
def test_a_cluster_is_of_processes_that_were_not_used_or_are_in_it(
    clusters: tuple[tuple[str, ...] | None, ...], possible: bool
) -> None:
    """One that computed by itself, or was in another cluster, cannot join."""
    states = [State(address, cluster) for address, cluster in zip(BOTH, clusters, strict=True)]
    assert (BOTH, possible) == met([State.parse(state.render()) for state in states])


def test_tf_config_is_what_tensorflow_documents() -> None:
    """The cluster is the same on all ranks, and the task is each one's own."""
    told = [json.loads(tf_config(BOTH, rank)) for rank in (0, 1)]
    cluster = {"worker": [HERE, THERE]}
    assert [{"cluster": cluster, "task": {"type": "worker", "index": rank}} for rank in (0, 1)] == told


class OpError(Exception):
    """Named as TensorFlow names the base of its errors."""


class UnavailableError(OpError):
    """Named as TensorFlow names what a lost connection raises."""


class InvalidArgumentError(OpError):
    """Named as TensorFlow names what a wrong call raises."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [(UnavailableError(), True), (InvalidArgumentError(), False), (OSError("reset by peer"), False)],
)
def test_an_error_that_only_tells_of_another_rank_s_end_is_known(error: Exception, expected: bool) -> None:
    """Those of TensorFlow that a lost rank causes in a collective, and no others."""
    assert expected == is_aftermath(error)
