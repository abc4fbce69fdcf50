"""
Open several pools side by side, and compare what they run.
"""

import skyward as sky
from skyward.testing import Rehearsal

cloud = Rehearsal()


@sky.compute
def benchmark() -> str:
    info = sky.instance_info()
    return f"{info.gpu_count} x {info.gpu_model}"


with sky.MultiPool(
    sky.ComputePool(provider=cloud, accelerator="T4"),
    sky.ComputePool(provider=cloud, accelerator="A100", max_hourly_cost=40),
) as (t4_pool, a100_pool):
    result_t4 = benchmark() >> t4_pool
    result_a100 = benchmark() >> a100_pool

# The same with two clouds: both are described, and none is opened.
both = sky.MultiPool(
    sky.ComputePool(provider=sky.AWS(), accelerator="A100"),
    sky.ComputePool(provider=sky.Verda(), accelerator="H100"),
)

print(f"side by side: {result_t4} and {result_a100} | {type(both).__name__} of two clouds")
