"""What commands print with `--json`: plain values under the keys that docs/command-line.md promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyward.model.instances.machine import Instance
    from skyward.model.instances.machine_image import MachineImage
    from skyward.model.instances.offer import Offer
    from skyward.plan.instances.detached_pool import Detached

__all__ = ["answered", "detached_facts", "image_facts", "instance_facts", "offer_facts"]


def answered(
    kind: str, facts: Iterable[Mapping[str, Any]], asked: Iterable[str], failures: Mapping[str, Exception]
) -> dict[str, Any]:
    """
    Return what clouds have answered, and which of them could not be asked.

    Args:
        kind: The key that the facts are under.
        facts: One for each thing.
        asked: The names of the providers that were asked.
        failures: Why providers could not be asked, by name.

    >>> answered("machines", [], ["aws", "runpod"], {"runpod": ValueError("no key")})
    {'machines': [], 'asked': ['aws', 'runpod'], 'failures': {'runpod': 'no key'}}
    """
    return {
        kind: [dict(each) for each in facts],
        "asked": list(asked),
        "failures": {name: str(error) for name, error in failures.items()},
    }


def instance_facts(
    instance: Instance, waits: Mapping[tuple[str, str], tuple[str, float]] | None = None
) -> dict[str, Any]:
    """
    Return what is known of a machine; None for what is not.

    Args:
        instance: The machine.
        waits: How and until when machines are without a client, by provider and id; None if none is.

    >>> from skyward.model.instances.machine import Instance
    >>> facts = instance_facts(Instance(id="i-1", node=0, provider="aws", hourly_rate=1.5))
    >>> facts["machine"], facts["state"], facts["hourly_rate"], facts["pool"]
    ('i-1', 'running', 1.5, None)
    """
    tags = instance.tags
    state, until = (waits or {}).get((instance.provider, instance.id), (instance.state.value, None))
    expires_at = None if tags is None else tags.expires_at
    return {
        "pool": None if tags is None else tags.pool_name or tags.pool_id,
        "pool_id": None if tags is None else tags.pool_id,
        "node": instance.node,
        "machine": instance.id,
        "provider": instance.provider,
        "type": instance.instance_type,
        "region": instance.region,
        "state": state,
        "hourly_rate": instance.hourly_rate,
        "spot": instance.spot,
        "launched_at": instance.launched_at,
        "owner": (None if tags is None else tags.owner) or None,
        "expires_at": until if until is not None and expires_at != 0 else expires_at,
    }


def image_facts(image: MachineImage) -> dict[str, Any]:
    """
    Return what is known of a machine image; None for what is not.

    Args:
        image: The image.

    >>> from skyward.model.instances.machine_image import MachineImage
    >>> image_facts(MachineImage(id="ami-1", provider="aws", content_hash="4f"))["hash"]
    '4f'
    """
    return {
        "hash": image.content_hash,
        "image": image.id,
        "provider": image.provider,
        "region": image.region,
        "architecture": image.architecture,
        "state": image.state,
        "size_gb": image.size_gb,
        "monthly_cost": image.monthly_cost,
        "made_at": image.made_at,
    }


def detached_facts(about: Detached) -> dict[str, Any]:
    """
    Return what is known of a pool without a client.

    Args:
        about: The pool.
    """
    return {
        "pool": about.pool_name,
        "pool_id": about.pool_id,
        "provider": about.provider,
        "machines": list(about.machines),
        "calls": about.calls,
        "hourly_rate": about.hourly_rate,
        "left_at": about.since,
        "ends_at": about.ends_at,
        "client_died": about.owned,
    }


def offer_facts(offer: Offer) -> dict[str, Any]:
    """
    Return what is known of an offer; None for what is not.

    Args:
        offer: The offer.

    >>> from skyward.model.instances.offer import Offer
    >>> offer_facts(Offer(provider="aws", instance_type="g4dn.xlarge", on_demand_price=0.526))["on_demand_price"]
    0.526
    """
    return {
        "provider": offer.provider,
        "type": offer.instance_type,
        "region": offer.region,
        "zone": offer.zone,
        "accelerator": offer.accelerator_name,
        "accelerator_count": offer.accelerator_count,
        "accelerator_memory_gb": offer.accelerator_memory_gb,
        "vcpus": offer.vcpus,
        "memory_gb": offer.memory_gb,
        "spot_price": offer.spot_price,
        "on_demand_price": offer.on_demand_price,
        "available": offer.available,
        "seen_at": offer.seen_at,
    }
