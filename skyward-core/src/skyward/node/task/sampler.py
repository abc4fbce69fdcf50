"""
Which samples of a data set a rank trains on, epoch by epoch: `DistributedSampler`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized

from skyward.errors import ConfigError
from skyward.node.task import runtime
from skyward.node.task.shard import checked_index
from skyward.node.task.torch_order import permutation

__all__ = ["DistributedSampler"]


class DistributedSampler:
    """
    Give a rank its samples of each epoch, for the `sampler` of a torch `DataLoader`.

    It takes what torch's own sampler takes and gives the same samples in the same order, also where there is no
    torch, and needs no process group: ranks take turns in the order of the epoch, and every rank has equally many
    samples, so that none waits for another at an epoch's end.
    Where the samples cannot be shared out evenly, the first ones of the epoch are used once more to fill up, or with
    `drop_last` those at the end are left out.

    Args:
        dataset: What the samples are counted of.
        num_replicas: Among how many to share; by default the pool's ranks.
        rank: Whose samples to give, from 0; by default this rank's.
        shuffle: Whether each epoch has an order of its own: that of `torch.randperm` for `seed` and epoch added up.
        seed: What the orders follow from; None means 0, because all ranks need the same.
        drop_last: Whether to leave samples out instead of using some twice.

    Raises:
        ConfigError: If `rank` or `num_replicas` is out of range, or the data set has no length.

    >>> list(DistributedSampler("abcde", shuffle=False, num_replicas=2, rank=1))
    [1, 3, 0]
    >>> list(DistributedSampler("abcde", shuffle=False, num_replicas=2, rank=1, drop_last=True))
    [1, 3]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,  # noqa: FBT001, FBT002  # torch's signature
        seed: int | None = 0,
        drop_last: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        replicas = runtime.instance_info().total_workers if num_replicas is None else num_replicas
        self.num_replicas = checked_index("num_replicas", replicas)
        if self.num_replicas < 1:
            raise ConfigError(f"num_replicas={self.num_replicas} is out of range; it must be at least 1.")
        self.rank = checked_index("rank", runtime.instance_info().global_worker_index if rank is None else rank)
        if not 0 <= self.rank < self.num_replicas:
            raise ConfigError(
                f"rank={self.rank} is out of range; with num_replicas={self.num_replicas} it must be from 0 to "
                f"{self.num_replicas - 1}."
            )
        if not hasattr(dataset, "__len__"):
            raise ConfigError(
                f"dataset is a {type(dataset).__name__}, which has no length; a sampler needs a data set with len()."
            )
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = 0 if seed is None else checked_index("seed", seed)
        self.drop_last = drop_last
        self.epoch = 0

    @property
    def num_samples(self) -> int:
        """Return how many samples each rank has in an epoch."""
        size, over = divmod(len(self.dataset), self.num_replicas)
        return size + (over > 0 and not self.drop_last)

    @property
    def total_size(self) -> int:
        """Return how many samples all ranks together have in an epoch."""
        return self.num_samples * self.num_replicas

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        places: Sequence[int] = permutation(length, self.seed + self.epoch) if self.shuffle else range(length)
        return (places[place % length] for place in range(self.rank, self.total_size, self.num_replicas))

    def set_epoch(self, epoch: int) -> None:
        """
        Take the order of another epoch; without this all epochs have one order.

        A run that is resumed sets the epoch that it goes on with: the order follows from nothing else.

        Args:
            epoch: Its number; the same on all ranks.

        Raises:
            ConfigError: If it is no whole number.

        >>> sampler = DistributedSampler(range(100), num_replicas=1, rank=0)
        >>> first = list(sampler)
        >>> sampler.set_epoch(1)
        >>> first == list(sampler)
        False
        """
        self.epoch = checked_index("epoch", epoch)
