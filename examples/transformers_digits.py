"""
Train a small transformer to read handwritten digits with `Trainer`, data parallel, on every rank of a pool.

Needs transformers and scikit-learn, whose package brings the data; weights are random, so nothing is downloaded.
The same function runs on rented GPUs.
"""

from typing import Any

import skyward as sky


@sky.function
def train(epochs: int = 20) -> float:
    """
    Train on this rank's share of the images; give the share of unseen images that is read correctly.
    """
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

    set_seed(0)
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    inputs, unseen, targets, answers = (torch.tensor(part) for part in split)
    pixels = inputs.float().view(-1, 1, 8, 8)
    samples: Any = [{"pixel_values": one, "labels": label} for one, label in zip(pixels, targets, strict=True)]

    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    image = {"image_size": 8, "patch_size": 2, "num_channels": 1}
    model: Any = ViTForImageClassification(ViTConfig(**size, **image, num_labels=10))
    arguments = TrainingArguments(
        output_dir="unused",
        num_train_epochs=epochs,
        per_device_train_batch_size=64 // sky.instance_info().total_workers,
        learning_rate=0.003,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
    )
    trained = Trainer(model=model, args=arguments, train_dataset=samples).train()
    if sky.is_head():
        print(f"{trained.global_step} steps: mean loss {trained.training_loss:.3f}")
    with torch.no_grad():
        found = model.eval()(unseen.float().view(-1, 1, 8, 8).to(model.device)).logits.argmax(dim=1)
    return float((found.cpu() == answers).float().mean())


if __name__ == "__main__":
    with sky.Compute(nodes=2, plugins=[sky.plugins.transformers()], console="log") as pool:
        accuracies = train() @ pool
    assert len(set(accuracies)) == 1, "all ranks have the same weights"
    print(f"Digits read correctly: {accuracies[0]:.1%}.")
