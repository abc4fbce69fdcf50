"""
The process groups of this process: one that it shares with the other ranks of broadcasts, and one of itself alone.
"""

from __future__ import annotations

import atexit
import inspect
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from functools import partial, wraps
from typing import Any

import torch
import torch.distributed as dist

from skyward import InstanceInfo, PluginError, instance_info
from skyward.aftermath import AFTERMATH
from skyward.node.task.hang import watched
from skyward.one_task import OneTask
from skyward_torch import default_group, network, spawning
from skyward_torch.agreement import is_aftermath, is_met
from skyward_torch.backends import default_backend
from skyward_torch.environment import environment
from skyward_torch.failing import FAILED
from skyward_torch.store import RendezvousStore

__all__ = ["GROUPS"]


class Groups:
    """Hold what there is once in a process, because torch has one default group in each."""

    def __init__(self) -> None:
        self._task = OneTask("torch", "process group")
        self._meeting = RendezvousStore()
        self._shared: Any = None
        self._shared_name = b""
        self._shared_by: object = None
        self._shared_count = 0
        self._failed = 0
        self._alone: Any = None
        self._alone_count = default_group.ALONE
        self._given: tuple[object, ...] = ()
        self._variables: dict[str, str] = {}
        self._original: Callable[..., Any] | None = None
        self._broadcast = 0
        self._inits = 0
        self._backend = ""
        self._timeout: timedelta | None = None

    @contextmanager
    def prepared(self, info: InstanceInfo, backend: str | None) -> Iterator[None]:
        """
        Make the process ready for tasks, and leave nothing behind.

        Args:
            info: The rank's place.
            backend: The backend that was asked for.
        """
        if backend == "nccl" and not torch.cuda.is_available():
            raise PluginError(
                f"backend='nccl' needs NVIDIA's GPUs, and torch sees none on node {info.node}.",
                plugin="torch",
                hook="around_process",
                hint="Leave backend= out, or ask for an accelerator.",
            )
        network.name_interface(info)
        self._tolerate()
        try:
            yield
        finally:
            self.close()

    @contextmanager
    def around(
        self, backend: str | None, hang_timeout: float | None, collective_timeout: float | None
    ) -> Iterator[None]:
        """
        Set the call's group as the default one while it runs.

        Args:
            backend: The backend that was asked for.
            hang_timeout: Seconds in which one of the ranks has to enter a collective; None for no limit.
            collective_timeout: Seconds that a collective has; None for torch's own limit.
        """
        if self._task.is_here or default_group.current() is not None:
            # Another library's group, or an integration within the plugin: there is one already.
            yield
            return
        with self._task:
            self._tolerate()
            info = instance_info()
            broadcast = bool(info.broadcast) and info.total_workers > 1
            self._tell(info, broadcast=broadcast)
            self._broadcast, self._inits = info.broadcast if broadcast else 0, 0
            self._backend = backend or default_backend(info, torch.cuda.device_count())
            self._timeout = None if collective_timeout is None else timedelta(seconds=collective_timeout)
            if broadcast:
                yield from self._together(info, hang_timeout)
            else:
                yield from self._by_itself()

    def close(self) -> None:
        """Destroy every group, and leave the store."""
        default_group.close_all(self._shared, broken=False)
        default_group.close_all(self._alone, broken=False)
        self._shared = self._alone = None
        self._meeting.close()

    def _together(self, info: InstanceInfo, hang_timeout: float | None) -> Iterator[None]:
        """Run a rank's part of a broadcast."""
        ours = False
        try:
            self._agree(info)
            ours = True
            default_group.number_from(self._shared_count)
            default_group.use(self._shared)
            with self._watched(info, hang_timeout):
                yield
        except Exception as error:
            self._leave(broken=True)
            if ours and is_aftermath(error):
                time.sleep(AFTERMATH)
            raise
        except BaseException:
            self._leave(broken=True)
            raise
        self._leave(broken=False)

    def _watched(self, info: InstanceInfo, limit: float | None) -> AbstractContextManager[None]:
        if limit is None:
            return nullcontext()

        return watched(
            limit, default_group.entered_anywhere, "entered a collective", partial(self._meeting.said_by_head, info)
        )

    def _by_itself(self) -> Iterator[None]:
        """Run a call that is a world of one."""
        if not default_group.alive(self._alone):
            store = dist.HashStore()
            self._alone = self._made(default_group.ALONE, store=store, rank=0, world_size=1)
            self._alone_count = default_group.numbered()
        default_group.number_from(self._alone_count)
        default_group.use(self._alone)
        try:
            yield
        finally:
            if default_group.current() not in (self._alone, None):
                default_group.close_all(default_group.current(), broken=False)
            default_group.use(None)
            self._alone_count = default_group.numbered()

    def _agree(self, info: InstanceInfo) -> None:
        """Return the group of a broadcast, which is the last one's if nothing has changed."""
        place = (info.peers, info.total_workers, info.global_worker_index, info.head_addr, info.head_port)
        by = (*place, self._backend, self._timeout)
        usable = default_group.alive(self._shared) and FAILED.count == self._failed and by == self._shared_by
        # Ranks that have entered different numbers of collectives would wait for each other, or take one for another.
        holds = b"%s/%d" % (self._shared_name, default_group.entered(self._shared)) if usable else b""
        name = self._meeting.agree(info, holds)
        self._failed = FAILED.count
        if name != holds:
            default_group.close_all(self._shared, broken=False)
            self._shared = None
            store = dist.PrefixStore(f"group/{name.decode()}", self._meeting.store)
            self._shared = self._made(
                info.broadcast, store=store, rank=info.global_worker_index, world_size=info.total_workers
            )
            self._shared_name, self._shared_by, self._shared_count = name, by, default_group.numbered()

    def _made(self, count: int, **settings: Any) -> Any:
        assert self._original is not None
        limit = {} if self._timeout is None else {"timeout": self._timeout}
        return default_group.made(self._original, count=count, backend=self._backend, **limit, **settings)

    def _leave(self, *, broken: bool) -> None:
        """Set the group aside; one that failed, and one of the user's own, is destroyed."""
        current = default_group.current()
        if current is not None and current is not self._shared:
            default_group.close_all(current, broken=broken)
        elif broken:
            default_group.close_all(self._shared, broken=True)
        if not default_group.alive(self._shared):
            # Its connections end with the last reference, and the others have to notice.
            self._shared = None
        self._shared_count = default_group.numbered()
        default_group.use(None)

    def _tell(self, info: InstanceInfo, *, broadcast: bool) -> None:
        """Set the variables of the call; they are the same for most calls in a row."""
        given = (broadcast, info.node, info.worker, info.total_workers, info.head_addr, info.head_port, info.job_id)
        if given != self._given:
            own = os.environ.get("SKYWARD_DEVICE") is not None
            self._variables, self._given = environment(info, own_device=own), given
        # An earlier task may have written others there.
        for name, text in self._variables.items():
            if os.environ.get(name) != text:
                os.environ[name] = text

    def _tolerate(self) -> None:
        """Accept in `init_process_group` the group that is there, as what was written for torchrun calls it."""
        if self._original is not None:
            return
        original = self._original = dist.init_process_group
        parameters = inspect.signature(original)
        atexit.register(self.close)
        spawning.prepare()
        FAILED.prepare()

        @wraps(original)
        def init_process_group(*args: Any, **kwargs: Any) -> None:
            asked = parameters.bind(*args, **kwargs).arguments
            current = default_group.current()
            if not self._task.is_here or current not in (self._shared, self._alone, None):
                original(**asked)
            elif current is None or not is_met(
                asked,
                backend=self._backend,
                rank=dist.get_rank(),
                world_size=dist.get_world_size(),
                timeout=self._timeout,
            ):
                self._replace(asked, original)

        dist.init_process_group = init_process_group
        dist.distributed_c10d.init_process_group = init_process_group

    def _replace(self, asked: dict[str, Any], original: Callable[..., Any]) -> None:
        """Make the group that the user wants in place of ours, among the same ranks if nothing else is said."""
        default_group.close_all(default_group.current(), broken=False)
        if asked.get("store") is None and asked.get("init_method") in (None, "env://"):
            asked.pop("init_method", None)
            self._inits += 1
            name = f"user/{self._broadcast}/{self._inits}"
            store = dist.PrefixStore(name, self._meeting.store) if self._broadcast else dist.HashStore()
            rank, size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
            if self._timeout is not None:
                asked.setdefault("timeout", self._timeout)
            asked |= {"store": store, "rank": rank, "world_size": size}
        original(**asked)


GROUPS = Groups()
"""The groups of this process."""
