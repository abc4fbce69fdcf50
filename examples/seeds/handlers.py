"""
Hear what a pool does: by one callback for everything, or by handlers for single events.
"""

import threading

import skyward as sky

heard: dict[str, int] = {}
measured = threading.Event()


def count(what: str) -> None:
    heard[what] = heard.get(what, 0) + 1


def my_callback(event: sky.SkywardEvent) -> None:
    match event:
        case sky.Metric(instance=inst, name="gpu_utilization", value=v):
            print(f"GPUs of node {inst.node}: {v}%")
        case sky.Metric(name=name, value=value):
            count(f"metric {name}")
            assert value >= 0, name
        case sky.Log(instance=inst, line=line):
            count(f"line of node {inst.node}: {line}")
        case sky.TaskCompleted(success=True, duration=d):
            count(f"task under a minute: {d < 60}")
        case sky.BootstrapPhase(phase="bootstrap", event="completed"):
            count("bootstrap completed")


def old_callback(event: sky.SkywardEvent) -> None:
    if isinstance(event, sky.LogLine):
        count(f"older name: {event.line}")


@sky.compute
def train() -> str:
    print("epoch 1")
    return "done"


def my_metrics_handler(event: sky.Metrics) -> None:
    assert 0 <= event.cpu_percent <= 100, event
    assert event.memory_used_mb < event.memory_total_mb, event
    measured.set()


pool = sky.ComputePool(
    provider=sky.Local(),
    on_event=sky.compose(my_callback, old_callback),
    image=sky.Image(metrics=sky.metrics.Default(interval=0.1)),
)
pool.on(sky.Metrics, my_metrics_handler)

with pool:
    result = train() >> pool
    assert measured.wait(30)

assert heard.pop("metric cpu_percent") > 0
print(sorted(what for what in heard if not what.startswith("metric")))
print(result)
