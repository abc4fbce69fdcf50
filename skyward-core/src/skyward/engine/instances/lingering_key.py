"""What a pool and a machine that lingers have to have in common: digests of spec, image and account."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.instances.identity import owner
from skyward.engine.source.bundle import runtime_bundle
from skyward.model.fields.stated import digest_of

if TYPE_CHECKING:
    from skyward.engine.instances.blueprint import Blueprint
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.model.spec.spec import Spec


def source_of(provider: ProviderHandle) -> str:
    """Return a digest of what a provider says of itself: its account and settings."""
    facts = provider.facts
    return digest_of(facts.name, provider.provider, facts.offers_key, facts.regions)


def key_of(provider: ProviderHandle, spec: Spec) -> tuple[str, str]:
    """
    Return the digests by which a pool finds machines that linger; reads our own files.

    Args:
        provider: The provider.
        spec: What the pool asks for; how many nodes, and how long they live, makes no difference.

    Returns:
        That of the provider, and that of provider, spec, image, user and this version of Skyward.
    """
    source = source_of(provider)
    alike = evolve(spec, provider=None, nodes=1, ttl=None, timeout=None, trust=None)
    return source, digest_of(source, alike, runtime_bundle().digest, sys.version_info[:2], owner())


def made_of(blueprint: Blueprint) -> str:
    """Return a digest of what is made of a machine: its image, and what plugins add."""
    return digest_of(blueprint.image, blueprint.ops, blueprint.cluster.ranks_per_node)
