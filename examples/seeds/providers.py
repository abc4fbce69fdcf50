"""
Name several providers: which is tried first, and what happens if it has nothing.
"""

from typing import Any

import skyward as sky
from skyward.testing import NoCapacity, Rehearsal

described = [
    sky.AWS(region="us-east-1", use_ssm=False),
    sky.DigitalOcean(region="nyc1"),
    sky.Verda(region="us-east"),
    sky.Verda(),
    sky.RunPod(),
    sky.VastAI(),
]
for region in "nyc1 nyc3 sfo2 sfo3 ams3 sgp1 lon1 fra1 tor1".split():
    sky.DigitalOcean(region=region)


@sky.compute
def where() -> str:
    return sky.instance_info().provider


def prefer_spot(providers: tuple[Any, ...], spec: sky.Spec) -> Any:
    """Prefer providers with spot machines."""
    for p in providers:
        if p.has_spot_capacity(spec):
            return p
    return providers[0]


sold_out = Rehearsal(faults=[NoCapacity()])
chosen = {}
for selection in ("first", "cheapest", "available", prefer_spot, sky.select_first, sky.select_cheapest):
    sky.ComputePool(provider=[sky.AWS(), sky.Verda()], selection=selection, accelerator="A100")
assert callable(sky.select_available)


@sky.pool(provider=[sold_out, sky.Local()], selection="first", max_provision_attempts=1, provision_timeout=5)
def fallback() -> str:
    return where() >> sky


@sky.pool(provider=[sky.Local(), Rehearsal()], selection=prefer_spot)
def by_own_rule() -> str:
    return where() >> sky


with sky.Compute(
    sky.Spec(provider=Rehearsal()),
    sky.Spec(provider=sky.Local()),
    options=sky.Options(selection="cheapest"),
) as pool:
    cheapest = where() >> pool

try:
    with sky.ComputePool(provider=Rehearsal(), accelerator="H100"):
        raise AssertionError("nobody sells it")
except sky.NoAvailableProviderError as error:
    refused = type(error).__name__

try:
    with sky.ComputePool(
        provider=[sold_out, Rehearsal(faults=[NoCapacity()], seed=1)],
        selection="first",
        max_provision_attempts=1,
    ):
        raise AssertionError("nobody has one left")
except sky.AllProvidersFailedError as error:
    failed = len(error.reasons)

print(f"fallback: {fallback()} | own rule: {by_own_rule()} | cheapest: {cheapest} | {refused} | all {failed} failed")
