"""
Run decorated Python functions on machines that exist only as long as the work does.

    import skyward as sky

    @sky.function
    def square(x):
        return x * x

    with sky.Compute(nodes=2) as pool:
        print(square(7) >> pool)

What to know first:

    @sky.function           a function whose calls can be sent
    sky.Compute(...)        a pool of nodes, for the time of a `with` block
    call >> pool            one result; `>` promises it, `@` runs on all nodes, `&` and `sky.gather` run many
    pool.map(fn, items)     a function over many items
    sky.Image(pip=[...])    what the nodes' Python has
    sky.offers(...)         what machines there are, and what they cost
    sky.plugins             frameworks: torch, jax, keras, sklearn
    sky.SkywardError        what every error of Skyward is

Public names are loaded when they are first used, so that `import skyward` costs next to nothing.
`skyward.names` maps each one to its module.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from skyward import names as _names

if TYPE_CHECKING:
    import skyward
    from skyward import integrations as integrations, plugins as plugins
    from skyward.attaching import attach as attach
    from skyward.checkpointing import checkpoint as checkpoint
    from skyward.classes import cls as cls
    from skyward.collections.named_collections import Consistency as Consistency
    from skyward.engine.events.callbacks import compose as compose, emit as emit, use_callback as use_callback
    from skyward.errors import (
        AccessDeniedError as AccessDeniedError,
        AllProvidersFailedError as AllProvidersFailedError,
        BarrierBrokenError as BarrierBrokenError,
        BudgetExceededError as BudgetExceededError,
        CallDeadlineError as CallDeadlineError,
        CapacityError as CapacityError,
        CheckpointError as CheckpointError,
        ChecksumError as ChecksumError,
        CollectionError as CollectionError,
        ConfigError as ConfigError,
        CredentialsError as CredentialsError,
        HangError as HangError,
        LeftBehindError as LeftBehindError,
        LockNotOwnedError as LockNotOwnedError,
        LockTimeoutError as LockTimeoutError,
        NoAvailableProviderError as NoAvailableProviderError,
        NoCredentialsError as NoCredentialsError,
        NodeError as NodeError,
        NodeLostError as NodeLostError,
        NoPoolError as NoPoolError,
        NoSuchBucketError as NoSuchBucketError,
        NoSuchKeyError as NoSuchKeyError,
        NotInstalledError as NotInstalledError,
        OfferError as OfferError,
        PluginError as PluginError,
        PoolClosedError as PoolClosedError,
        PoolDeadlineError as PoolDeadlineError,
        PoolEndedError as PoolEndedError,
        ProtocolError as ProtocolError,
        ProvisionError as ProvisionError,
        QueueTimeoutError as QueueTimeoutError,
        QuotaError as QuotaError,
        RefError as RefError,
        RemoteError as RemoteError,
        ResultError as ResultError,
        SerializationError as SerializationError,
        SkywardError as SkywardError,
        StateLostError as StateLostError,
        StorageError as StorageError,
        StorageUnavailableError as StorageUnavailableError,
        StoreFullError as StoreFullError,
        StoreLostError as StoreLostError,
        TaskError as TaskError,
        TaskTimeoutError as TaskTimeoutError,
        TransportError as TransportError,
        UsageError as UsageError,
        WorkerDiedError as WorkerDiedError,
        WorkerSpentError as WorkerSpentError,
    )
    from skyward.function import (
        Function as Function,
        function as function,
    )
    from skyward.gathering import gather as gather
    from skyward.link.refs import Ref as Ref
    from skyward.market.listed_images import machine_images as machine_images
    from skyward.market.listed_instances import instances as instances
    from skyward.market.repository import offers as offers
    from skyward.model.accelerators import accelerator_factories
    from skyward.model.accelerators.accelerator import (
        is_nvidia as is_nvidia,
        is_trainium as is_trainium,
    )
    from skyward.model.accelerators.accelerator_factories import Accelerator as Accelerator
    from skyward.model.accelerators.fit import select_instance as select_instance
    from skyward.model.accelerators.nvidia_names import NVIDIA as NVIDIA
    from skyward.model.events import metric
    from skyward.model.events.event import (
        BootstrapCommand as BootstrapCommand,
        BootstrapCompleted as BootstrapCompleted,
        BootstrapConsole as BootstrapConsole,
        BootstrapFailed as BootstrapFailed,
        BootstrapPhase as BootstrapPhase,
        BootstrapProgress as BootstrapProgress,
        BootstrapRequested as BootstrapRequested,
        BootstrapStarting as BootstrapStarting,
        Callback as Callback,
        ClusterDestroyed as ClusterDestroyed,
        ClusterProvisioned as ClusterProvisioned,
        ClusterReady as ClusterReady,
        ClusterRequested as ClusterRequested,
        CostFinal as CostFinal,
        CostUpdate as CostUpdate,
        Error as Error,
        InfraCreated as InfraCreated,
        InfraCreating as InfraCreating,
        InstanceBootstrapped as InstanceBootstrapped,
        InstanceDestroyed as InstanceDestroyed,
        InstanceLaunched as InstanceLaunched,
        InstanceLaunching as InstanceLaunching,
        InstanceLingers as InstanceLingers,
        InstancePreempted as InstancePreempted,
        InstanceProvisioned as InstanceProvisioned,
        InstanceReplaced as InstanceReplaced,
        InstanceRequested as InstanceRequested,
        InstanceRunning as InstanceRunning,
        InstanceStopping as InstanceStopping,
        LaunchDelayed as LaunchDelayed,
        Log as Log,
        Metric as Metric,
        Metrics as Metrics,
        NodeReady as NodeReady,
        NodeRecovered as NodeRecovered,
        NodeSuspected as NodeSuspected,
        NodeUnhealthy as NodeUnhealthy,
        PoolStopping as PoolStopping,
        Progress as Progress,
        ShutdownRequested as ShutdownRequested,
        SkywardEvent as SkywardEvent,
        TaskCompleted as TaskCompleted,
        TaskStarted as TaskStarted,
    )
    from skyward.model.fields import duration
    from skyward.model.fields.keywords import ProviderLike as ProviderLike
    from skyward.model.fields.log_config import LogConfig as LogConfig
    from skyward.model.fields.pip_index import PipIndex as PipIndex
    from skyward.model.instances.cost_report import Cost as Cost, Receipt as Receipt
    from skyward.model.instances.instance import (
        AcceleratorInfo as AcceleratorInfo,
        InstanceInfo as InstanceInfo,
        NetworkInfo as NetworkInfo,
        PeerInfo as PeerInfo,
    )
    from skyward.model.instances.worker_stacks import Stacks as Stacks
    from skyward.model.spec import container
    from skyward.model.spec.allocation import (
        Allocation as Allocation,
        AllocationLike as AllocationLike,
        AllocationStrategy as AllocationStrategy,
    )
    from skyward.model.spec.container import DockerImage as DockerImage
    from skyward.model.spec.health_checker import HealthChecker as HealthChecker
    from skyward.model.spec.image import DEFAULT_IMAGE as DEFAULT_IMAGE, Image as Image
    from skyward.model.spec.nodes import Nodes as Nodes, NodeSpec as NodeSpec
    from skyward.model.spec.options import (
        Options as Options,
        ProviderSelector as ProviderSelector,
        SelectionLike as SelectionLike,
        SelectionStrategy as SelectionStrategy,
    )
    from skyward.model.spec.retry_setting import Retry as Retry
    from skyward.model.spec.spec import Architecture as Architecture, ProviderName as ProviderName, Spec as Spec
    from skyward.model.spec.trust_setting import Data as Data
    from skyward.model.spec.volumes import Disk as Disk, S3Volume as S3Volume, Volume as Volume
    from skyward.model.spec.worker_layout import Worker as Worker
    from skyward.node.task.carrying import Carried as Carried, carried as carried
    from skyward.node.task.checkpoint import Checkpoint as Checkpoint
    from skyward.node.task.interruption import (
        Interruption as Interruption,
        interrupted as interrupted,
        interruption as interruption,
        on_interruption as on_interruption,
    )
    from skyward.node.task.output import (
        CallbackWriter as CallbackWriter,
        redirect_output as redirect_output,
        silent as silent,
        stderr as stderr,
        stdout as stdout,
    )
    from skyward.node.task.rendezvous import exchange as exchange
    from skyward.node.task.runtime import (
        abandon as abandon,
        current_accelerator as current_accelerator,
        instance_info as instance_info,
        is_head as is_head,
        retire as retire,
    )
    from skyward.node.task.sampler import DistributedSampler as DistributedSampler
    from skyward.node.task.shard import shard as shard
    from skyward.node.task.track import track as track
    from skyward.pending import (
        PendingFunction as PendingFunction,
        PendingFunctionGroup as PendingFunctionGroup,
        partial as partial,
    )
    from skyward.plan.offers.selection import (
        select_available as select_available,
        select_cheapest as select_cheapest,
        select_first as select_first,
    )
    from skyward.plugin import Plugin as Plugin
    from skyward.pool import (
        Compute as Compute,
        Pool as Pool,
    )
    from skyward.pool_decorator import pool as pool
    from skyward.pools import (
        MultiPool as MultiPool,
        Session as Session,
    )
    from skyward.providers.local import Local as Local
    from skyward.providers.ssh import SSH as SSH
    from skyward.putting import put as put
    from skyward.shared_state import (
        barrier as barrier,
        counter as counter,
        dict as dict,  # noqa: A004  # as the seeds name it
        lock as lock,
        queue as queue,
        set as set,  # noqa: A004  # as the seeds name it
    )

    accelerators = accelerator_factories
    containers = container
    metrics = metric
    time = duration
    sky = skyward
    AcceleratorSpec = Accelerator
    ComputeFunction = Function
    ComputePool = Compute
    ComputeSpec = Spec
    LogLine = Log
    PendingBatch = PendingFunctionGroup
    PendingCompute = PendingFunction
    compute = function

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a public name on first use, and keep it."""
    try:
        value = _names.resolve(name)
    except AttributeError as error:
        if sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap" and not name.startswith("_"):
            # `from skyward import ...`: Python would drop what is said here, and propose what merely sounds like it.
            raise ImportError(str(error), name=__name__) from None
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, and those that installed plugins add."""
    return sorted({"__version__", *_names.public()})


def _operands() -> Any:
    return importlib.import_module("skyward.operands")


class _Package(ModuleType):
    """Keep `skyward.pool`, once that submodule is imported, from hiding the public name `pool`."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _names.LIVES_IN:
            return
        super().__setattr__(name, value)

    if not TYPE_CHECKING:
        # Type checkers go on refusing what is no pending call on the left of an operator.
        # Arrays would else apply the operator to each of their items.
        __array_ufunc__ = None

        def __rrshift__(self, left: object) -> Any:
            _operands().refuse(left, ">>", "sky")

        def __rmatmul__(self, left: object) -> Any:
            _operands().refuse(left, "@", "sky")

        def __lt__(self, left: object) -> Any:
            _operands().refuse(left, ">", "sky")

    def __reduce__(self) -> tuple[object, tuple[str]]:
        # Functions that use `sky` as a global are sent to nodes with it.
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
