"""
Open a pool in each of three ways: by keywords, by specs, by its name in skyward.toml.
"""

import os
import tempfile
from pathlib import Path

import skyward as sky

SETTINGS = """
[pools.train]
provider = "Local"
nodes = 2
"""


@sky.function
def nodes() -> int:
    return sky.instance_info().total_nodes


with sky.Compute(provider=sky.Local(), nodes=2) as pool:
    flat = nodes() >> pool

spec = sky.Spec(
    provider=sky.Local(),
    accelerator=None,
    nodes=2,
    vcpus=1,
    memory_gb=0.5,
    disk_gb=None,
    architecture=None,
    allocation="spot-if-available",
    image=sky.Image(),
    region=None,
    max_hourly_cost=2.5,
    ttl=600,
    plugins=(),
)
with sky.Compute(spec, options=sky.Options(selection="first")) as pool:
    explicit = nodes() >> pool

here = Path.cwd()
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "skyward.toml").write_text(SETTINGS)
    os.chdir(folder)
    try:
        with sky.Compute(name="train") as pool:
            named = nodes() >> pool
    finally:
        os.chdir(here)

with sky.Session() as session:
    one, other = session.compute(provider=sky.Local()), session.compute(provider=sky.Local())
    managed = [nodes() >> one, nodes() >> other]

print(f"flat {flat} | explicit {explicit} | named {named} | of a session {managed}")
