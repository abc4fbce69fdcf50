"""Our sampler beside torch's: the same arguments give the same samples in the same order."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

import skyward as sky
from skyward.node.task import torch_order
from skyward.node.task.torch_order import permutation

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(180)]

LENGTHS = st.one_of(st.integers(0, 70), st.sampled_from([623, 624, 625, 1000, 65_535, 65_536, 65_537, 65_538, 200_000]))
SEEDS = st.one_of(st.integers(0, 10), st.integers(-(2**63), 2**64 - 1000))


def theirs(*arguments: Any, **keywords: Any) -> Any:
    """Make torch's sampler."""
    from torch.utils.data import DistributedSampler

    return DistributedSampler(*arguments, **keywords)


@given(
    length=LENGTHS,
    replicas=st.integers(1, 9),
    rank=st.integers(0, 8),
    shuffle=st.booleans(),
    seed=SEEDS,
    drop_last=st.booleans(),
    epochs=st.lists(st.integers(0, 999), max_size=3),
)
@example(length=1, replicas=4, rank=3, shuffle=True, seed=0, drop_last=False, epochs=[])
@example(length=1, replicas=4, rank=3, shuffle=True, seed=0, drop_last=True, epochs=[1])
def test_samples_are_torchs(
    length: int, replicas: int, rank: int, shuffle: bool, seed: int, drop_last: bool, epochs: list[int]
) -> None:
    """And so are lengths, in every epoch, in whichever order epochs are taken, and again without a `set_epoch`."""
    arguments = (range(length), replicas, rank % replicas, shuffle, seed, drop_last)
    expected, ours = theirs(*arguments), sky.DistributedSampler(*arguments)
    for epoch in [None, *epochs, None]:
        if epoch is not None:
            expected.set_epoch(epoch)
            ours.set_epoch(epoch)
        assert list(expected) == list(ours)
        assert (len(expected), expected.num_samples, expected.total_size) == (
            len(ours),
            ours.num_samples,
            ours.total_size,
        )


@given(length=LENGTHS, seed=SEEDS)
def test_orders_without_torch_are_torchs(length: int, seed: int) -> None:
    """A node that has no torch, and a client that has not loaded it, get the same order."""
    assert (
        torch_order._of_torch(length, seed) == torch_order._of_python(length, seed) == list(permutation(length, seed))
    )


@given(length=st.integers(1, 50), seed=st.integers(0, 9), epoch=st.integers(1, 9))
def test_a_run_is_resumed_at_its_epoch(length: int, seed: int, epoch: int) -> None:
    """A sampler that is made afresh, or comes from a checkpoint, goes on as torch's that has run from the start."""
    settings = {"num_replicas": 2, "rank": 1, "seed": seed}
    expected, kept = theirs(range(length), **settings), sky.DistributedSampler(range(length), **settings)
    for passed in range(epoch):
        expected.set_epoch(passed)
        kept.set_epoch(passed)
        list(expected)
    fresh, restored = sky.DistributedSampler(range(length), **settings), pickle.loads(pickle.dumps(kept))
    assert list(expected) == list(restored)
    for sampler in (expected, fresh, restored):
        sampler.set_epoch(epoch)
    assert list(expected) == list(fresh) == list(restored)


@pytest.mark.parametrize(
    "use",
    [
        lambda make: make(range(4), 2, 2),
        lambda make: make(range(4), 2, -1),
        lambda make: make(range(4), 0, 0),
        lambda make: make(iter(range(4)), 2, 0),
        lambda make: list(make(range(4), 2, 0, seed=2**64)),
        lambda make: list(make(range(4), 2, 0, seed=-(2**63) - 1)),
        lambda make: list(make(range(4), 2, 0, seed="0")),
    ],
    ids=["rank beyond", "rank below", "no replicas", "no length", "seed beyond", "seed below", "seed of text"],
)
def test_what_torch_refuses_is_refused(use: Callable[[Callable[..., Any]], object]) -> None:
    """By a `ConfigError`, which says what is wrong."""
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        use(theirs)
    with pytest.raises(sky.ConfigError):
        use(sky.DistributedSampler)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_counts_only_where_samples_are_shuffled(seed: int) -> None:
    """As in torch's."""
    arguments = (range(4), 2, 0, False, seed)
    assert list(theirs(*arguments)) == list(sky.DistributedSampler(*arguments))


def test_a_loader_takes_it() -> None:
    """A `DataLoader` gives the batches that it gives with torch's own, with workers too."""
    from torch.utils.data import DataLoader

    for workers in (0, 2):
        ours, expected = (
            DataLoader(range(20), sampler=make(range(20), 3, 1, seed=5), batch_size=4, num_workers=workers)  # type: ignore[arg-type, var-annotated]
            for make in (sky.DistributedSampler, theirs)
        )
        assert [batch.tolist() for batch in expected] == [batch.tolist() for batch in ours]
