"""
What `accelerate launch` takes about training, as values.

Names are those of its arguments, without the `fsdp_`, `dynamo_` or `deepspeed_` in front.
How many machines and processes there are is the pool's affair and stands nowhere here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
from attrs import field, frozen

from skyward import ConfigError
from skyward_accelerate.checks import (
    FLAG,
    MAYBE_FLAG,
    MAYBE_TEXT,
    Variables,
    above_zero,
    classes,
    lower,
    of_type,
    one_of,
    read,
    steps,
    upper,
    variables,
)
from skyward_accelerate.config_file import KEYS, read_file, translated

__all__ = ["FSDP", "Config", "DeepSpeed", "Dynamo"]

T = TypeVar("T", bound=attrs.AttrsInstance)

PRECISIONS = ("no", "fp16", "bf16", "fp8")
SHARDING_STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
WRAP_POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")
PREFETCHES = ("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH")
STATE_DICTS = ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT")
DYNAMO_BACKENDS = (
    *("NO", "EAGER", "AOT_EAGER", "INDUCTOR", "AOT_TS_NVFUSER", "NVPRIMS_NVFUSER", "CUDAGRAPHS", "OFI", "FX2TRT"),
    *("ONNXRT", "TENSORRT", "AOT_TORCHXLA_TRACE_ONCE", "TORCHXLA_TRACE_ONCE", "TVM", "HPU_BACKEND", "NEURON"),
)
DYNAMO_MODES = ("default", "reduce-overhead", "max-autotune")
ZERO_STAGES = (0, 1, 2, 3)
OFFLOADS = ("none", "cpu", "nvme")
FSDP_VERSIONS = (1, 2)

OF_FSDP_1 = ("sharding_strategy", "backward_prefetch", "forward_prefetch", "use_orig_params", "sync_module_states")
OF_FSDP_2 = ("reshard_after_forward", "activation_checkpointing_offload")
"""What each version of FSDP has and the other does not read."""


@frozen(kw_only=True)
class Dynamo:
    """
    Compile the model with TorchDynamo.

    Args:
        backend: Backend of the compiler, such as `"INDUCTOR"`.
        mode: `"default"`, `"reduce-overhead"` or `"max-autotune"`.
        use_fullgraph: Whether the model must not be broken into several graphs.
        use_dynamic: Whether shapes may change.
        use_regional_compilation: Whether repeated blocks are compiled once.

    >>> Dynamo(backend="inductor").backend
    'INDUCTOR'
    """

    backend: str = field(default="INDUCTOR", converter=upper, validator=one_of(DYNAMO_BACKENDS))
    mode: str = field(default="default", validator=one_of(DYNAMO_MODES))
    use_fullgraph: bool = field(default=False, validator=FLAG)
    use_dynamic: bool = field(default=False, validator=FLAG)
    use_regional_compilation: bool = field(default=False, validator=FLAG)


@frozen(kw_only=True)
class FSDP:
    """
    Shard parameters, gradients and optimiser states among the ranks; needs GPUs.

    Defaults are those of `accelerate launch --use_fsdp`.

    Args:
        version: 1 or 2.
        sharding_strategy: What is sharded; version 1.
        reshard_after_forward: Whether parameters are freed between forward and backward pass; version 2.
        offload_params: Whether parameters and gradients wait in the memory of the host.
        min_num_params: From how many parameters on a part is wrapped by `"SIZE_BASED_WRAP"`.
        auto_wrap_policy: How the model is cut into parts that are wrapped; None for what the script says.
        transformer_layer_cls_to_wrap: Classes whose instances `"TRANSFORMER_BASED_WRAP"` wraps; None for those that the
            model names itself.
        backward_prefetch: When the next parameters are fetched in the backward pass; version 1.
        state_dict_type: In which form checkpoints are saved.
        forward_prefetch: Whether the next parameters are fetched in the forward pass; version 1.
        use_orig_params: Whether parameters keep their own `requires_grad`; version 1.
        cpu_ram_efficient_loading: Whether only the first rank loads a checkpoint.
        sync_module_states: Whether the ranks begin with the first one's weights; version 1.
        activation_checkpointing: Whether activations are computed again in the backward pass.
        activation_checkpointing_offload: Whether what is kept of them waits in the memory of the host; version 2.
        ignored_modules: Regular expression of the modules that are not sharded; None for none.

    Raises:
        ConfigError: If a value is none of what its field takes, or of the other version.

    >>> FSDP(version=2, transformer_layer_cls_to_wrap="LlamaDecoderLayer").transformer_layer_cls_to_wrap
    ('LlamaDecoderLayer',)
    """

    version: int = field(default=1, validator=one_of(FSDP_VERSIONS))
    sharding_strategy: str = field(default="FULL_SHARD", converter=upper, validator=one_of(SHARDING_STRATEGIES))
    reshard_after_forward: bool = field(default=True, validator=FLAG)
    offload_params: bool = field(default=False, validator=FLAG)
    min_num_params: int = field(default=100_000_000, validator=of_type(int, "a number of parameters"))
    auto_wrap_policy: str | None = field(default=None, converter=upper, validator=one_of(WRAP_POLICIES, optional=True))
    transformer_layer_cls_to_wrap: tuple[str, ...] | None = field(default=None, converter=classes)
    backward_prefetch: str | None = field(default=None, converter=upper, validator=one_of(PREFETCHES, optional=True))
    state_dict_type: str | None = field(default=None, converter=upper, validator=one_of(STATE_DICTS, optional=True))
    forward_prefetch: bool = field(default=False, validator=FLAG)
    use_orig_params: bool = field(default=True, validator=FLAG)
    cpu_ram_efficient_loading: bool = field(default=True, validator=FLAG)
    sync_module_states: bool = field(default=True, validator=FLAG)
    activation_checkpointing: bool = field(default=False, validator=FLAG)
    activation_checkpointing_offload: bool = field(default=False, validator=FLAG)
    ignored_modules: str | None = field(default=None, validator=MAYBE_TEXT)

    def __attrs_post_init__(self) -> None:
        defaults = {each.name: each.default for each in attrs.fields(FSDP)}
        for name in OF_FSDP_1 if self.version == 2 else OF_FSDP_2:
            if getattr(self, name) != defaults[name]:
                raise ConfigError(f"{name}={getattr(self, name)!r} has no meaning in version {self.version} of FSDP.")
        if self.version == 2 and self.state_dict_type == "LOCAL_STATE_DICT":
            raise ConfigError("state_dict_type='LOCAL_STATE_DICT' has no meaning in version 2 of FSDP.")
        if self.cpu_ram_efficient_loading and not self.sync_module_states:
            raise ConfigError(
                "With sync_module_states=False no rank gets the weights that cpu_ram_efficient_loading=True has only "
                "the first one load.",
                hint="Write cpu_ram_efficient_loading=False too.",
            )
        if self.activation_checkpointing_offload and not self.activation_checkpointing:
            raise ConfigError("activation_checkpointing_offload=True needs activation_checkpointing=True.")


@frozen(kw_only=True)
class DeepSpeed:
    """
    Train with DeepSpeed, whose package nodes get too; needs GPUs.

    What is None is left to the script, else to DeepSpeed's file, else to Accelerate.

    Args:
        zero_stage: Stage of ZeRO, 0 to 3.
        gradient_clipping: Largest norm of the gradients.
        offload_optimizer_device: Where the optimiser's states wait: `"none"`, `"cpu"` or `"nvme"`.
        offload_param_device: Where parameters wait: the same.
        offload_optimizer_nvme_path: Where on the nodes, for `"nvme"`.
        offload_param_nvme_path: The same.
        zero3_init: Whether models are made sharded, in stage 3.
        zero3_save_16bit_model: Whether 16-bit weights are saved, in stage 3.
        config_file: Path of DeepSpeed's own file on the nodes; `Image(includes=[...])` brings it there.
        moe_layer_cls_names: Classes of mixture-of-experts layers.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> DeepSpeed(zero_stage=3).zero_stage
    3
    """

    zero_stage: int | None = field(default=None, validator=one_of(ZERO_STAGES, optional=True))
    gradient_clipping: float | None = field(default=None, validator=above_zero)
    offload_optimizer_device: str | None = field(
        default=None, converter=lower, validator=one_of(OFFLOADS, optional=True)
    )
    offload_param_device: str | None = field(default=None, converter=lower, validator=one_of(OFFLOADS, optional=True))
    offload_optimizer_nvme_path: str | None = field(default=None, validator=MAYBE_TEXT)
    offload_param_nvme_path: str | None = field(default=None, validator=MAYBE_TEXT)
    zero3_init: bool | None = field(default=None, validator=MAYBE_FLAG)
    zero3_save_16bit_model: bool | None = field(default=None, validator=MAYBE_FLAG)
    config_file: str | None = field(default=None, validator=MAYBE_TEXT)
    moe_layer_cls_names: tuple[str, ...] | None = field(default=None, converter=classes)


def _part(kind: type[T], value: Any) -> T | None:
    """Return a part of the settings, from a value, a mapping, True for its defaults, or None."""
    if value is None or value is False:
        return None
    return kind() if value is True else read(kind, value)


def _fsdp(value: Any) -> FSDP | None:
    return _part(FSDP, value)


def _deepspeed(value: Any) -> DeepSpeed | None:
    return _part(DeepSpeed, value)


def _dynamo(value: Any) -> Dynamo | None:
    return _part(Dynamo, value)


@frozen(kw_only=True, cache_hash=True)
class Config:
    """
    Say how Accelerate trains: the arguments of `accelerate launch`.

    A part, such as `fsdp`, may be written as a mapping, or True for its defaults.

    Args:
        mixed_precision: `"no"`, `"bf16"`, `"fp16"` (GPUs only) or `"fp8"` (GPUs, and a package for it); None for what
            the pool says, else `"no"`.
        gradient_accumulation_steps: After how many batches weights change; None for what the script says.
        fsdp: Shard the model; None to copy it to each rank.
        deepspeed: Train with DeepSpeed; None without.
        dynamo: Compile the model; None for what the pool says, else not to.
        parallelism: Sizes of the dimensions of parallelism, such as `{"tp_size": 2}`; None for one.
        fp8: How `"fp8"` is computed, such as `{"backend": "AO"}`; None for what Accelerate does by itself.
        megatron_lm: Train with Megatron-LM, which the image has to bring, such as `{"tp_degree": 2}`; None without.
        use_cpu: Whether processors compute and no accelerators; None where torch sees no GPU.
        enable_cpu_affinity: Whether each process keeps to processors that are near its GPU.
        debug: Whether Accelerate checks that all ranks gather tensors of one shape.

    Raises:
        ConfigError: If a value is none of what its field takes, or two exclude each other.

    >>> Config(mixed_precision="bf16", fsdp={"version": 2}).fsdp.version
    2
    """

    mixed_precision: str | None = field(default=None, converter=lower, validator=one_of(PRECISIONS, optional=True))
    gradient_accumulation_steps: int | None = field(default=None, validator=steps)
    fsdp: FSDP | None = field(default=None, converter=_fsdp)
    deepspeed: DeepSpeed | None = field(default=None, converter=_deepspeed)
    dynamo: Dynamo | None = field(default=None, converter=_dynamo)
    parallelism: Variables | None = field(default=None, converter=variables)
    fp8: Variables | None = field(default=None, converter=variables)
    megatron_lm: Variables | None = field(default=None, converter=variables)
    use_cpu: bool | None = field(default=None, validator=MAYBE_FLAG)
    enable_cpu_affinity: bool = field(default=False, validator=FLAG)
    debug: bool = field(default=False, validator=FLAG)

    def __attrs_post_init__(self) -> None:
        sharding = [name for name in ("fsdp", "deepspeed", "megatron_lm") if getattr(self, name) is not None]
        if len(sharding) > 1:
            raise ConfigError(f"{' and '.join(sharding)} both shard the model.", hint="Leave one of them out.")
        if self.use_cpu and self.needs_gpu:
            raise ConfigError(f"{self.needs_gpu} needs GPUs, and use_cpu=True keeps off them.")

    @property
    def needs_gpu(self) -> str:
        """Return which setting processors cannot do, as it is written; empty if there is none."""
        for name in ("deepspeed", "fsdp", "megatron_lm"):
            if getattr(self, name) is not None:
                return name
        return f"mixed_precision={self.mixed_precision!r}" if self.mixed_precision in ("fp16", "fp8") else ""


def config(value: Any) -> Config:
    """
    Return settings as a value, from one, from a mapping, or from the path of a file.

    Args:
        value: What the user wrote, or `accelerate config` did; None for what Accelerate does by itself.

    Raises:
        ConfigError: If it is none of these, or a name in it is unknown.

    >>> config({"mixed_precison": "bf16"})
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: Config has no 'mixed_precison'. Did you mean 'mixed_precision'?
    """
    if value is None:
        return Config()
    if isinstance(value, str | os.PathLike):
        value = read_file(value)
    if isinstance(value, Mapping) and KEYS & value.keys():
        value, without = translated(value)
        if without:
            warnings.warn(
                f"sky.plugins.accelerate: {', '.join(without)} mean nothing here; machines, processes and how they "
                "meet are the pool's affair.",
                stacklevel=3,
            )
    return read(Config, value)
