"""
Transformers' `Trainer` on two ranks: a checkpoint, training that is taken up from it, and metrics of all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.suites, pytest.mark.timeout(900)]


@sky.function
def trains(directory: str, steps: int, *, resume: bool) -> tuple[int, list[float], int]:
    """Train a small model, tell the step that it came to, its weights, and how many samples were evaluated."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    settings = GPT2Config(vocab_size=32, n_positions=8, n_embd=8, n_layer=1, n_head=1)
    settings.resid_pdrop = settings.embd_pdrop = settings.attn_pdrop = 0.0
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(0, 32, (32, 8), generator=generator)
    samples = [{"input_ids": row, "labels": row} for row in rows]
    counted: list[int] = []

    def metrics(found: Any) -> dict[str, float]:
        counted.append(len(found.label_ids))
        return {"rows": float(len(found.label_ids))}

    arguments = TrainingArguments(
        output_dir=directory,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        max_steps=steps,
        save_steps=2,
        learning_rate=0.01,
        lr_scheduler_type="constant",
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(settings).double(),
        args=arguments,
        train_dataset=samples,
        eval_dataset=samples[:27],
        compute_metrics=metrics,
    )
    trainer.train(resume_from_checkpoint=resume)
    trainer.evaluate()
    weights = [float(weight.sum()) for weight in trainer.accelerator.unwrap_model(trainer.model).parameters()]
    return trainer.state.global_step, weights, counted[-1]


@sky.function
def gathers() -> list[int]:
    """Gather what all ranks have of nine samples, of which the last batch is not full."""
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator()
    batches = accelerator.prepare(torch.utils.data.DataLoader(list(range(9)), batch_size=2))
    found: list[int] = []
    for batch in batches:
        found += accelerator.gather_for_metrics(batch).tolist()
    return sorted(found)


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Compute]:
    """Two nodes."""
    with sky.Compute(nodes=2, plugins=[sky.plugins.transformers()], console="silent") as pool:
        yield pool


def test_training_that_is_taken_up_again_ends_where_it_would_have(pool: sky.Compute, tmp_path: Any) -> None:
    """Four steps, and two that are taken up for two more, have the same weights on both ranks."""
    whole = trains(str(tmp_path / "whole"), 4, resume=False) @ pool
    trains(str(tmp_path / "half"), 2, resume=False) @ pool
    again = trains(str(tmp_path / "half"), 4, resume=True) @ pool
    assert [4, 4] == [step for step, *_ in again]
    assert whole[0][1] == pytest.approx(again[0][1], abs=1e-9)
    assert again[0][1] == pytest.approx(again[1][1], abs=1e-9)
    assert [27, 27] == [rows for *_, rows in whole]


def test_what_is_gathered_for_metrics_has_each_sample_once(pool: sky.Compute) -> None:
    """As often as it is done."""
    for _ in range(2):
        assert [[*range(9)]] * 2 == gathers() @ pool
