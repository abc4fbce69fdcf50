"""A machine as pools hold it, for tests of what is above it."""

from __future__ import annotations

from skyward.engine.instances.blueprint import Blueprint
from skyward.engine.instances.rented import Rented
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import Image
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import Candidate


def rented(instance: Instance) -> Rented:
    """Give a machine as if it had been rented for a pool of one node."""
    offer = Offer(provider=instance.provider, instance_type="small", on_demand_price=0.0)
    cluster = Cluster(pool_id="a1", pool_name="pool", spec=Spec(), offer=offer, provider=instance.provider, nodes=1)
    return Rented(
        instance=instance,
        candidate=Candidate(offer=offer, spot=False, price=0.0),
        blueprint=Blueprint(cluster=cluster, image=Image(), ops=()),
        infra=None,
        token="t",
    )
