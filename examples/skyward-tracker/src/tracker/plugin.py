"""
The plugin: files on the client, numbers on the workers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import skyward as sky
from skyward.hookspecs import Cluster
from skyward.plugin import during
from tracker.record import Record, logs, numbers

__all__ = ["tracker"]


def tracker(directory: str = "runs", *, run: str) -> sky.Plugin:
    """
    Write what tasks log into `directory/run`: lines of JSON for each rank, and `run.json` about all of them.

    Args:
        directory: Where runs are, on the client.
        run: Name of the run.
    """
    folder = Path(directory) / run

    def unused(cluster: Cluster) -> None:
        """Refuse to go on with a run that has ended, before anything is rented for it."""
        if (folder / "run.json").exists():
            raise sky.ConfigError(f"The run {str(folder)!r} has ended.", hint="Give this one another name.")

    @contextmanager
    def client(pool: Any, cluster: Cluster) -> Iterator[None]:
        """Write down what comes from the workers; all of it has come once the pool is left."""
        folder.mkdir(parents=True, exist_ok=True)
        began = time.time()
        pool.on(Record, lambda record: _append(folder, record))
        try:
            yield
        finally:
            about = {"pool": cluster.pool_name, "machine": cluster.offer.instance_type, "nodes": cluster.nodes}
            (folder / "run.json").write_text(json.dumps({**about, "seconds": time.time() - began}))

    return (
        sky.Plugin.create("tracker")
        .with_validate(unused)
        .with_around_client(client)
        .with_around_process(lambda info: numbers())
        .with_decorator(_logging)
    )


def _logging(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let each call of a function log."""
    return during(lambda: logs(fn.__name__))(fn)


def _append(folder: Path, record: Record) -> None:
    """Write a line into the file of the rank."""
    line = {"at": record.at, "step": record.step, "function": record.function, "values": dict(record.values)}
    with (folder / f"rank-{record.rank}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
