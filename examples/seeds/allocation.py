"""
Choose between spot machines, which are cheap and may be taken back, and machines on demand.
"""

import skyward as sky
from skyward.testing import NoCapacity, Rehearsal

words = ["spot-if-available", "always-spot", "spot", "on-demand", "cheapest", 0.8]
values = [
    sky.Allocation.SpotIfAvailable(),
    sky.Allocation.AlwaysSpot(),
    sky.Allocation.OnDemand,
    sky.Allocation.Cheapest(),
    sky.Allocation.Percent(spot=0.8),
]
for allocation in (*words, *values):
    sky.ComputePool(allocation=allocation)


@sky.function
def rented_as_spot() -> bool:
    return sky.instance_info().spot


# A cloud that has no spot machines: what is left is on demand.
with sky.ComputePool(provider=Rehearsal(faults=[NoCapacity(spot=True)]), allocation="spot-if-available") as pool:
    fallen_back = rented_as_spot() >> pool

with sky.ComputePool(provider=Rehearsal(), nodes=2, allocation=0.5) as pool:
    mixed = sorted(rented_as_spot() @ pool)

print(f"{len(words) + len(values)} spellings | none to be had: spot {fallen_back} | half of two: {mixed}")
