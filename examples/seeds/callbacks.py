"""
Join callbacks, lend one to a block, and send events of your own.
"""

import threading

import skyward as sky

counted: list[str] = []
lent = threading.Event()


def relabel(event: sky.SkywardEvent) -> sky.SkywardEvent | None:
    # What a callback returns goes to the next one in the event's place.
    return sky.Error(message="hidden", instance_id="i-7") if isinstance(event, sky.Error) else None


def write_down(event: sky.SkywardEvent) -> None:
    if isinstance(event, (sky.Error, sky.Metrics)):
        counted.append(getattr(event, "message", type(event).__name__))


def look(event: sky.SkywardEvent) -> None:
    if isinstance(event, sky.Error):
        lent.set()


@sky.compute
def warn() -> None:
    sky.emit(sky.Error(message="secret", instance_id=None))


facts = {"cpu_percent": 12.5, "memory_percent": 40.0, "memory_used_mb": 410.0, "memory_total_mb": 1024.0}
snapshot = sky.Metrics(
    instance_id="i-7",
    node=0,
    **facts,
    gpu_utilization=None,
    gpu_memory_used_mb=None,
    gpu_memory_total_mb=None,
    gpu_temperature=None,
)

# Every event that the documents print can be made as they print it.
instance = {"instance_id": "i-7", "node": 0, "spot": True, "provider": "aws", "ip": None, "instance_type": "g5.xlarge"}
cost = {"hourly_rate": 2.4, "spot_count": 1, "ondemand_count": 0}
made = [
    sky.InfraCreating(),
    sky.InfraCreated(region="us-east-1"),
    sky.InstanceLaunching(count=2, instance_type="g5.xlarge", provider="aws"),
    sky.InstanceProvisioned(**instance, price_on_demand=1.0, price_spot=0.4),
    sky.BootstrapStarting(instance_id="i-7"),
    sky.BootstrapProgress(instance_id="i-7", step="deps"),
    sky.BootstrapCompleted(instance_id="i-7"),
    snapshot,
    sky.LogLine(node=0, instance_id="i-7", line="epoch 1", timestamp=12.0),
    sky.InstanceStopping(instance_id="i-7"),
    sky.PoolStopping(),
    sky.CostUpdate(elapsed_seconds=60.0, accumulated_cost=0.04, **cost),
    sky.CostFinal(total_cost=0.08, total_seconds=120.0, savings_vs_ondemand=0.1, **cost),
    sky.Error(message="out of disk", instance_id="i-7"),
]
line = made[8]
assert isinstance(line, sky.LogLine)
assert (line.timestamp, line.instance_id) == (12.0, "i-7")
assert made[5].step == made[5].phase == "deps"

combined = sky.compose(relabel, write_down)
with sky.ComputePool(provider=sky.Local(), on_event=combined, collect_metrics=False) as pool:
    warn() >> pool
    sky.emit(snapshot)
    with sky.use_callback(look):
        warn() >> pool
        # An event may arrive a moment after the result of the call that emitted it.
        lent.wait(10)

print(f"{len(made)} events made | written down: {sorted(counted)} | lent: {lent.is_set()}")
