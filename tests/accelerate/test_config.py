"""What can be said about how to train, and what is refused where it is written."""

from __future__ import annotations

from typing import Any

import pytest

import skyward as sky
from skyward import ConfigError
from skyward_accelerate.config import FSDP, Config, DeepSpeed, Dynamo


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, Config()),
        ({}, Config()),
        (Config(mixed_precision="bf16"), Config(mixed_precision="bf16")),
        ({"mixed_precision": "BF16"}, Config(mixed_precision="bf16")),
        ({"fsdp": True}, Config(fsdp=FSDP())),
        ({"fsdp": False, "deepspeed": None}, Config()),
        ({"fsdp": {"version": 2, "offload_params": True}}, Config(fsdp=FSDP(version=2, offload_params=True))),
        ({"fsdp": {"sharding_strategy": "shard_grad_op"}}, Config(fsdp=FSDP(sharding_strategy="SHARD_GRAD_OP"))),
        ({"deepspeed": {"zero_stage": 3}}, Config(deepspeed=DeepSpeed(zero_stage=3))),
        ({"dynamo": {"backend": "eager"}}, Config(dynamo=Dynamo(backend="EAGER"))),
    ],
)
def test_settings_are_written_as_values_or_as_mappings(written: Any, expected: Config) -> None:
    """Also within each other, and names of Accelerate's in any case."""
    assert expected == sky.plugins.accelerate(written).config


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("bf16", "config='bf16' names no file that can be read: No such file"),
        (16, "Config must be given as a value of its own or as a mapping, not 16"),
        ({"mixed_precision": "bf61"}, r"must be one of 'no', 'fp16', 'bf16', 'fp8', not 'bf61'\. Did you mean 'bf16'"),
        ({"mixed_precision": 16}, "mixed_precision must be one of"),
        ({"precision": "bf16"}, r"Config has no 'precision'\. Did you mean 'mixed_precision'\?"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps must be a whole number above 0, not 0"),
        ({"gradient_accumulation_steps": 1.5}, "gradient_accumulation_steps must be a whole number above 0, not 1.5"),
        ({"debug": "yes"}, "debug must be True or False, not 'yes'"),
        ({"fsdp": "full"}, "FSDP must be given as a value of its own or as a mapping, not 'full'"),
        ({"fsdp": {"fsdp_version": 2}}, r"FSDP has no 'fsdp_version'\. Did you mean 'version'"),
        ({"fsdp": {"version": True}}, "version must be one of 1, 2, not True"),
        ({"fsdp": {"version": 2, "sharding_strategy": "NO_SHARD"}}, "has no meaning in version 2 of FSDP"),
        ({"fsdp": {"reshard_after_forward": False}}, "has no meaning in version 1 of FSDP"),
        ({"fsdp": {"version": 2, "state_dict_type": "local_state_dict"}}, "has no meaning in version 2"),
        ({"fsdp": {"sync_module_states": False}}, "Write cpu_ram_efficient_loading=False too"),
        ({"fsdp": {"version": 2, "activation_checkpointing_offload": True}}, "needs activation_checkpointing=True"),
        ({"fsdp": {"transformer_layer_cls_to_wrap": [7]}}, r"Classes must be named as a list of text.*not \[7\]"),
        ({"fsdp": {"min_num_params": "1e8"}}, "min_num_params must be a number of parameters, not '1e8'"),
        ({"deepspeed": {"zero_stage": 4}}, "zero_stage must be one of 0, 1, 2, 3, not 4"),
        ({"deepspeed": {"gradient_clipping": -1}}, "gradient_clipping must be a number above 0, not -1"),
        ({"parallelism": 2}, "Settings must be given as a mapping, not 2"),
        ({"deepspeed": True, "fsdp": True}, "fsdp and deepspeed both shard the model"),
        ({"dynamo": {"mode": "fast"}}, "mode must be one of 'default', 'reduce-overhead', 'max-autotune'"),
        ({"use_cpu": True, "mixed_precision": "fp16"}, "mixed_precision='fp16' needs GPUs, and use_cpu=True"),
    ],
)
def test_what_has_no_meaning_is_refused_where_it_is_written(written: Any, message: str) -> None:
    """The name that is wrong is in the error, and the nearest that there is."""
    with pytest.raises(ConfigError, match=message):
        sky.plugins.accelerate(written)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Config(), ""),
        (Config(mixed_precision="bf16"), ""),
        (Config(mixed_precision="fp16"), "mixed_precision='fp16'"),
        (Config(mixed_precision="fp8"), "mixed_precision='fp8'"),
        (Config(fsdp=True), "fsdp"),
        (Config(deepspeed=True, mixed_precision="fp16"), "deepspeed"),
    ],
)
def test_what_processors_cannot_do_is_known(config: Config, expected: str) -> None:
    """Accelerate would leave it out without a word."""
    assert expected == config.needs_gpu
