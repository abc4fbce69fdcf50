"""
Say all that a pool can be asked for in one place; nothing is rented before `with`.
"""

import skyward as sky


def hear(event: sky.SkywardEvent) -> None:
    """A callback that takes everything and says nothing."""


def large() -> sky.Pool:
    return sky.ComputePool(
        provider=sky.AWS(region="us-east-1"),
        nodes=4,
        accelerator=sky.Accelerator.NVIDIA.H100(count=8),
        image=sky.Image(pip=["torch", "transformers"], apt=["ffmpeg"], env={"CUDA_VISIBLE_DEVICES": "0"}),
        allocation="always-spot",
        timeout=3600,
    )


def by_instance_type() -> sky.Pool:
    return sky.ComputePool(
        provider=[sky.AWS(), sky.Verda()],
        selection="first",
        image=sky.Image(),
        nodes=1,
        machine="p5.48xlarge",
        accelerator=None,
        cpu=16,
        memory="32GB",
        allocation="spot-if-available",
        timeout=3600,
        env={"RUN": "7"},
        concurrency=2,
        display="log",
        on_event=hear,
        collect_metrics=True,
    )


def cheap() -> sky.Pool:
    return sky.ComputePool(provider=sky.AWS(), accelerator="A100", allocation="always-spot", timeout=3600)


pools = [large(), by_instance_type(), cheap()]
pools += [sky.ComputePool(provider=sky.DigitalOcean(), display=display) for display in ("log", "spinner", "quiet")]

print("pools described:", len(pools), "| open:", sum(pool.is_active for pool in pools))
