"""
Where each public name lives, and which older name stands for which newer one.

`import skyward` loads none of it: a name is looked up here when it is first used.
The imports in `skyward/__init__.py` tell type checkers the same; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any

__all__ = ["LIVES_IN", "MODULES", "OLDER", "public", "resolve"]

LIVES_IN: Mapping[str, str] = {
    name: module
    for module, names in {
        "skyward.errors": (
            "AllProvidersFailedError",
            "BudgetExceededError",
            "CapacityError",
            "ConfigError",
            "CredentialsError",
            "HangError",
            "LeftBehindError",
            "NoAvailableProviderError",
            "NoCredentialsError",
            "NoPoolError",
            "NodeError",
            "NodeLostError",
            "NotInstalledError",
            "OfferError",
            "PluginError",
            "PoolClosedError",
            "PoolEndedError",
            "ProtocolError",
            "ProvisionError",
            "QuotaError",
            "RefError",
            "RemoteError",
            "ResultError",
            "SerializationError",
            "SkywardError",
            "StateLostError",
            "TaskError",
            "TaskTimeoutError",
            "TransportError",
            "UsageError",
            "WorkerDiedError",
            "WorkerSpentError",
        ),
        "skyward.classes": ("cls",),
        "skyward.function": ("Function", "function"),
        "skyward.market.kept": ("machine_images",),
        "skyward.market.owned": ("instances",),
        "skyward.pending": ("PendingFunction", "PendingFunctionGroup", "gather", "partial"),
        "skyward.pool": ("Compute", "Pool"),
        "skyward.pool_decorator": ("pool",),
        "skyward.pools": ("MultiPool", "Session"),
        "skyward.link.refs": ("Ref",),
        "skyward.plugin": ("Plugin",),
        "skyward.putting": ("put",),
        "skyward.providers.local": ("Local",),
        "skyward.providers.ssh": ("SSH",),
        "skyward.market.repository": ("offers",),
        "skyward.engine.events": ("compose", "emit", "use_callback"),
        "skyward.node.meeting": ("exchange",),
        "skyward.node.output": ("CallbackWriter", "redirect_output", "silent", "stderr", "stdout"),
        "skyward.node.runtime": ("abandon", "current_accelerator", "instance_info", "is_head", "retire"),
        "skyward.node.sampler": ("DistributedSampler",),
        "skyward.node.shard": ("shard",),
        "skyward.model.accelerator": ("Accelerator", "is_nvidia", "is_trainium"),
        "skyward.model.allocation": ("Allocation", "AllocationLike", "AllocationStrategy"),
        "skyward.model.container": ("DockerImage",),
        "skyward.model.cost": ("Cost", "Receipt"),
        "skyward.model.event": (
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
            "InstancePreempted",
            "InstanceProvisioned",
            "InstanceReplaced",
            "InstanceRequested",
            "InstanceRunning",
            "InstanceStopping",
            "Log",
            "Metric",
            "Metrics",
            "NodeReady",
            "PoolStopping",
            "Progress",
            "ShutdownRequested",
            "SkywardEvent",
            "TaskCompleted",
            "TaskStarted",
        ),
        "skyward.model.fit": ("select_instance",),
        "skyward.model.image": ("DEFAULT_IMAGE", "Image"),
        "skyward.model.instance": ("AcceleratorInfo", "InstanceInfo", "NetworkInfo", "PeerInfo"),
        "skyward.model.log_config": ("LogConfig",),
        "skyward.model.nodes": ("NodeSpec", "Nodes"),
        "skyward.model.nvidia": ("NVIDIA",),
        "skyward.model.keywords": ("ProviderLike",),
        "skyward.model.options": ("Options", "ProviderSelector", "SelectionLike", "SelectionStrategy"),
        "skyward.model.pip_index": ("PipIndex",),
        "skyward.model.retry": ("Retry",),
        "skyward.model.spec": ("Architecture", "ProviderName", "Spec"),
        "skyward.model.trust": ("Data",),
        "skyward.model.worker": ("Worker",),
        "skyward.plan.selection": ("select_available", "select_cheapest", "select_first"),
    }.items()
    for name in names
}
"""Module of each public name that is defined in core."""

MODULES: Mapping[str, str] = {
    "accelerators": "skyward.model.accelerators",
    "containers": "skyward.model.container",
    "integrations": "skyward.integrations",
    "metrics": "skyward.model.metric",
    "plugins": "skyward.plugins",
    "sky": "skyward",
    "time": "skyward.model.duration",
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
"""Newer name of each older one; both are the same object."""

_COLLECTIONS = "Until then, ranks of a broadcast exchange texts with sky.exchange, and calls return what others need."
_SHARED = "barrier counter dict lock queue set".split()
_BUCKETS = "Until then, functions read buckets with their own library, and volume= of a provider mounts a disk."

LATER: Mapping[str, str] = {
    **dict.fromkeys(
        (*_SHARED, *(f"{name}_async" for name in _SHARED), "Consistency"), f"Shared collections. {_COLLECTIONS}"
    ),
    **dict.fromkeys("S3Volume Storage Volume storage".split(), f"Mounted buckets. {_BUCKETS}"),
}
"""Announced names that do not exist yet: their feature, and the replacement until then."""


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
        return public()
    if name.startswith("_"):
        raise AttributeError(f"module 'skyward' has no attribute {name!r}", name=name)
    if name in MODULES:
        return import_module(MODULES[name])
    newer = OLDER.get(name, name)
    if newer in LIVES_IN:
        return getattr(import_module(LIVES_IN[newer]), newer)
    if (module := _submodule(name)) is not None:
        return module
    if name in LATER:
        subject, _, instead = LATER[name].partition(". ")
        raise AttributeError(f"sky.{name} comes with a later version ({subject.lower()}). {instead}", name=name)
    from skyward.registry import EXTRAS, provider, providers

    if name in providers() or f"sky.{name}" in EXTRAS:
        return provider(name)
    from skyward.model.setting import nearest

    meant = nearest(name, sorted(set(public()) - set(OLDER)))
    offer = f" Did you mean sky.{meant}?" if meant else ""
    # With `name` and no object the interpreter makes no second offer of its own.
    raise AttributeError(f"module 'skyward' has no attribute {name!r}.{offer}", name=name)


def public() -> list[str]:
    """Return every name that resolves here: those of core and the providers that are installed."""
    from skyward.registry import providers

    return sorted({*LIVES_IN, *MODULES, *OLDER, *providers()})


def _submodule(name: str) -> Any:
    """Load `skyward.<name>`, so that `sky.errors` works without an import of its own; None if there is none."""
    package = import_module("skyward")
    if PathFinder.find_spec(f"skyward.{name}", package.__path__) is None:
        return None
    return import_module(f"skyward.{name}")
