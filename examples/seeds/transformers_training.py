"""
Train with Transformers' `Trainer` on all nodes.

Needs transformers, accelerate, torch, and `skyward-transformers`; weights are random, so nothing is downloaded.
On machines with GPUs, write "nccl" for the backend.
"""

from typing import Any

import skyward as sky


@sky.integrations.transformers(backend="gloo")
@sky.compute
def train() -> tuple[int, bool]:
    import torch
    from transformers import Trainer, TrainingArguments

    class Line(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x, labels):
            found = self.layer(x)
            return {"loss": (found - labels).square().mean(), "logits": found}

    samples: Any = [{"x": torch.tensor([float(x)]), "labels": torch.tensor([2.0 * x])} for x in range(16)]
    arguments = TrainingArguments(
        output_dir="unused",
        num_train_epochs=2,
        per_device_train_batch_size=4,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(model=Line(), args=arguments, train_dataset=samples)
    trainer.train()
    return trainer.args.world_size, trainer.state.global_step > 0


if __name__ == "__main__":
    with sky.ComputePool(provider=sky.Local(), nodes=2) as pool:
        results = train() @ pool
    print(f"world and progress: {results}")
