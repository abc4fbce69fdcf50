"""
Rent four machines for the time of a block: they appear, work, and are gone.
"""

import skyward as sky
from skyward.testing import Rehearsal

cloud = Rehearsal()


@sky.compute
def train_ranker(queries: list[int]) -> float:
    return sum(queries) / len(queries)


with sky.ComputePool(
    provider=cloud,
    accelerator="T4",
    nodes=4,
    image=sky.Image(env={"TOKENIZERS_PARALLELISM": "false"}),
) as pool:
    quality = train_ranker([3, 5, 10]) >> pool
    rented = {machine.id for machine in cloud.machines()}

left = rented & {machine.id for machine in cloud.machines()}

# Each experiment says what it needs; nothing is rented before `with`.
prototype = sky.ComputePool(accelerator="T4")
training = sky.ComputePool(accelerator="A100", nodes=4)
pretraining = sky.ComputePool(accelerator="H100", nodes=8)

print(f"quality {quality:g} | left on the bill: {len(left)} | pools open: {prototype.is_active + training.is_active}")
