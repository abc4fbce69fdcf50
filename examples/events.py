"""
Watch a pool: its nodes, its tasks, what they print, and numbers they send while they run.
"""

from collections import Counter

import skyward as sky


@sky.function
def descend(steps: int) -> float:
    x = 8.0
    for step in range(steps):
        x -= 0.2 * 2 * x
        sky.emit(sky.Metric(name="loss", value=x * x, node=sky.instance_info().node))
        if step % 5 == 0:
            print(f"step {step}: x = {x:.3f}")
    return x


seen: Counter[str] = Counter()
losses: list[float] = []
lines: list[str] = []


def on_metric(event: sky.Metric) -> None:
    # Nodes send measurements of their own as well.
    if event.name == "loss":
        losses.append(event.value)


def on_task(event: sky.TaskCompleted) -> None:
    print(f"{event.function} ended on node {event.node}: {'well' if event.success else event.error}")


# `on_event` gets everything; `pool.on` one kind. Handlers can be added before the pool is entered.
pool = sky.Compute(nodes=2, on_event=lambda event: seen.update([type(event).__name__]))
pool.on(sky.Metric, on_metric)
pool.on(sky.TaskCompleted, on_task)
pool.on(sky.Log, lambda event: lines.append(event.line))

with pool:
    descend(20) >> pool

# All events have been handled once the pool is left.
print("nodes that became ready:", seen["NodeReady"])
print("lines printed:", len(lines), "| losses sent:", len(losses), "| falling:", losses == sorted(losses, reverse=True))
