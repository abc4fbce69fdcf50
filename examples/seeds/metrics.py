"""
Say what nodes measure, and hear it.
"""

import threading

import skyward as sky

image = sky.Image(
    metrics=[
        sky.metrics.CPU(interval=0.1),
        sky.metrics.Memory(),
        sky.metrics.MemoryUsed(),
        sky.metrics.MemoryTotal(),
        sky.metrics.GPU(interval=2.0),
        sky.metrics.GPUMemory(),
        sky.metrics.GPUMemoryTotal(),
        sky.metrics.GPUTemp(),
        sky.metrics.Disk("/", interval=0.1),
        sky.metrics.NetworkRx(),
        sky.metrics.NetworkTx(),
        sky.metrics.Custom("answer", "echo 42", interval=0.1),
    ]
)
assert sky.Image(metrics=None).metrics == ()
assert sky.Image(metrics=sky.metrics.Default()).metrics

seen: dict[str, float] = {}
complete = threading.Event()


def hear(event: sky.Metric) -> None:
    seen[event.name] = event.value
    if {"cpu_percent", "disk_percent:/", "answer"} <= seen.keys():
        complete.set()


with sky.Compute(provider=sky.Local(), image=image).on(sky.Metric, hear):
    assert complete.wait(30), seen

print(f"answer {seen['answer']:g} | disk between 0 and 100: {0 < seen['disk_percent:/'] <= 100}")
