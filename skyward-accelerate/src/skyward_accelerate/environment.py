"""
The variables by which `accelerate launch` configures the training of a process.

The identity of the process comes from torch's side, as with torchrun, and so does its number of threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skyward_accelerate.config import FSDP, Config, DeepSpeed

__all__ = ["environment"]


def environment(config: Config, *, cpu: bool, within: bool = False) -> dict[str, str]:
    """
    Render what a rank finds in its environment.

    Args:
        config: How it trains.
        cpu: Whether processors compute.
        within: Whether other settings are around these, so that what these do not mention stays as it is.

    >>> environment(Config(mixed_precision="bf16"), cpu=True)["ACCELERATE_USE_CPU"]
    'True'
    >>> environment(Config(fsdp=True), cpu=False)["FSDP_SHARDING_STRATEGY"]
    'FULL_SHARD'
    >>> environment(Config(debug=True), cpu=False, within=True)
    {'ACCELERATE_DEBUG_MODE': 'true'}
    """
    env = {}
    if config.mixed_precision or not within:
        env["ACCELERATE_MIXED_PRECISION"] = config.mixed_precision or "no"
    if cpu:
        env["ACCELERATE_USE_CPU"] = "True"
    if config.debug:
        env["ACCELERATE_DEBUG_MODE"] = "true"
    if config.enable_cpu_affinity:
        env["ACCELERATE_CPU_AFFINITY"] = "1"
    if config.gradient_accumulation_steps is not None:
        env["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"] = str(config.gradient_accumulation_steps)
    # With DeepSpeed launch says nothing of the compiler, unless it is asked for.
    if config.dynamo or not (config.deepspeed or within):
        env |= _dynamo(config)
    if config.fp8 is not None:
        env |= dict(_fp8(dict(config.fp8)))
    if config.parallelism is not None:
        env["ACCELERATE_USE_PARALLELISM_CONFIG"] = "true"
        env |= {f"PARALLELISM_CONFIG_{name}": text for name, text in config.parallelism}
    if config.megatron_lm is not None:
        env["ACCELERATE_USE_MEGATRON_LM"] = "true"
        env |= {f"MEGATRON_LM_{name}": text for name, text in config.megatron_lm}
    if config.fsdp:
        env["ACCELERATE_USE_FSDP"] = "true"
        env |= _fsdp(config.fsdp)
    if config.deepspeed:
        env["ACCELERATE_USE_DEEPSPEED"] = "true"
        env |= dict(_deepspeed(config.deepspeed))
    return env


def _dynamo(config: Config) -> dict[str, str]:
    dynamo = config.dynamo
    facts = {
        "BACKEND": dynamo.backend if dynamo else "NO",
        "MODE": dynamo.mode if dynamo else "default",
        "USE_FULLGRAPH": bool(dynamo and dynamo.use_fullgraph),
        "USE_DYNAMIC": bool(dynamo and dynamo.use_dynamic),
        "USE_REGIONAL_COMPILATION": bool(dynamo and dynamo.use_regional_compilation),
    }
    return {f"ACCELERATE_DYNAMO_{name}": str(value) for name, value in facts.items()}


def _fp8(settings: dict[str, str]) -> Iterator[tuple[str, str]]:
    precisions = settings.pop("OVERRIDE_LINEAR_PRECISION", None)
    if precisions is not None:
        flags = re.findall("True|False", precisions)
        yield from zip((f"ACCELERATE_FP8_OVERRIDE_{name}" for name in ("FPROP", "DGRAD", "WGRAD")), flags, strict=True)
    yield from ((f"ACCELERATE_FP8_{name}", text) for name, text in settings.items())


def _fsdp(fsdp: FSDP) -> dict[str, str]:
    facts = {
        "VERSION": fsdp.version,
        "SHARDING_STRATEGY": fsdp.sharding_strategy,
        "RESHARD_AFTER_FORWARD": fsdp.reshard_after_forward,
        "OFFLOAD_PARAMS": fsdp.offload_params,
        "MIN_NUM_PARAMS": fsdp.min_num_params,
        "AUTO_WRAP_POLICY": fsdp.auto_wrap_policy,
        "TRANSFORMER_CLS_TO_WRAP": fsdp.transformer_layer_cls_to_wrap,
        "BACKWARD_PREFETCH": fsdp.backward_prefetch,
        "STATE_DICT_TYPE": fsdp.state_dict_type,
        "FORWARD_PREFETCH": fsdp.forward_prefetch,
        "USE_ORIG_PARAMS": fsdp.use_orig_params,
        "CPU_RAM_EFFICIENT_LOADING": fsdp.cpu_ram_efficient_loading,
        "SYNC_MODULE_STATES": fsdp.sync_module_states,
        "ACTIVATION_CHECKPOINTING": fsdp.activation_checkpointing,
        "ACTIVATION_CHECKPOINTING_OFFLOAD": fsdp.activation_checkpointing_offload,
        "IGNORED_MODULES": fsdp.ignored_modules,
    }
    return {f"FSDP_{name}": _text(value) for name, value in facts.items() if value is not None}


def _deepspeed(deepspeed: DeepSpeed) -> Iterator[tuple[str, str]]:
    # Which settings come from a file of Accelerate's; there is none.
    yield "ACCELERATE_CONFIG_DS_FIELDS", ""
    facts = {
        "DEEPSPEED_ZERO_STAGE": deepspeed.zero_stage,
        "GRADIENT_CLIPPING": deepspeed.gradient_clipping,
        "DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE": deepspeed.offload_optimizer_device,
        "DEEPSPEED_OFFLOAD_PARAM_DEVICE": deepspeed.offload_param_device,
        "DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH": deepspeed.offload_optimizer_nvme_path,
        "DEEPSPEED_OFFLOAD_PARAM_NVME_PATH": deepspeed.offload_param_nvme_path,
        "DEEPSPEED_ZERO3_INIT": deepspeed.zero3_init,
        "DEEPSPEED_ZERO3_SAVE_16BIT_MODEL": deepspeed.zero3_save_16bit_model,
        "DEEPSPEED_CONFIG_FILE": deepspeed.config_file,
        "DEEPSPEED_MOE_LAYER_CLS_NAMES": deepspeed.moe_layer_cls_names,
    }
    yield from ((f"ACCELERATE_{name}", _text(value)) for name, value in facts.items() if value is not None)


def _text(value: object) -> str:
    """Write a value as the launcher does."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
