import hashlib
import sys

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.node.task import task_context
from skyward.node.task.sampler import DistributedSampler

# What torch.utils.data.DistributedSampler gives each rank with shuffle=False:
# (samples, replicas, drop_last, samples of each rank).
TORCH = [
    (6, 2, False, [[0, 2, 4], [1, 3, 5]]),
    (6, 2, True, [[0, 2, 4], [1, 3, 5]]),
    (5, 2, False, [[0, 2, 4], [1, 3, 0]]),
    (5, 2, True, [[0, 2], [1, 3]]),
    (7, 3, False, [[0, 3, 6], [1, 4, 0], [2, 5, 1]]),
    (7, 3, True, [[0, 3], [1, 4], [2, 5]]),
    (3, 5, False, [[0], [1], [2], [0], [1]]),
    (1, 4, False, [[0], [0], [0], [0]]),
    (1, 4, True, [[], [], [], []]),
    (0, 2, False, [[], []]),
    (4, 1, False, [[0, 1, 2, 3]]),
]


def ranks(length, replicas, **settings):
    return [DistributedSampler(range(length), num_replicas=replicas, rank=rank, **settings) for rank in range(replicas)]


@pytest.mark.parametrize(("length", "replicas", "drop_last", "expected"), TORCH)
def test_samples_are_shared_out_as_torch_does(length, replicas, drop_last, expected):
    """
    Ranks take turns, and what is missing at the end comes from the beginning or is dropped.
    """
    samplers = ranks(length, replicas, shuffle=False, drop_last=drop_last)
    assert expected == [list(sampler) for sampler in samplers]
    assert [len(part) for part in expected] == [len(sampler) for sampler in samplers]


@given(st.integers(0, 60), st.integers(1, 9), st.booleans(), st.integers(0, 3), st.integers(0, 3))
def test_shuffled_epochs_are_complete(length, replicas, drop_last, seed, epoch):
    """
    All ranks have equally many samples; together they have every sample, or with `drop_last` none twice.
    """
    samplers = ranks(length, replicas, drop_last=drop_last, seed=seed)
    for sampler in samplers:
        sampler.set_epoch(epoch)
    got = [list(sampler) for sampler in samplers]
    together = [sample for part in got for sample in part]
    assert len({len(part) for part in got}) == 1
    assert set(together) <= set(range(length))
    assert len(set(together)) == (length // replicas * replicas if drop_last else length)


def test_epochs_and_seeds_have_orders_of_their_own():
    """
    An epoch, and a seed, is an order; the same two are the same order, and as in torch the two are added up.
    """
    sampler, other = DistributedSampler(range(100)), DistributedSampler(range(100), seed=1)
    first = list(sampler)
    assert first == list(sampler)
    sampler.set_epoch(1)
    assert first != list(sampler)
    assert list(other) == list(sampler)
    sampler.set_epoch(0)
    assert first == list(sampler)


# What torch 2.13 gives rank 1 of 3 with shuffle=True: (samples, seed, epoch, drop_last, samples of the rank).
SHUFFLED = [
    (10, 0, 0, False, [1, 3, 8, 4]),
    (10, 0, 0, True, [1, 3, 8]),
    (11, 1, 2, False, [0, 4, 8, 7]),
    (7, 0, 3, True, [3, 0]),
    (2, 5, 0, False, [0]),
    (0, 0, 0, False, []),
    (9, 3, 0, False, [1, 0, 8]),
    (9, 2**32 + 3, 0, False, [1, 0, 8]),
    (12, 2**64 - 1, 0, False, [1, 2, 11, 7]),
    (12, -1, 0, False, [1, 2, 11, 7]),
    (12, -(2**63), 0, True, [0, 7, 10, 11]),
]
# Of what it gives the only rank of 100,000 samples with seed 7, as a list.
LONG = "de94d4d6c9fdb4035bb915455fba1acf86ab328d8c3a30444575800213f7af2c"


@pytest.mark.parametrize(("length", "seed", "epoch", "drop_last", "expected"), SHUFFLED)
def test_shuffled_samples_are_torchs(length, seed, epoch, drop_last, expected):
    """
    On every machine and Python, with torch and without.
    """
    sampler = DistributedSampler(range(length), num_replicas=3, rank=1, seed=seed, drop_last=drop_last)
    sampler.set_epoch(epoch)
    assert expected == list(sampler)


def test_long_orders_are_torchs():
    """
    A hundred thousand samples, which take many more numbers than the generator makes at once.
    """
    order = list(DistributedSampler(range(100_000), num_replicas=1, rank=0, seed=7))
    assert sorted(order) == list(range(100_000))
    assert hashlib.sha256(repr(order).encode()).hexdigest() == LONG


def test_arguments_come_in_torchs_order():
    """
    What is passed to torch's sampler can be passed to this one.
    """
    sampler = DistributedSampler(range(9), 3, 1, False, 5, True)
    assert (sampler.num_replicas, sampler.rank, sampler.shuffle, sampler.seed, sampler.drop_last) == (
        3,
        1,
        False,
        5,
        True,
    )


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_that_torch_does_not_take_are_refused(seed):
    """
    As in torch, where samples are shuffled.
    """
    with pytest.raises(ConfigError, match=r"torch takes seeds from -2\*\*63 to 2\*\*64 - 1"):
        list(DistributedSampler(range(4), seed=seed))
    assert list(DistributedSampler(range(4), seed=seed, shuffle=False)) == [0, 1, 2, 3]


def test_orders_that_only_torch_makes_need_it(monkeypatch):
    """
    Without it they are refused, and not made in another way.
    """
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigError, match="214748364 samples are shuffled by torch, and it is not installed"):
        list(DistributedSampler(range(214_748_364)))


def test_rank_comes_from_the_task():
    """
    In a task the ranks of the pool share the samples; outside there is one rank.
    """
    facts = {"node": 1, "worker": 0, "workers_per_node": 2}
    context = task_context.TaskContext(call_id=1, function="f", facts=facts, membership={"total_nodes": 2})
    token = task_context.set_context(context)
    try:
        assert list(DistributedSampler(range(8), shuffle=False)) == [2, 6]
    finally:
        task_context.reset_context(token)
    assert list(DistributedSampler(range(8), shuffle=False)) == list(range(8))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": iter(())}, "dataset is a tuple_iterator, which has no length"),
        ({"num_replicas": 0}, "num_replicas=0 is out of range"),
        ({"num_replicas": 2, "rank": 2}, "rank=2 is out of range; with num_replicas=2 it must be from 0 to 1"),
        ({"num_replicas": 2, "rank": 1.0}, "rank=1.0 is no whole number"),
        ({"seed": "a"}, "seed='a' is no whole number"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    """
    The error names the parameter and what it takes.
    """
    with pytest.raises(ConfigError, match=message):
        DistributedSampler(**{"dataset": range(4), **settings})
