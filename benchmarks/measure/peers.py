"""
Ours and the peers behind one face, set up alike: the same nodes, the same slots, warm.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

PEERS = {"Ray": "ray", "Dask": "distributed"}
SYSTEMS = ("Skyward", *PEERS)

Call = Callable[..., Any]


class System(Protocol):
    """
    Run functions somewhere else.
    """

    def prepare(self, function: Call) -> Any:
        """
        Make a handle of a plain function, as a user of the system would.
        """

    def call(self, handle: Any, *args: Any) -> Any:
        """
        Run one call and wait for its result.
        """

    def map(self, handle: Any, items: Sequence[Any]) -> list[Any]:
        """
        Run one call an item, all in flight at once, and wait for all.
        """

    def interleave(self, handles: Sequence[Any], items: Sequence[Any]) -> list[Any]:
        """
        Run one call an item, the functions taking turns, all in flight at once.
        """


def installed(system: str) -> bool:
    """
    Tell whether a system can be measured here.
    """
    return system not in PEERS or importlib.util.find_spec(PEERS[system]) is not None


def version(system: str) -> str:
    """
    Read a system's installed version.
    """
    return importlib.metadata.version(PEERS.get(system, "skyward-core"))


class Skyward:
    """
    Run functions in a Skyward pool.
    """

    def __init__(self, pool: Any, timeout: float | None) -> None:
        self.pool = pool
        self.timeout = timeout

    def prepare(self, function: Call) -> Any:
        import skyward as sky

        return sky.function(timeout=self.timeout)(function) if self.timeout else sky.function(function)

    def call(self, handle: Any, *args: Any) -> Any:
        return handle(*args) >> self.pool

    def map(self, handle: Any, items: Sequence[Any]) -> list[Any]:
        return list(self.pool.map(handle, items))

    def interleave(self, handles: Sequence[Any], items: Sequence[Any]) -> list[Any]:
        import skyward as sky

        return list(sky.gather(*(handles[i % len(handles)](item) for i, item in enumerate(items))) >> self.pool)


class Ray:
    """
    Run functions as Ray tasks.
    """

    def __init__(self, ray: Any) -> None:
        self.ray = ray

    def prepare(self, function: Call) -> Any:
        return self.ray.remote(function)

    def call(self, handle: Any, *args: Any) -> Any:
        return self.ray.get(handle.remote(*args))

    def map(self, handle: Any, items: Sequence[Any]) -> list[Any]:
        return list(self.ray.get([handle.remote(item) for item in items]))

    def interleave(self, handles: Sequence[Any], items: Sequence[Any]) -> list[Any]:
        return list(self.ray.get([handles[i % len(handles)].remote(item) for i, item in enumerate(items)]))


class Dask:
    """
    Run functions through a Dask client.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def prepare(self, function: Call) -> Any:
        return function

    # Calls are not pure: otherwise equal ones would be answered from the scheduler's memory.
    def call(self, handle: Any, *args: Any) -> Any:
        return self.client.submit(handle, *args, pure=False).result()

    def map(self, handle: Any, items: Sequence[Any]) -> list[Any]:
        return list(self.client.gather(self.client.map(handle, items, pure=False)))

    def interleave(self, handles: Sequence[Any], items: Sequence[Any]) -> list[Any]:
        calls = [self.client.submit(handles[i % len(handles)], item, pure=False) for i, item in enumerate(items)]
        return list(self.client.gather(calls))


@contextmanager
def open_system(system: str, *, nodes: int = 1, slots: int = 2, watched: bool = False) -> Iterator[System]:
    """
    Open a system on this machine.

    Args:
        system: One of `SYSTEMS`.
        nodes: Number of nodes.
        slots: Calls that a node runs at once.
        watched: With event handlers, logs and timeouts on; only ours has them.
    """
    opened = {"Skyward": open_skyward, "Ray": open_ray, "Dask": open_dask}[system]
    with opened(nodes, slots, watched) as face:
        yield face


@contextmanager
def open_skyward(nodes: int, slots: int, watched: bool) -> Iterator[System]:
    """
    Open a pool of ours on this machine.
    """
    import skyward as sky

    seen: dict[str, int] = {}

    def count(event: Any) -> None:
        name = type(event).__name__
        seen[name] = seen.get(name, 0) + 1

    with_events: dict[str, Any] = {"on_event": count, "console": "log"} if watched else {}
    with sky.Compute(provider=sky.Local(), nodes=nodes, concurrency=slots, **with_events) as pool:
        yield Skyward(pool, timeout=60 if watched else None)
    if watched and not seen:
        raise RuntimeError("The pool emitted no event, so nothing was watched.")


@contextmanager
def open_ray(nodes: int, slots: int, watched: bool) -> Iterator[System]:
    """
    Open Ray on this machine.
    """
    if nodes != 1:
        raise ValueError(f"ray.init makes one node, not {nodes}.")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = importlib.import_module("ray")
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        ray.init(
            address="local",
            num_cpus=slots,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            object_store_memory=3 << 30,
            _temp_dir=folder,
        )
        try:
            yield Ray(ray)
        finally:
            ray.shutdown()


@contextmanager
def open_dask(nodes: int, slots: int, watched: bool) -> Iterator[System]:
    """
    Open a Dask cluster on this machine.
    """
    dask, distributed = importlib.import_module("dask"), importlib.import_module("distributed")
    with tempfile.TemporaryDirectory(prefix="dask-", ignore_cleanup_errors=True) as folder:
        # A large array among the arguments is warned about, which would hide a failure's last line.
        settings = {"distributed.admin.large-graph-warning-threshold": "1 GiB", "temporary-directory": folder}
        with (
            dask.config.set(settings),
            distributed.LocalCluster(
                n_workers=nodes, threads_per_worker=slots, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield Dask(client)
