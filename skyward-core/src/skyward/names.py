"""
Where each public name lives, and which older name stands for which newer one.

`import skyward` loads none of it: a name is looked up here when it is first used.
The imports in `skyward/__init__.py` give type checkers the same; a test holds the two together.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any

__all__ = ["LIVES_IN", "MODULES", "OLDER", "public", "resolve"]

LIVES_IN: Mapping[str, str] = {
    name: module
    for module, names in {
        "skyward.errors": (
            "AccessDeniedError",
            "AllProvidersFailedError",
            "BarrierBrokenError",
            "BudgetExceededError",
            "CallDeadlineError",
            "CapacityError",
            "ChecksumError",
            "CheckpointError",
            "ConfigError",
            "CollectionError",
            "ConfigError",
            "CredentialsError",
            "HangError",
            "LeftBehindError",
            "LockNotOwnedError",
            "LockTimeoutError",
            "NoAvailableProviderError",
            "NoCredentialsError",
            "NoPoolError",
            "NoSuchBucketError",
            "NoSuchKeyError",
            "NodeError",
            "NodeLostError",
            "NotInstalledError",
            "OfferError",
            "PluginError",
            "PoolClosedError",
            "PoolDeadlineError",
            "PoolEndedError",
            "ProtocolError",
            "ProvisionError",
            "QueueTimeoutError",
            "QuotaError",
            "RefError",
            "RemoteError",
            "ResultError",
            "SerializationError",
            "SkywardError",
            "StateLostError",
            "StorageError",
            "StorageUnavailableError",
            "StoreFullError",
            "StoreLostError",
            "TaskError",
            "TaskTimeoutError",
            "TransportError",
            "UsageError",
            "WorkerDiedError",
            "WorkerSpentError",
        ),
        "skyward.attaching": ("attach",),
        "skyward.checkpointing": ("checkpoint",),
        "skyward.classes": ("cls",),
        "skyward.function": ("Function", "function"),
        "skyward.market.listed_images": ("machine_images",),
        "skyward.market.listed_instances": ("instances",),
        "skyward.gathering": ("gather",),
        "skyward.pending": ("PendingFunction", "PendingFunctionGroup", "partial"),
        "skyward.pool": ("Compute", "Pool"),
        "skyward.pool_decorator": ("pool",),
        "skyward.pools": ("MultiPool", "Session"),
        "skyward.link.refs": ("Ref",),
        "skyward.plugin": ("Plugin",),
        "skyward.putting": ("put",),
        "skyward.shared_state": ("barrier", "counter", "dict", "lock", "queue", "set"),
        "skyward.collections.named_collections": ("Consistency",),
        "skyward.providers.local": ("Local",),
        "skyward.providers.ssh": ("SSH",),
        "skyward.market.repository": ("offers",),
        "skyward.engine.events.callbacks": ("compose", "emit", "use_callback"),
        "skyward.node.task.checkpoint": ("Checkpoint",),
        "skyward.node.task.rendezvous": ("exchange",),
        "skyward.node.task.output": ("CallbackWriter", "redirect_output", "silent", "stderr", "stdout"),
        "skyward.node.task.interruption": ("Interruption", "interrupted", "interruption", "on_interruption"),
        "skyward.node.task.carrying": ("Carried", "carried"),
        "skyward.node.task.runtime": ("abandon", "current_accelerator", "instance_info", "is_head", "retire"),
        "skyward.node.task.sampler": ("DistributedSampler",),
        "skyward.node.task.shard": ("shard",),
        "skyward.node.task.track": ("track",),
        "skyward.model.accelerators.accelerator": ("is_nvidia", "is_trainium"),
        "skyward.model.accelerators.accelerator_factories": ("Accelerator",),
        "skyward.model.spec.allocation": ("Allocation", "AllocationLike", "AllocationStrategy"),
        "skyward.model.spec.container": ("DockerImage",),
        "skyward.model.instances.cost_report": ("Cost", "Receipt"),
        "skyward.model.instances.worker_stacks": ("Stacks",),
        "skyward.model.events.event": (
            "BootstrapCommand",
            "BootstrapCompleted",
            "BootstrapConsole",
            "BootstrapFailed",
            "BootstrapPhase",
            "BootstrapProgress",
            "BootstrapRequested",
            "BootstrapStarting",
            "Callback",
            "ClusterDestroyed",
            "ClusterProvisioned",
            "ClusterReady",
            "ClusterRequested",
            "CostFinal",
            "CostUpdate",
            "Error",
            "InfraCreated",
            "InfraCreating",
            "InstanceBootstrapped",
            "InstanceDestroyed",
            "InstanceLaunched",
            "InstanceLaunching",
            "InstanceLingers",
            "InstancePreempted",
            "InstanceProvisioned",
            "InstanceReplaced",
            "InstanceRequested",
            "InstanceRunning",
            "InstanceStopping",
            "LaunchDelayed",
            "Log",
            "Metric",
            "Metrics",
            "NodeReady",
            "NodeRecovered",
            "NodeSuspected",
            "NodeUnhealthy",
            "PoolStopping",
            "Progress",
            "ShutdownRequested",
            "SkywardEvent",
            "TaskCompleted",
            "TaskStarted",
        ),
        "skyward.model.accelerators.fit": ("select_instance",),
        "skyward.model.spec.health_checker": ("HealthChecker",),
        "skyward.model.spec.image": ("DEFAULT_IMAGE", "Image"),
        "skyward.model.instances.instance": ("AcceleratorInfo", "InstanceInfo", "NetworkInfo", "PeerInfo"),
        "skyward.model.fields.log_config": ("LogConfig",),
        "skyward.model.spec.nodes": ("NodeSpec", "Nodes"),
        "skyward.model.accelerators.nvidia_names": ("NVIDIA",),
        "skyward.model.fields.keywords": ("ProviderLike",),
        "skyward.model.spec.options": ("Options", "ProviderSelector", "SelectionLike", "SelectionStrategy"),
        "skyward.model.fields.pip_index": ("PipIndex",),
        "skyward.model.spec.retry_setting": ("Retry",),
        "skyward.model.spec.spec": ("Architecture", "ProviderName", "Spec"),
        "skyward.model.spec.trust_setting": ("Data",),
        "skyward.model.spec.volumes": ("Disk", "S3Volume", "Volume"),
        "skyward.model.spec.worker_layout": ("Worker",),
        "skyward.plan.offers.selection": ("select_available", "select_cheapest", "select_first"),
    }.items()
    for name in names
}
"""Module of each public name that is defined in core."""

MODULES: Mapping[str, str] = {
    "accelerators": "skyward.model.accelerators.accelerator_factories",
    "containers": "skyward.model.spec.container",
    "integrations": "skyward.integrations",
    "metrics": "skyward.model.events.metric",
    "plugins": "skyward.plugins",
    "sky": "skyward",
    "time": "skyward.model.fields.duration",
}
"""Public modules, most of them under a shorter name; `sky` is the target that means the pool of the context."""

OLDER: Mapping[str, str] = {
    "AcceleratorSpec": "Accelerator",
    "ComputeFunction": "Function",
    "ComputePool": "Compute",
    "ComputeSpec": "Spec",
    "LogLine": "Log",
    "PendingBatch": "PendingFunctionGroup",
    "PendingCompute": "PendingFunction",
    "compute": "function",
}
"""Newer name of each older one; both are the same object, and `dir(sky)` lists the newer one."""


def resolve(name: str) -> Any:
    """
    Return the object behind a public name, loading its module.

    Args:
        name: What is written after `sky.`.

    Raises:
        AttributeError: Nothing has this name; the message offers the nearest one.
        NotInstalledError: The name comes with a distribution that is not installed; the message names the command.

    >>> resolve("SkywardError").__module__
    'skyward.errors'
    """
    # Tools probe packages for names with underscores; none of those is worth looking through installed plugins.
    if name == "__all__":
        # An import of everything leaves Python its own dict and set.
        return [each for each in public() if not hasattr(builtins, each)]
    if name.startswith("_"):
        raise AttributeError(f"module 'skyward' has no attribute {name!r}", name=name)
    if name in MODULES:
        return import_module(MODULES[name])
    newer = OLDER.get(name, name)
    if newer in LIVES_IN:
        return getattr(import_module(LIVES_IN[newer]), newer)
    if (module := _submodule(name)) is not None:
        return module
    from skyward.registry import EXTRAS, named, names, providers

    if name in providers() or name in names() or f"sky.{name}" in EXTRAS:
        return named(name)
    from skyward.model.fields.setting import nearest

    meant = nearest(name, public())
    offer = f" Did you mean sky.{meant}?" if meant else ""
    # With `name` and no object the interpreter makes no second offer of its own.
    raise AttributeError(f"module 'skyward' has no attribute {name!r}.{offer}", name=name)


def public() -> list[str]:
    """Return the documented names: those of core and of what is installed; older names resolve too."""
    from skyward.registry import names, providers

    return sorted({*LIVES_IN, *MODULES, *providers(), *names()})


def _submodule(name: str) -> Any:
    """Load `skyward.<name>`, so that `sky.errors` works without an import of its own; None if there is none."""
    package = import_module("skyward")
    if PathFinder.find_spec(f"skyward.{name}", package.__path__) is None:
        return None
    return import_module(f"skyward.{name}")
