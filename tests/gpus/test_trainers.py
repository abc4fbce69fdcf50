"""Accelerate, Transformers and Keras on a real GPU."""

from __future__ import annotations

import math
from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.gpus, pytest.mark.timeout(240)]


@sky.function
def accelerated() -> tuple[str, str, float, list[str]]:
    """Train a layer, and tell device, precision, what is left of the loss, and the types of what it computed."""
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator()
    torch.manual_seed(0)
    model: Any = torch.nn.Linear(64, 64)
    inputs = torch.rand(256, 64)
    model, optimiser = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    losses, types = [], set()
    for _ in range(20):
        with accelerator.autocast():
            made = model(inputs.to(accelerator.device))
            types.add(str(torch.nn.functional.linear(made, made).dtype))
        loss = made.float().square().mean()
        accelerator.backward(loss)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss))
    return str(accelerator.device), accelerator.mixed_precision, losses[-1] / losses[0], sorted(types)


@sky.function
def sharded() -> tuple[str, str, float]:
    """Train under FSDP, and tell the kind of the model, the device, and what is left of the loss."""
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator()
    torch.manual_seed(0)
    model: Any = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64))
    model, optimiser = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    inputs = torch.rand(256, 64, device=accelerator.device)
    losses = []
    for _ in range(20):
        loss = model(inputs).float().square().mean()
        accelerator.backward(loss)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss))
    return type(model).__name__, str(next(model.parameters()).device), losses[-1] / losses[0]


@sky.function
def fine_tuned() -> tuple[str, bool, float]:
    """Train a small language model with Trainer in bf16, and tell device, precision and loss."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    shape = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 8}
    samples = [{"input_ids": line, "labels": line} for line in torch.randint(64, (64, 8))]
    arguments = TrainingArguments(
        output_dir="unused",
        max_steps=60,
        per_device_train_batch_size=64,
        learning_rate=0.01,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=True,
    )
    model = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0))
    training = Trainer(model=model, args=arguments, train_dataset=samples, eval_dataset=samples)
    training.train()
    return str(training.args.device), training.args.bf16, training.evaluate()["eval_loss"]


@sky.function
def fits(backend: str) -> tuple[str, str, bool]:
    """Train with Keras, and tell its backend, where its weights are, and whether the loss fell."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    inputs = np.random.default_rng(0).normal(size=(256, 16)).astype("float32")
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    losses = model.fit(inputs, inputs[:, :1], batch_size=64, epochs=5, verbose=0).history["loss"]
    value = model.trainable_weights[0].value
    where = str(value.device) if backend == "torch" else ",".join(one.platform for one in value.devices())
    return keras.backend.backend(), where, losses[-1] < losses[0]


@pytest.mark.parametrize(("precision", "types"), [("fp16", ["torch.float16"]), ("bf16", ["torch.bfloat16"])])
def test_accelerate_trains_in_half_precision(precision: str, types: list[str]) -> None:
    """fp16 is what processors do not have."""
    plugin = sky.plugins.accelerate({"mixed_precision": precision})
    with sky.Compute(plugins=[plugin], console="silent", logging=False) as pool:
        [(device, said, left, found)] = accelerated() @ pool
    assert (device.partition(":")[0], said, found) == ("cuda", precision, types)
    assert left < 0.9


def test_accelerate_shards_by_fsdp() -> None:
    """Version 2, in a world of one."""
    plugin = sky.plugins.accelerate({"fsdp": {"version": 2}, "mixed_precision": "bf16"})
    with sky.Compute(plugins=[plugin], console="silent", logging=False) as pool:
        [(kind, device, left)] = sharded() @ pool
    assert kind.startswith("FSDP")
    assert device.startswith("cuda")
    assert left < 0.9


def test_a_trainer_learns_in_bf16() -> None:
    """It needs no word of the GPU."""
    with sky.Compute(plugins=[sky.plugins.transformers()], console="silent", logging=False) as pool:
        [(device, bf16, loss)] = fine_tuned() @ pool
    assert (device, bf16) == ("cuda:0", True)
    assert loss < 0.8 * math.log(64)


@pytest.mark.parametrize(("backend", "where"), [("torch", "cuda"), ("jax", "gpu")])
def test_keras_trains_on_the_gpu(backend: str, where: str) -> None:
    """With both backends that the image of such a machine has."""
    beneath = sky.plugins.torch() if backend == "torch" else sky.plugins.jax()
    plugins = [beneath, sky.plugins.keras(backend=backend)]
    with sky.Compute(plugins=plugins, console="silent", logging=False) as pool:
        [(said, found, fell)] = fits(backend) @ pool
    assert (said, found.partition(":")[0], fell) == (backend, where, True)
