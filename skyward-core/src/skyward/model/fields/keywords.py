"""
Every keyword that `sky.Compute` and `sky.pool` take, with its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict

from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.fields.port import PortsLike
from skyward.model.spec.allocation import AllocationLike
from skyward.model.spec.health_checker import HealthChecker
from skyward.model.spec.image import Image
from skyward.model.spec.nodes import NodeSpec
from skyward.model.spec.options import ConsoleLike, Executor, LogConfig, PerNode, SelectionLike, Worker
from skyward.model.spec.trust_setting import TrustLike
from skyward.model.spec.volumes import VolumeLike

__all__ = ["PoolKeywords", "ProviderLike"]

# A provider is whatever has the provider hooks; several mean one spec for each.
ProviderLike: TypeAlias = Any


class PoolKeywords(TypedDict, total=False):
    """
    Type the keywords of `sky.Compute` and `sky.pool`.

    They are the fields of `Spec`, `Options` and `Worker`, and a few shorter or older words for some of them.

    >>> keywords: PoolKeywords = {"nodes": (2, 8), "concurrency": 4}
    >>> keywords["nodes"]
    (2, 8)
    """

    provider: ProviderLike
    accelerator: Accelerator | str | None
    nodes: NodeSpec
    vcpus: float | None
    memory_gb: float | str | None
    disk_gb: float | str | None
    architecture: Literal["x86_64", "amd64", "arm64", "aarch64"] | None
    machine: str | None
    allocation: AllocationLike
    image: Image
    region: str | None
    max_hourly_cost: float | None
    ttl: float | None
    timeout: float | None
    volumes: Iterable[VolumeLike] | VolumeLike
    plugins: Iterable[Any]
    trust: TrustLike

    volume: Iterable[VolumeLike] | VolumeLike
    cpu: float | None
    memory: str | float | None
    env: Mapping[str, str] | None

    label: str | None
    selection: SelectionLike
    worker: Worker | None
    provision_timeout: float | None
    ssh_timeout: float | None
    ssh_retry_interval: float | None
    bootstrap_timeout: float | None
    provision_retry_delay: float | None
    max_provision_attempts: int | None
    max_replacement_attempts: int | None
    default_compute_timeout: float | None
    autoscale_cooldown: float
    autoscale_idle_timeout: float
    reconcile_tick_interval: float
    shutdown_timeout: float
    console: ConsoleLike
    display: ConsoleLike
    logging: bool | LogConfig
    cluster: bool | None
    retry_on_interruption: int
    queue_timeout: float | None
    call_deadline: float | None
    pool_deadline: float | None
    suspect_timeout: float | None
    lost_timeout: float
    on_event: Callable[[Any], object] | None
    collect_metrics: bool
    ports: PortsLike
    budget: float | None
    linger: float
    lease: float | None
    warm_image: bool
    health_checker: HealthChecker | None

    concurrency: int
    executor: Executor
    buffer: int
    reuse_processes: bool
    per_node: PerNode
