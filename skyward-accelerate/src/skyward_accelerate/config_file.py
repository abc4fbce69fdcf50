"""
What `accelerate config` writes, read as settings: a file in YAML or JSON, or the mapping that is in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skyward import ConfigError

__all__ = ["KEYS", "read_file", "translated"]

THE_POOLS = frozenset(
    {
        *("compute_environment", "distributed_type", "gpu_ids", "machine_rank", "main_process_ip", "main_process_port"),
        *("mpirun_config", "num_machines", "num_processes", "rdzv_backend", "same_network"),
    }
)
"""Settings of which the pool decides."""

OF_OTHERS = frozenset(
    {
        *("command_file", "commands", "downcast_bf16", "ipex_config", "main_training_function", "tpu_env", "tpu_name"),
        *("tpu_use_cluster", "tpu_use_sudo", "tpu_vm", "tpu_zone"),
    }
)
"""Settings of TPUs and notebooks."""

PARTS = {
    "deepspeed_config": ("deepspeed", "deepspeed_"),
    "dynamo_config": ("dynamo", "dynamo_"),
    "fp8_config": ("fp8", "fp8_"),
    "fsdp_config": ("fsdp", "fsdp_"),
    "megatron_lm_config": ("megatron_lm", "megatron_lm_"),
    "parallelism_config": ("parallelism", "parallelism_config_"),
}
"""Parts of the settings, each with our name, and the prefix of the names in it."""

KEYS = THE_POOLS | OF_OTHERS | PARTS.keys() | {"dynamo_backend"}
"""The keys that only what `accelerate config` writes has."""

OF_A_KIND = {"FSDP": "fsdp", "DEEPSPEED": "deepspeed", "MEGATRON_LM": "megatron_lm"}
"""The part that holds, by `distributed_type`."""

OF_THE_LAUNCHER = frozenset({"multinode_launcher", "hostfile", "exclusion_filter", "inclusion_filter"})
"""Settings of DeepSpeed's own launcher."""

OTHER_NAMES = {"zero3_init_flag": "zero3_init", "backward_prefetch_policy": "backward_prefetch"}

_NOTHING: tuple[Any, ...] = (None, False, "", "no", "NO", "main", "LOCAL_MACHINE", [], {})


def read_file(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """
    Read what is in a file.

    Args:
        path: Where it is on the client.

    Raises:
        ConfigError: If it cannot be read, or there is no mapping in it.
    """
    shown = os.fspath(path)
    try:
        text = Path(shown).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"config={shown!r} names no file that can be read: {error.strerror}.",
            hint="Give the path of what `accelerate config` wrote, or a mapping.",
        ) from None
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else _yaml(text, shown)
    except ValueError as error:
        raise ConfigError(f"config={shown!r} is neither YAML nor JSON: {error}.") from None
    if not isinstance(found, Mapping):
        raise ConfigError(f"config={shown!r} holds no settings by name.")
    return found


def translated(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """
    Return settings as `Config` has them, and the keys that mean nothing here.

    Args:
        given: Settings, of which some may be as `accelerate config` writes them.

    Raises:
        ConfigError: If they are for SageMaker, or a part is no mapping.

    >>> translated({"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 2}, "num_processes": 8})
    ({'fsdp': {'version': 2}}, ('num_processes',))
    """
    if str(given.get("compute_environment")) == "AMAZON_SAGEMAKER":
        raise ConfigError("The settings are for Amazon SageMaker, which starts machines of its own.")
    ours = {name: value for name, value in given.items() if name not in KEYS}
    ours |= dict(_plain(given))
    without = [name for name in given if name in OF_OTHERS | THE_POOLS and given[name] not in _NOTHING]
    kind = given.get("distributed_type")
    if kind is not None:
        known = {None, *OF_A_KIND, "NO", "MULTI_GPU", "MULTI_CPU"}
        without = [name for name in without if name != "distributed_type" or kind not in known]
    for key, (name, prefix) in PARTS.items():
        part = given.get(key) or {}
        if not isinstance(part, Mapping):
            raise ConfigError(f"{key} must be a mapping, not {part!r}.")
        # The launcher leaves out settings of other kinds than the configured one.
        holds = kind is None or name not in OF_A_KIND.values() or OF_A_KIND.get(str(kind)) == name
        if part and not holds:
            without.append(key)
        named = {_name(each, prefix): value for each, value in part.items()}
        without += [f"{key}.{each}" for each in part if _name(each, prefix) in OF_THE_LAUNCHER]
        settings = {each: value for each, value in named.items() if each not in OF_THE_LAUNCHER and value != "auto"}
        if name == "deepspeed" and (steps := settings.pop("gradient_accumulation_steps", None)) is not None and holds:
            ours.setdefault("gradient_accumulation_steps", steps)
        if name == "fsdp" and isinstance(settings.get("reshard_after_forward"), str):
            # What `accelerate config` asks by this name for version 1.
            settings["sharding_strategy"] = settings.pop("reshard_after_forward")
        if holds and (settings or OF_A_KIND.get(str(kind)) == name):
            ours[name] = settings or True
    return ours, tuple(sorted(without))


def _plain(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what a file says in another way than `Config`."""
    if KEYS & given.keys():
        if given.get("use_cpu") is False:
            # Every file says so where processors were not asked for.
            yield "use_cpu", None
        if given.get("mixed_precision") is False:
            # A bare no in YAML.
            yield "mixed_precision", "no"
    backend = given.get("dynamo_backend")
    if backend is not None and str(backend).upper() != "NO":
        yield "dynamo", {"backend": backend}


def _name(key: str, prefix: str) -> str:
    """Return a part's key as our field's name."""
    name = key.removeprefix(prefix)
    return OTHER_NAMES.get(name, name)


def _yaml(text: str, shown: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise ConfigError(
            f"config={shown!r} is YAML, which needs the package PyYAML here.", hint="Type: pip install pyyaml"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
