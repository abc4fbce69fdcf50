"""
A plugin that counts calls, and leaves a trace of each of its hooks that a task can see.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import Plugin
from skyward.hookspecs import Cluster, Shell
from skyward.plugin import during

if TYPE_CHECKING:
    from skyward import Image, InstanceInfo

opened: list[str] = []
"""Names of the pools that the plugin saw open on this client and not closed yet."""


def sample(word: str = "hello") -> Plugin:
    """
    Count calls on each worker.

    Args:
        word: What tasks find in the environment variable SAMPLE_WORD.
    """

    def transform(image: Image, cluster: Cluster) -> Image:
        return evolve(image, env={**image.env, "SAMPLE_WORD": word, "SAMPLE_OFFER": cluster.offer.instance_type})

    return (
        Plugin.create("sample")
        .with_image_transform(transform)
        .with_bootstrap(lambda cluster: [Shell("true", scope="environment")])
        .with_around_process(_process)
        .with_around_client(_client)
        .with_decorator(during(_call))
    )


@contextmanager
def _process(info: InstanceInfo) -> Iterator[None]:
    """Say which rank the process is of, and begin to count."""
    os.environ["SAMPLE_RANK"] = str(info.global_worker_index)
    os.environ["SAMPLE_CALLS"] = "0"
    yield


@contextmanager
def _client(pool: Any, cluster: Cluster) -> Iterator[None]:
    """Keep the pool's name while it is open."""
    opened.append(cluster.pool_name)
    try:
        yield
    finally:
        opened.remove(cluster.pool_name)


@contextmanager
def _call() -> Iterator[None]:
    """Count a call."""
    os.environ["SAMPLE_CALLS"] = str(int(os.environ.get("SAMPLE_CALLS", "0")) + 1)
    yield
