"""
Trainer of Transformers on nodes of this machine, with a small model of random weights; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

import skyward as sky

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(240)]


@frozen(kw_only=True)
class Trained:
    """What a rank saw and made."""

    rank: int
    ranks: int
    parallel: str
    precision: str
    evaluated: float
    weights: list[Any] = field(repr=False)


def trainer(**settings: Any) -> Any:
    """Make a Trainer for 64 lines of 8 words, 8 lines a step among all ranks."""
    import os

    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    shape = {"vocab_size": 64, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 8}
    config = GPT2Config(**shape, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    samples = [{"input_ids": line, "labels": line} for line in torch.randint(64, (64, 8))]
    batch = 8 // int(os.environ["WORLD_SIZE"])
    arguments = TrainingArguments(
        output_dir="unused",
        max_steps=10,
        per_device_train_batch_size=batch,
        per_device_eval_batch_size=batch,
        optim="sgd",
        learning_rate=0.5,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        ddp_find_unused_parameters=False,
        **settings,
    )
    model = GPT2LMHeadModel(config).double()
    return Trainer(model=model, args=arguments, train_dataset=samples, eval_dataset=samples)


@sky.function
def train(**settings: Any) -> Trained:
    training = trainer(**settings)
    training.train()
    return Trained(
        rank=training.args.process_index,
        ranks=training.args.world_size,
        parallel=str(training.args.parallel_mode),
        precision=training.accelerator.mixed_precision,
        evaluated=training.evaluate()["eval_loss"],
        weights=[weights.detach().numpy() for weights in training.model.parameters()],
    )


@sky.function
def initialises_itself() -> tuple[int, list[Any]]:
    """Do what a script does that was written for torchrun, before the Trainer is made."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    training = trainer()
    training.train()
    return training.args.world_size, [weights.detach().numpy() for weights in training.model.parameters()]


@sky.function
def one_stays_away() -> None:
    """Return on the first rank, and train on the others."""
    if not sky.instance_info().is_head:
        trainer().train()


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """Two nodes with nothing but the plugin."""
    with sky.Compute(nodes=2, plugins=[sky.plugins.transformers()], console="silent") as pool:
        yield pool


def test_training_on_two_nodes_gives_what_one_process_gives(pool: sky.Pool) -> None:
    """After ten steps every weight agrees to 1e-9, between ranks and with a world of one."""
    import numpy as np

    one = train() >> pool
    two = train() @ pool
    assert [(0, 2, "ParallelMode.DISTRIBUTED"), (1, 2, "ParallelMode.DISTRIBUTED")] == [
        (each.rank, each.ranks, each.parallel) for each in two
    ]
    assert (0, 1) == (one.rank, one.ranks)
    # A model that learnt nothing knows each of 64 words as well as the others.
    assert one.evaluated < 0.95 * np.log(64)
    for each in two:
        assert each.evaluated == pytest.approx(one.evaluated, abs=1e-5)
        for expected, found in zip(one.weights, each.weights, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_settings_of_accelerate_hold_whichever_is_outermost(pool: sky.Pool) -> None:
    """What Transformers brings says nothing of its own; the next call is as it was."""
    precise = {"mixed_precision": "bf16"}
    inner = sky.integrations.accelerate(precise)(train)
    outer = sky.integrations.accelerate(precise)(sky.integrations.transformers()(train))
    for call in (inner, outer):
        assert [("bf16", 2)] * 2 == [(each.precision, each.ranks) for each in call() @ pool]
    assert [("no", 2)] * 2 == [(each.precision, each.ranks) for each in train() @ pool]


def test_what_a_script_says_holds(pool: sky.Pool) -> None:
    """Arguments of its own for a call, and other ones for the next."""
    for settings, precision in (({"bf16": True, "use_cpu": True}, "bf16"), ({"use_cpu": True}, "no")):
        assert [(precision, 2)] * 2 == [(each.precision, each.ranks) for each in train(**settings) @ pool]


def test_a_script_that_initialises_the_process_group_itself_runs_as_it_is(pool: sky.Pool) -> None:
    """Trainer finds the group, and comes to the same weights."""
    import numpy as np

    for (ranks, weights), expected in zip(initialises_itself() @ pool, train() @ pool, strict=True):
        assert 2 == ranks
        for ours, theirs in zip(weights, expected.weights, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.everything
def test_a_rank_that_returns_early_ends_the_others_by_torchs_limit() -> None:
    """They are in the middle of Trainer; the pool goes on."""
    plugins = [sky.plugins.torch(hang_timeout=25), sky.plugins.transformers()]
    with sky.Compute(nodes=2, plugins=plugins, console="silent") as pool:
        with pytest.raises(sky.HangError, match=r"rank 0: returned(.|\n)*rank 1: .*one_stays_away"):
            one_stays_away() @ pool
        assert [2, 2] == [each.ranks for each in train() @ pool]


def test_a_version_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    """It names the package and the version."""
    for name in ("accelerate", "torch", "transformers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["accelerate", "torch", "transformers"])])
    with pytest.raises(sky.SkywardError, match=r"transformers==99\.0") as caught:
        sky.Compute(plugins=[sky.plugins.transformers("99.0")], image=image, console="silent").__enter__()
    assert "or what a plugin was given for version=" in str(caught.value)
