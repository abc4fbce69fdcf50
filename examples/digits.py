"""
Read handwritten digits: a sweep over settings and a training in shards, on one node and on several.

Everything is measured twice, with the same code: on a pool of one node and on a pool of as many as this machine
has cores for (2 to 4). Needs scikit-learn, whose package brings the data: 1,797 images of 8 by 8 pixels.
"""

import os
import time
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import skyward as sky

GRID = [(c, gamma) for c in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0) for gamma in (1e-4, 3e-4, 1e-3, 3e-3)]
ROUNDS, EPOCHS, HIDDEN = 20, 6, 512

# Nodes of `sky.Local()` share this machine. Linear algebra would start as many threads as there are cores in each of
# them: one node alone would then use all cores, several would fight for them, and the comparison would mean nothing.
IMAGE = sky.Image(env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

Weights = tuple[list[Any], list[Any]]
Outcome = tuple[float, float | None]


@sky.function
def warm_up() -> int:
    # The first import takes a second or more; it is no part of what is compared.
    import sklearn.neural_network
    import sklearn.svm

    return len(sklearn.svm.__all__) + len(sklearn.neural_network.__all__)


@sky.function
def score(c: float, gamma: float) -> tuple[float, float, float, int]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    images, labels = load_digits(return_X_y=True)
    accuracy = cross_val_score(SVC(C=c, gamma=gamma), images, labels, cv=5).mean()
    return float(accuracy), c, gamma, sky.instance_info().node


@sky.function
def train_on_shard(images: Any, labels: Any, weights: Weights | None, seed: int) -> Weights:
    """
    Train on this node's part of the data for some epochs, from common weights on.
    """
    import numpy as np
    from sklearn.neural_network import MLPClassifier

    images, labels = sky.shard(images, labels, shuffle=True, seed=seed)
    model = MLPClassifier((HIDDEN,), solver="sgd", learning_rate_init=0.1, momentum=0.0, batch_size=32, random_state=0)
    # The first step makes the layers, equal on all nodes; what it learnt is overwritten below.
    model.partial_fit(images[:32], labels[:32], classes=np.arange(10))
    if weights is not None:
        model.coefs_, model.intercepts_ = weights
    for _ in range(EPOCHS):
        model.partial_fit(images, labels)
    return model.coefs_, model.intercepts_


def average(parts: list[Weights]) -> Weights:
    """
    Take the mean of what the nodes have learnt, layer by layer.
    """
    coefs = [sum(layers) / len(parts) for layers in zip(*(part[0] for part in parts), strict=True)]
    intercepts = [sum(layers) / len(parts) for layers in zip(*(part[1] for part in parts), strict=True)]
    return coefs, intercepts


def accuracy_of(weights: Weights, images: Any, labels: Any) -> float:
    """
    Tell the share of images that a network with these weights reads correctly.
    """
    (first, second), (first_bias, second_bias) = weights
    hidden = (images @ first + first_bias).clip(min=0)
    return float(((hidden @ second + second_bias).argmax(axis=1) == labels).mean())


def sweep(pool: sky.Pool) -> float:
    """
    Score every setting, showing each result as it comes; give the best accuracy.
    """
    best = 0.0
    calls = [score(c, gamma) for c, gamma in GRID]
    results = sky.gather(*calls, stream=True, ordered=False) >> pool
    for done, (accuracy, c, gamma, node) in enumerate(results, start=1):
        best = max(best, accuracy)
        print(f"  {done:2}/{len(GRID)}  C={c:<4g} gamma={gamma:<6g} {accuracy:.3f}  node {node}   best {best:.3f}")
    return best


def train(pool: sky.Pool, split: list[Any]) -> float:
    """
    Train in rounds: every node on its own shard, then the average of all; give the accuracy on unseen images.
    """
    images, unseen_images, labels, unseen_labels = split
    weights: Weights | None = None
    for turn in range(ROUNDS):
        weights = average(train_on_shard(images, labels, weights, seed=turn) @ pool)
        if (turn + 1) % 5 == 0:
            print(f"  round {turn + 1:2}/{ROUNDS}  {accuracy_of(weights, unseen_images, unseen_labels):.3f}")
    assert weights is not None
    return accuracy_of(weights, unseen_images, unseen_labels)


def run(nodes: int, split: list[Any]) -> dict[str, Outcome]:
    """
    Do everything on a pool of some nodes.
    """
    print(f"{nodes} node{'s' if nodes > 1 else ''}:")
    started = time.perf_counter()
    with sky.Compute(provider=sky.Local(), nodes=nodes, image=IMAGE, console="silent") as pool:
        warm_up() @ pool
        ready = time.perf_counter()
        swept = sweep(pool)
        between = time.perf_counter()
        trained = train(pool, split)
        ended = time.perf_counter()
    return {
        "pool ready, scikit-learn imported": (ready - started, None),
        f"sweep of {len(GRID)} settings, 5 folds each": (between - ready, swept),
        f"training, {ROUNDS} rounds of {EPOCHS} epochs": (ended - between, trained),
    }


def main() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    nodes = min(4, max(2, cores))
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    alone, together = run(1, split), run(nodes, split)

    table = Table("", "1 node", f"{nodes} nodes", "times faster", "accuracy, 1 node", f"accuracy, {nodes} nodes")
    for name, (seconds, accuracy) in alone.items():
        others_seconds, others_accuracy = together[name]
        shares = ["" if share is None else f"{share:.3f}" for share in (accuracy, others_accuracy)]
        table.add_row(name, f"{seconds:.1f} s", f"{others_seconds:.1f} s", f"{seconds / others_seconds:.2f}", *shares)
    Console(width=120).print(table)

    # What the nodes do is shared out; what the client and the agents do runs on the same cores.
    print(f"This machine lends its {cores} core{'s' if cores > 1 else ''} to all nodes: more than {min(cores, nodes)}")
    print("times faster is impossible here. On rented machines every node brings its own.")
    reached = min(accuracy for _, accuracy in together.values() if accuracy is not None)
    print(f"Digits read correctly: at least {reached:.1%}.")


if __name__ == "__main__":
    main()
