"""
Accelerate itself, on nodes of this machine, and its launcher beside what nodes hear.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

import skyward as sky
from skyward_accelerate import config as settings
from skyward_accelerate.config import FSDP, Config, DeepSpeed, Dynamo
from skyward_accelerate.environment import environment

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(180)]

TORCHS = {"OMP_NUM_THREADS", "MASTER_ADDR", "MASTER_PORT"}
"""What the launcher sets too, and ours for torch: who a process is, and how many threads it has."""

INTELS = {"KMP_AFFINITY", "KMP_BLOCKTIME"}
"""What it sets for Intel's OpenMP on processors, and we do not: the ranks of a machine would all be bound to its first
processors."""


def launched(prepare: Any, *flags: str) -> dict[str, str]:
    """Return what a function of Accelerate's launcher adds to the environment for a command line."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    where = ["--num_machines", "2", "--num_processes", "4", "--machine_rank", "1", "--main_process_port", "29400"]
    arguments = [*flags, *where, "--main_process_ip", "127.0.0.1", "train.py"]
    args, defaults, _ = _validate_launch_command(launch_command_parser().parse_args(arguments))
    assert defaults is None, "no file of the user's takes part"
    # As `launch_command` does.
    args.deepspeed_fields_from_accelerate_config = ""
    made = prepare(args)
    env: dict[str, str] = made[1] if isinstance(made, tuple) else made
    return {name: text for name, text in env.items() if os.environ.get(name) != text}


def flags_of(prefix: str, part: Any) -> list[str]:
    """Write a part of the settings as arguments."""
    facts = {name: value for name, value in attrs.asdict(part).items() if value is not None}
    return [f"--{prefix}{name}={_written(value)}" for name, value in facts.items()]


def _written(value: Any) -> str:
    return (
        ",".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else str(value)
    )


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        (Config(), "--multi_gpu"),
        (Config(mixed_precision="bf16", debug=True), "--multi_gpu --mixed_precision=bf16 --debug"),
        (Config(mixed_precision="fp16"), "--multi_gpu --mixed_precision=fp16"),
        (Config(enable_cpu_affinity=True), "--multi_gpu --enable_cpu_affinity"),
        (
            Config(dynamo=Dynamo(mode="max-autotune", use_dynamic=True)),
            "--multi_gpu --dynamo_backend=inductor --dynamo_mode=max-autotune --dynamo_use_dynamic",
        ),
        (
            Config(dynamo=Dynamo(backend="eager", use_fullgraph=True, use_regional_compilation=True)),
            "--multi_gpu --dynamo_backend=eager --dynamo_use_fullgraph --dynamo_use_regional_compilation",
        ),
        (Config(fsdp=True), "--use_fsdp"),
        (
            Config(fsdp={"version": 2}, mixed_precision="bf16"),
            "--use_fsdp --fsdp_version=2 --mixed_precision=bf16",
        ),
    ],
)
def test_ranks_with_gpus_are_told_what_the_launcher_tells(config: Config, flags: str) -> None:
    """Every variable, and nothing else."""
    from accelerate.utils.launch import prepare_multi_gpu_env

    theirs = launched(prepare_multi_gpu_env, *flags.split())
    assert _without(theirs, TORCHS) == environment(config, cpu=False)


@pytest.mark.parametrize(
    "fsdp",
    [
        FSDP(
            sharding_strategy="HYBRID_SHARD",
            offload_params=True,
            min_num_params=1000,
            auto_wrap_policy="SIZE_BASED_WRAP",
            backward_prefetch="BACKWARD_PRE",
            state_dict_type="SHARDED_STATE_DICT",
            forward_prefetch=True,
            use_orig_params=False,
            cpu_ram_efficient_loading=False,
            sync_module_states=False,
            activation_checkpointing=True,
        ),
        FSDP(
            version=2,
            reshard_after_forward=False,
            auto_wrap_policy="TRANSFORMER_BASED_WRAP",
            transformer_layer_cls_to_wrap=["LlamaDecoderLayer", "Embedding"],
            activation_checkpointing=True,
            activation_checkpointing_offload=True,
        ),
    ],
)
def test_every_setting_of_fsdp_is_told_as_the_launcher_does(fsdp: FSDP) -> None:
    """All of them at once, none at its default, under the name of its argument."""
    from accelerate.utils.launch import prepare_multi_gpu_env

    theirs = launched(prepare_multi_gpu_env, "--use_fsdp", *flags_of("fsdp_", fsdp))
    assert _without(theirs, TORCHS) == environment(Config(fsdp=fsdp), cpu=False)


@pytest.mark.parametrize(
    ("deepspeed", "flags"),
    [
        (DeepSpeed(), ""),
        (
            DeepSpeed(zero_stage=3, gradient_clipping=0.5, offload_optimizer_device="cpu", zero3_init=True),
            "--zero_stage=3 --gradient_clipping=0.5 --offload_optimizer_device=cpu --zero3_init_flag=true",
        ),
        (
            DeepSpeed(offload_param_device="nvme", zero3_save_16bit_model=False, config_file="/data/Zero.json"),
            "--offload_param_device=nvme --zero3_save_16bit_model=false --deepspeed_config_file=/data/Zero.json",
        ),
        (DeepSpeed(moe_layer_cls_names=["A", "B"]), "--deepspeed_moe_layer_cls_names=A,B"),
    ],
)
def test_deepspeed_is_told_as_the_launcher_does(deepspeed: DeepSpeed, flags: str) -> None:
    """As with its launcher `standard`, which is torchrun."""
    from accelerate.utils.launch import prepare_deepspeed_cmd_env

    config = Config(deepspeed=deepspeed, gradient_accumulation_steps=4, mixed_precision="bf16")
    further = ["--gradient_accumulation_steps=4", "--mixed_precision=bf16", "--deepspeed_multinode_launcher=standard"]
    theirs = launched(prepare_deepspeed_cmd_env, "--use_deepspeed", *flags.split(), *further)
    assert _without(theirs, {"PYTHONPATH"}) == environment(config, cpu=False)


def test_ranks_on_processors_are_told_what_the_launcher_tells() -> None:
    """Where there is no accelerator it starts processes in another way."""
    from accelerate.utils.launch import prepare_simple_launcher_cmd_env

    theirs = launched(prepare_simple_launcher_cmd_env, "--cpu", "--mixed_precision=bf16")
    assert _without(theirs, TORCHS | INTELS) == environment(Config(mixed_precision="bf16"), cpu=True)


def test_what_can_be_chosen_is_what_accelerate_has() -> None:
    """A newer one that has more is noticed here."""
    from accelerate.utils import PrecisionType, constants
    from accelerate.utils.dataclasses import DynamoBackend

    assert set(PrecisionType.list()) == set(settings.PRECISIONS)
    assert constants.FSDP_SHARDING_STRATEGY == list(settings.SHARDING_STRATEGIES)
    assert constants.FSDP_AUTO_WRAP_POLICY == list(settings.WRAP_POLICIES)
    assert constants.FSDP_BACKWARD_PREFETCH == list(settings.PREFETCHES)
    assert constants.FSDP_STATE_DICT_TYPE == list(settings.STATE_DICTS)
    assert constants.TORCH_DYNAMO_MODES == list(settings.DYNAMO_MODES)
    assert DynamoBackend.list() == list(settings.DYNAMO_BACKENDS)


SHARDED = FSDP(
    version=2,
    reshard_after_forward=False,
    offload_params=True,
    auto_wrap_policy="TRANSFORMER_BASED_WRAP",
    transformer_layer_cls_to_wrap=["A", "B"],
    state_dict_type="SHARDED_STATE_DICT",
    activation_checkpointing=True,
)
FIRST = FSDP(sharding_strategy="SHARD_GRAD_OP", cpu_ram_efficient_loading=False, sync_module_states=False)


@pytest.mark.parametrize(
    ("fsdp", "expected"),
    [
        (SHARDED, (2, None, False, ["A", "B"], "CPUOffloadPolicy", "SHARDED_STATE_DICT", None, True)),
        (FIRST, (1, "SHARD_GRAD_OP", None, None, "CPUOffload", "FULL_STATE_DICT", True, False)),
    ],
)
def test_accelerate_reads_of_fsdp_what_was_said(fsdp: FSDP, expected: tuple[object, ...]) -> None:
    """Out of the environment; what has no meaning in a version is not read."""
    from accelerate import FullyShardedDataParallelPlugin

    os.environ.update(environment(Config(fsdp=fsdp), cpu=False))
    read = FullyShardedDataParallelPlugin()
    assert expected == (
        read.fsdp_version,
        getattr(read.sharding_strategy, "name", None),
        read.reshard_after_forward,
        read.transformer_cls_names_to_wrap,
        type(read.cpu_offload).__name__,
        read.state_dict_type.name,
        read.use_orig_params,
        read.activation_checkpointing,
    )


def _without(env: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if name not in names}


@sky.function
def sanity_check(directory: str) -> int:
    """Run Accelerate's own check of a distributed set-up, unchanged; tell how many processes it saw."""
    import runpy

    from accelerate import PartialState

    # It has all processes write to one file.
    os.chdir(directory)
    runpy.run_module("accelerate.test_utils.scripts.test_script", run_name="__main__")
    return PartialState().num_processes


@sky.function
def told() -> tuple[int, int, str, int, float]:
    """Tell who Accelerate thinks that this process is, how it is to train, and what a sum over all gives."""
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator()
    summed = accelerator.reduce(torch.ones(1), "sum")
    steps = accelerator.gradient_accumulation_steps
    return accelerator.process_index, accelerator.num_processes, accelerator.mixed_precision, steps, float(summed)


@sky.function
def asks_in_code(precision: str) -> tuple[str, dict[str, str]]:
    """Ask for a precision, and leave a variable as Accelerate itself does for FSDP; tell which there were before."""
    from accelerate import Accelerator

    found = {name: text for name, text in os.environ.items() if name.startswith(("ACCELERATE_USE", "FSDP_"))}
    os.environ["ACCELERATE_USE_FSDP"] = "true"
    del os.environ["ACCELERATE_MIXED_PRECISION"]
    precision = Accelerator(mixed_precision=precision, cpu=True).mixed_precision
    return precision, found


@sky.function
def kept_from_another_call() -> str:
    """Use an Accelerator that an earlier call made."""
    from accelerate import Accelerator

    if not hasattr(Accelerator, "_kept"):
        Accelerator._kept = Accelerator()
        return ""
    try:
        return str(Accelerator._kept.process_index)
    except AttributeError as error:
        return str(error)


@sky.function
def forward() -> tuple[str, str]:
    """Tell in which type a prepared model computes, and what it is prepared as."""
    import torch
    from accelerate import Accelerator

    seen = []
    layer = torch.nn.Linear(4, 4)
    layer.register_forward_hook(lambda module, given, result: seen.append(str(result.dtype)))
    model = Accelerator().prepare(torch.nn.Sequential(layer))
    model(torch.ones(2, 4))
    return seen[0], type(model).__name__


@sky.function
def initialises_itself() -> tuple[int, float]:
    """Do what a script does that was written for torchrun, before Accelerate is used."""
    from datetime import timedelta

    import torch
    import torch.distributed as dist
    from accelerate import Accelerator

    dist.init_process_group("gloo")
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    accelerator = Accelerator()
    return accelerator.num_processes, float(accelerator.reduce(torch.ones(1), reduction="sum"))


@sky.function
def waits_for_everyone() -> None:
    """Return on the first rank, and wait on the others."""
    from accelerate import Accelerator

    accelerator = Accelerator()
    if not accelerator.is_main_process:
        accelerator.wait_for_everyone()


def fresh(*plugins: Any, **changes: Any) -> Any:
    return sky.Compute(**{"nodes": 2, "plugins": plugins, "console": "silent", **changes})


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """Two nodes that hear something."""
    config = {"mixed_precision": "bf16", "gradient_accumulation_steps": 3}
    with fresh(sky.plugins.torch(hang_timeout=60), sky.plugins.accelerate(config)) as pool:
        yield pool


@pytest.mark.everything
def test_accelerates_own_sanity_check_passes_on_two_nodes(tmp_path: Path) -> None:
    """
    With nothing but the plugin, which brings torch's process group.

    The script destroys that group; the next call has one all the same, and of the size that the pool has by then.
    """
    with fresh(sky.plugins.accelerate()) as pool:
        assert [2, 2] == sanity_check(str(tmp_path)) @ pool
        assert [] == list(tmp_path.iterdir())
        assert [(0, 2, 2.0), (1, 2, 2.0)] == [(rank, size, summed) for rank, size, *_, summed in told() @ pool]
        pool.resize(1)
        _until(lambda: pool.current_nodes() == 1)
        assert [(0, 1, 1.0)] == [(rank, size, summed) for rank, size, *_, summed in told() @ pool]


def test_a_broadcast_is_what_the_settings_say(pool: sky.Pool) -> None:
    """Ranks are in order, and each hears how to train."""
    assert [(0, 2, "bf16", 3, 2.0), (1, 2, "bf16", 3, 2.0)] == told() @ pool


def test_another_call_is_a_world_of_one(pool: sky.Pool) -> None:
    """Before, after and between broadcasts."""
    for _ in range(2):
        assert (0, 1, "bf16", 3, 1.0) == told() >> pool
        assert [(0, 2.0), (1, 2.0)] == [(rank, summed) for rank, *_, summed in told() @ pool]


def test_mixed_precision_is_computed_with(pool: sky.Pool) -> None:
    """Models are prepared for it, and for data-parallel training."""
    assert [("torch.bfloat16", "DistributedDataParallel")] * 2 == forward() @ pool


def test_every_call_begins_as_a_process_that_was_launched(pool: sky.Pool) -> None:
    """Neither what Accelerate was asked for in an earlier call's code is left, nor what that did to the environment."""
    for precision in ("no", "bf16", "no"):
        (first, found), _ = asks_in_code(precision) @ pool
        assert (precision, {"ACCELERATE_USE_CPU": "True"}) == (first, found)
    assert [(0, 2, "bf16", 3, 2.0), (1, 2, "bf16", 3, 2.0)] == told() @ pool


def test_an_accelerator_of_an_earlier_call_says_that_it_is_no_more(pool: sky.Pool) -> None:
    """It does not go on in a world that may be another."""
    assert ["", ""] == kept_from_another_call() @ pool
    for text in kept_from_another_call() @ pool:
        assert "`AcceleratorState` object has no attribute `process_index`" in text


def test_code_that_initialises_the_process_group_itself_runs_as_it_is(pool: sky.Pool) -> None:
    """Accelerate finds the group, whether it was there or was asked for again, or for something else."""
    assert [(2, 2.0)] * 2 == initialises_itself() @ pool
    assert (1, 1.0) == initialises_itself() >> pool
    assert [(0, 2.0), (1, 2.0)] == [(rank, summed) for rank, *_, summed in told() @ pool]


@pytest.mark.everything
def test_a_rank_that_returns_early_ends_the_others_by_torchs_limit() -> None:
    """They wait for everyone."""
    with fresh(sky.plugins.torch(hang_timeout=5), sky.plugins.accelerate()) as pool:
        with pytest.raises(sky.HangError, match=r"rank 0: returned(.|\n)*rank 1: .*waits_for_everyone"):
            waits_for_everyone() @ pool
        assert [2.0, 2.0] == [summed for *_, summed in told() @ pool]


def test_one_function_can_have_the_plugin() -> None:
    """On a pool without it, as nodes on this machine have Accelerate."""
    asking = sky.integrations.accelerate({"mixed_precision": "bf16"})(told)
    with fresh() as pool:
        assert [(0, 2, "bf16", 1, 2.0), (1, 2, "bf16", 1, 2.0)] == asking() @ pool
        assert (0, 1, "bf16", 1, 1.0) == asking() >> pool


def test_one_function_can_have_other_settings_than_its_pool(pool: sky.Pool) -> None:
    """As far as it says something else, and for its own calls."""
    asking = sky.integrations.accelerate({"mixed_precision": "no"})(told)
    assert [(0, 2, "no", 3, 2.0), (1, 2, "no", 3, 2.0)] == asking() @ pool
    asking = sky.integrations.accelerate({"gradient_accumulation_steps": 5})(told)
    assert [(0, 2, "bf16", 5, 2.0), (1, 2, "bf16", 5, 2.0)] == asking() @ pool
    assert [(0, 2, "bf16", 3, 2.0), (1, 2, "bf16", 3, 2.0)] == told() @ pool


def test_what_needs_gpus_is_refused_by_nodes_that_have_none() -> None:
    """What this machine has is found out before the first task."""
    with pytest.raises(sky.PluginError, match="fsdp needs GPUs, and torch sees none on this node"):
        fresh(sky.plugins.accelerate({"fsdp": True}), nodes=1).__enter__()


@pytest.mark.parametrize(
    ("config", "wish"),
    [({"deepspeed": True}, "deepspeed"), ({"fsdp": True}, "fsdp"), ({"mixed_precision": "fp16"}, "'fp16'")],
)
def test_a_function_that_needs_gpus_is_refused_where_there_are_none(
    pool: sky.Pool, config: dict[str, Any], wish: str
) -> None:
    """In the call, and the next one goes on."""
    with pytest.raises(sky.PluginError, match=rf"{wish} needs GPUs, and torch sees none on this node"):
        sky.integrations.accelerate(config)(told)() @ pool
    assert (0, 1, "bf16", 3, 1.0) == told() >> pool


def test_a_version_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    """It names the package and the version."""
    for name in ("accelerate", "torch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["accelerate", "torch"])])
    with pytest.raises(sky.SkywardError, match=r"accelerate==99\.0") as caught:
        fresh(sky.plugins.accelerate(version="99.0"), image=image).__enter__()
    assert "or what a plugin was given for version=" in str(caught.value)


def _until(holds: Any, seconds: float = 60.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
