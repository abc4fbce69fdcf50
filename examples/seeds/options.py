"""
Set all that can be said of how a pool behaves.
"""

import skyward as sky
from skyward.testing import Rehearsal

options = sky.Options(
    selection="cheapest",
    worker=sky.Worker(concurrency=4),
    provision_timeout=600,
    ssh_timeout=60,
    bootstrap_timeout=300,
    provision_retry_delay=1.0,
    max_provision_attempts=5,
    ssh_retry_interval=2,
    default_compute_timeout=300.0,
    autoscale_cooldown=30.0,
    autoscale_idle_timeout=60.0,
    reconcile_tick_interval=15.0,
    shutdown_timeout=120.0,
    console="minimal",
    logging=True,
    cluster=False,
    retry_on_interruption=5,
    health_checker=sky.HealthChecker(lambda: True, period=30.0, failures=3),
)


@sky.function
def node() -> int:
    return sky.instance_info().node


@sky.function
def meet() -> tuple[str, ...]:
    return sky.exchange("here I am")


with sky.Compute(provider=Rehearsal(), nodes=2, options=options) as pool:
    nodes = node() @ pool
    try:
        meet() @ pool
    except sky.UsageError as error:
        refused = error.message

print(f"nodes {nodes} | {refused}")
