"""What `accelerate config` writes is taken as it is: all keys, as a mapping, as YAML and as JSON."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward import ConfigError
from skyward_accelerate.config import FSDP, Config, DeepSpeed, Dynamo
from skyward_accelerate.environment import environment

# What `accelerate config` 1.15.0 wrote for two machines of eight GPUs, with FSDP.
WRITTEN = """\
compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
downcast_bf16: 'no'
dynamo_config:
  dynamo_backend: INDUCTOR
enable_cpu_affinity: false
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_cpu_ram_efficient_loading: true
  fsdp_offload_params: false
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer,Embedding
  fsdp_version: 2
machine_rank: 0
main_process_ip: 10.0.0.1
main_process_port: 29500
main_training_function: main
mixed_precision: bf16
num_machines: 2
num_processes: 16
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
"""

WITHOUT = (
    "main_process_ip, main_process_port, num_machines, num_processes, rdzv_backend, same_network mean nothing here"
)
MEANT = Config(
    mixed_precision="bf16",
    dynamo=Dynamo(backend="INDUCTOR"),
    fsdp=FSDP(
        version=2,
        auto_wrap_policy="TRANSFORMER_BASED_WRAP",
        state_dict_type="SHARDED_STATE_DICT",
        transformer_layer_cls_to_wrap=["LlamaDecoderLayer", "Embedding"],
        activation_checkpointing=True,
    ),
)


def parsed() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load(WRITTEN)
    return found


@pytest.mark.parametrize("form", ["path", "text", "json", "mapping"])
def test_what_accelerate_config_wrote_is_taken(tmp_path: Path, form: str) -> None:
    """Keys that mean nothing here are named in one warning."""
    given: Any = tmp_path / "default_config.yaml"
    given.write_text(WRITTEN)
    if form == "text":
        given = str(given)
    if form == "json":
        given.write_text(json.dumps(parsed()))
    if form == "mapping":
        given = parsed()
    with pytest.warns(UserWarning, match=WITHOUT):
        assert MEANT == sky.plugins.accelerate(given).config


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"distributed_type": "NO"}, Config()),
        ({"distributed_type": "MULTI_GPU", "fsdp_config": {}, "mixed_precision": False}, Config(mixed_precision="no")),
        ({"distributed_type": "MULTI_CPU", "use_cpu": True}, Config(use_cpu=True)),
        ({"distributed_type": "FSDP"}, Config(fsdp=True)),
        ({"fsdp_config": {"version": 2}}, Config(fsdp=FSDP(version=2))),
        (
            {"distributed_type": "FSDP", "fsdp_config": {"fsdp_reshard_after_forward": "SHARD_GRAD_OP"}},
            Config(fsdp=FSDP(sharding_strategy="SHARD_GRAD_OP")),
        ),
        (
            {
                "distributed_type": "DEEPSPEED",
                "deepspeed_config": {
                    "gradient_accumulation_steps": 4,
                    "gradient_clipping": "auto",
                    "offload_optimizer_device": "nvme",
                    "offload_optimizer_nvme_path": "/nvme",
                    "zero3_init_flag": True,
                    "zero_stage": 3,
                    "deepspeed_config_file": "ds.json",
                },
            },
            Config(
                gradient_accumulation_steps=4,
                deepspeed=DeepSpeed(
                    zero_stage=3,
                    zero3_init=True,
                    offload_optimizer_device="nvme",
                    offload_optimizer_nvme_path="/nvme",
                    config_file="ds.json",
                ),
            ),
        ),
        ({"dynamo_backend": "EAGER"}, Config(dynamo=Dynamo(backend="EAGER"))),
        ({"dynamo_backend": "NO", "dynamo_config": {}}, Config()),
    ],
)
def test_settings_have_one_meaning_in_both_spellings(written: dict[str, Any], expected: Config) -> None:
    """Without a warning, where nothing is left out."""
    with warnings.catch_warnings(action="error"):
        assert expected == sky.plugins.accelerate(written).config


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ({"num_processes": 8}, "num_processes mean nothing here"),
        ({"distributed_type": "XLA", "tpu_name": "pod"}, "distributed_type, tpu_name mean"),
        ({"distributed_type": "NO", "fsdp_config": {"fsdp_version": 2}}, "fsdp_config mean"),
        (
            {
                "deepspeed_config": {
                    "zero_stage": 2,
                    "deepspeed_hostfile": "hosts",
                    "deepspeed_multinode_launcher": "pdsh",
                }
            },
            r"deepspeed_config\.deepspeed_hostfile, deepspeed_config\.deepspeed_multinode_launcher mean",
        ),
    ],
)
def test_a_key_that_means_nothing_here_is_named(written: dict[str, Any], named: str) -> None:
    """And the rest holds."""
    with pytest.warns(UserWarning, match=named):
        sky.plugins.accelerate(written)


def test_what_accelerate_reads_from_variables_alone_is_passed_on() -> None:
    """Under the names that its launcher gives them."""
    written = {
        "distributed_type": "FSDP",
        "mixed_precision": "fp8",
        "fp8_config": {"backend": "TE", "fp8_format": "E4M3", "override_linear_precision": [True, False, False]},
        "fsdp_config": {"fsdp_version": 2},
        "parallelism_config": {"parallelism_config_tp_size": 2, "parallelism_config_cp_size": 1},
    }
    told = environment(sky.plugins.accelerate(written).config, cpu=False)
    assert {
        "ACCELERATE_FP8_BACKEND": "TE",
        "ACCELERATE_FP8_FORMAT": "E4M3",
        "ACCELERATE_FP8_OVERRIDE_FPROP": "True",
        "ACCELERATE_FP8_OVERRIDE_DGRAD": "False",
        "ACCELERATE_FP8_OVERRIDE_WGRAD": "False",
        "ACCELERATE_USE_PARALLELISM_CONFIG": "true",
        "PARALLELISM_CONFIG_TP_SIZE": "2",
        "PARALLELISM_CONFIG_CP_SIZE": "1",
    }.items() <= told.items()
    megatron = {"distributed_type": "MEGATRON_LM", "megatron_lm_config": {"megatron_lm_tp_degree": 2}}
    told = environment(sky.plugins.accelerate(megatron).config, cpu=False)
    assert {"ACCELERATE_USE_MEGATRON_LM": "true", "MEGATRON_LM_TP_DEGREE": "2"}.items() <= told.items()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1\n- 2\n", "holds no settings by name"),
        ("{", "is neither YAML nor JSON"),
        ("a: [", "is neither YAML nor JSON"),
        ("distributed_type: FSDP\nmixed_precison: bf16", r"has no 'mixed_precison'\. Did you mean 'mixed_precision'"),
        ("distributed_type: FSDP\nfsdp_config: 2", "fsdp_config must be a mapping, not 2"),
        ("compute_environment: AMAZON_SAGEMAKER", "for Amazon SageMaker, which starts machines of its own"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """With its name, or that of the key."""
    pytest.importorskip("yaml")
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        sky.plugins.accelerate(path)
