"""
Name accelerators: by a word, by a value, by a slice of one.
"""

from types import SimpleNamespace

import skyward as sky
from skyward.testing import Rehearsal

kinds = [
    sky.AcceleratorSpec.NVIDIA.H100(),
    sky.AcceleratorSpec.NVIDIA.H100(count=4),
    sky.AcceleratorSpec.NVIDIA.H100(mig="3g.40gb"),
    sky.AcceleratorSpec.NVIDIA.A100(memory="40GB"),
    sky.AcceleratorSpec.NVIDIA.T4(),
    sky.AcceleratorSpec.AWS.Trainium(version=2),
    sky.AcceleratorSpec.AWS.Inferentia(version=2),
    sky.AcceleratorSpec.Google.TPU(version="v5p"),
    sky.AcceleratorSpec.Google.TPUSlice("v5p-8"),
    sky.AcceleratorSpec.AMD.MI("300X"),
]
names = "H100 H200 A100 B100 B200 GB200 GH200 L4 L40 L40S T4 A10 A10G V100".split()
kinds += [getattr(sky.AcceleratorSpec.NVIDIA, name)(count=1) for name in names]

# The newer spelling of the same.
kinds += [
    sky.accelerators.A100(),
    sky.accelerators.A100(memory="40GB"),
    sky.accelerators.H100(count=8),
    sky.accelerators.H100(form_factor="SXM"),
    sky.accelerators.Custom("My-GPU", memory="48GB", count=2),
]
names = "H100 H200 B200 A100 A10G A40 L4 L40S T4 V100 RTX_4090 RTX_A6000 MI300X".split()
kinds += [getattr(sky.accelerators, name)() for name in names]
assert all(isinstance(kind, sky.Accelerator) for kind in kinds)


def train(gpu: sky.NVIDIA) -> str:
    return f"on {gpu}"


assert train("A100-40GB") == "on A100-40GB"
assert sky.is_nvidia("H100")
assert not sky.is_nvidia("MI300X")
assert sky.is_trainium("Trainium2")
assert not sky.is_trainium("H100")

available_instances = [
    SimpleNamespace(name="small", vcpus=8, memory_gb=64, accelerator_name=None, accelerator_count=0),
    SimpleNamespace(name="wide", vcpus=192, memory_gb=2048, accelerator_name="H100", accelerator_count=8),
    SimpleNamespace(name="narrow", vcpus=48, memory_gb=256, accelerator_name="H100", accelerator_count=1),
]
instance = sky.select_instance(available_instances, accelerator="H100", cpu=32, memory="128GB")


@sky.compute
def what_is_there() -> str:
    acc = sky.current_accelerator()
    info = sky.instance_info()
    assert info.accelerator is not None
    return f"{acc}, {info.accelerator.count:g} x {info.accelerator.memory_gb:g} GB"


with sky.ComputePool(provider=Rehearsal(), accelerator="T4") as pool:
    found = what_is_there() >> pool

print(f"{len(kinds)} kinds | smallest that will do: {instance.name} | there: {found}")
