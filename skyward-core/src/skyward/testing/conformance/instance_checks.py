"""Check the instances of a pool: their tags, expiries, addresses, and how they are terminated."""

from __future__ import annotations

from typing import Any

from skyward.engine.guardian.guardian_messages import charged, sealed
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import PluginError, SkywardError
from skyward.hookspecs import Cluster, Instance, InstanceState, LocalAddress, MachineImage, SSHAddress
from skyward.plan.instances.guardian_duty import Duty, RegionOpened, take
from skyward.testing.conformance.rental import LEASE, Rental
from skyward.testing.conformance.trial import Trial

__all__ = [
    "check_address",
    "check_renewal",
    "check_tags",
    "check_typed",
    "guard",
    "images",
    "make_image",
    "of_pool",
    "owned",
    "ready_image",
    "unknown",
]


def check_typed(error: SkywardError) -> None:
    """
    Check that an error is one of Skyward's.

    Args:
        error: What a hook raised.
    """
    untyped = isinstance(error, PluginError)
    assert not untyped, f"{error} Raise one of the errors of skyward.errors instead."


def check_address(machine: Instance) -> None:
    """
    Check that an instance runs and has an address.

    Args:
        machine: The instance as it is listed.
    """
    assert machine.state is InstanceState.RUNNING
    known = isinstance(machine.address, LocalAddress | SSHAddress)
    assert known, f"{machine.id} runs, and its address is {machine.address!r}."


def check_tags(machine: Instance, rental: Rental) -> None:
    """
    Check that tags come back as they were written; a cloud may have no place for all of them.

    Args:
        machine: The instance as it is listed.
        rental: Its pool.
    """
    wanted, found = rental.request.tags_of(0), machine.tags
    assert found is not None, f"{machine.id} is listed without its tags."
    for name in ("pool_id", "pool_name", "node", "owner", "client", "token"):
        read, written = getattr(found, name), getattr(wanted, name)
        same = read == written or (name != "pool_id" and read in ("", None))
        assert same, f"The tag {name} of {machine.id} is {read!r}, and {written!r} was written."


def check_renewal(rental: Rental) -> None:
    """
    Check that an expiry can be renewed, and called off.

    Args:
        rental: A pool whose instance runs.
    """
    later, trial = float(int(rental.request.tags.expires_at or 0) + 1000), rental.trial
    ids = [rental.machine.id]
    trial.ask("skyward_renew", cluster=rental.cluster, infra=rental.infra, ids=ids, expires_at=later)

    def renewed() -> bool:
        return [later] == [machine.tags.expires_at for machine in owned(rental) if machine.tags is not None]

    trial.until(renewed, f"skyward_owned tells the later expiry of {rental.machine.id}")
    # As `sky down` does, which has no infra: the pool's own program is to know that it is being ended.
    trial.ask("skyward_renew", cluster=rental.cluster, infra=None, ids=ids, expires_at=0.0)

    def called_off() -> bool:
        return [True] == [machine.tags.called_off for machine in rental.existing() if machine.tags is not None]

    trial.until(called_off, f"skyward_instances tells the expiry 0 of {rental.machine.id}")


def guard(trial: Trial, rental: Rental, provider: Any) -> None:
    """
    Terminate an instance as a guardian does: by a provider that is made from its arguments.

    Args:
        trial: What asks.
        rental: The pool.
        provider: The provider.
    """
    opened = RegionOpened(rental.cluster, rental.infra)
    known = take(Duty(pool_id=rental.pool_id, pool_name="conformance", ttl=LEASE), opened)
    copy, duty = charged(sealed(provider, known))
    [(cluster, infra)] = duty.regions
    trial.handle = ProviderHandle(copy)

    def listed() -> bool:
        rows = trial.ask("skyward_instances", cluster=cluster, infra=infra)
        return rental.machine.id in [machine.id for machine in rows]

    made_again = f"a provider made again from its arguments lists {rental.machine.id}"
    trial.until(listed, f"{made_again}, whatever its state")
    trial.ask("skyward_terminate", cluster=cluster, infra=infra, ids=[rental.machine.id])
    trial.until(lambda: not rental.existing(), f"{rental.machine.id} is gone after a guardian ended it")
    trial.ask("skyward_release", cluster=cluster, infra=infra)


def owned(rental: Rental) -> list[Instance]:
    """
    Return the pool's first instance as the account lists it; nothing if it has ended.

    Args:
        rental: The pool.
    """
    found = rental.trial.ask("skyward_owned")
    return [each for each in found if each.id == rental.machine.id and each.state is not InstanceState.ENDED]


def make_image(rental: Rental) -> MachineImage:
    """
    Begin to make a machine image of an instance.

    Args:
        rental: A pool whose instance runs.
    """
    made: MachineImage = rental.trial.ask(
        "skyward_make_machine_image",
        cluster=rental.cluster,
        infra=rental.infra,
        instance=rental.running(),
        content_hash=rental.image_hash,
    )
    return made


def images(rental: Rental, cluster: Cluster | None) -> list[MachineImage]:
    """
    Return the machine images of the pool's content hash.

    Args:
        rental: The pool.
        cluster: Only those that fit; None for all.
    """
    listed = rental.trial.ask("skyward_machine_images", cluster=cluster)
    return [image for image in listed if image.content_hash == rental.image_hash]


def ready_image(rental: Rental) -> bool:
    """
    Return whether the pool's machine image is ready.

    Args:
        rental: The pool.
    """
    states = [image.state for image in images(rental, rental.cluster)]
    assert "failed" not in states, "The machine image could not be made."
    return states == ["ready"]


def of_pool(trial: Trial, pool_id: str) -> list[Instance]:
    """
    Return the instances of a pool that the account lists and that have not ended.

    Args:
        trial: What asks.
        pool_id: The pool.
    """
    found = trial.ask("skyward_owned")
    return [
        each
        for each in found
        if each.tags is not None and each.tags.pool_id == pool_id and each.state is not InstanceState.ENDED
    ]


def unknown(name: str) -> str:
    """
    Return an id that looks like another and is none.

    Args:
        name: The other.
    """
    last = "1" if name.endswith("0") else "0"
    return f"{name[:-1]}{last}"
