"""The hooks that every provider answers alike whose account lists and terminates machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skyward.hookspecs import Cluster, Instance, hookimpl
from skyward.rest.api import Api

__all__ = ["AccountHooks", "MachineAccount"]


class MachineAccount(Protocol):
    """What the hooks ask of an account."""

    @property
    def api(self) -> Api:
        """Return what makes the calls."""
        ...

    async def instances(self, cluster: Cluster) -> Sequence[Instance]:
        """Return the machines of a pool."""
        ...

    async def owned(self) -> Sequence[Instance]:
        """Return every machine of Skyward in the account that may be billed."""
        ...

    async def terminate(self, ids: Sequence[str]) -> None:
        """Terminate machines, and return when the cloud has confirmed it."""
        ...


class HasAccount(Protocol):
    """A provider that has an account."""

    @property
    def _account(self) -> MachineAccount: ...


class AccountHooks:
    """
    Answer five hooks out of `_account`, a `MachineAccount`; a provider overrides those that it answers otherwise.

    Example: `class Sample(AccountHooks)`, a frozen value with the field `_account`.
    """

    __slots__ = ()

    @hookimpl
    async def skyward_instances(self: HasAccount, cluster: Cluster) -> Sequence[Instance]:
        """Return the pool's machines."""
        return await self._account.instances(cluster)

    @hookimpl
    async def skyward_terminate(self: HasAccount, ids: Sequence[str]) -> None:
        """
        Terminate machines, and return when the cloud has confirmed it.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await self._account.terminate(ids)

    @hookimpl
    async def skyward_owned(self: HasAccount) -> Sequence[Instance]:
        """Return every machine of Skyward in the account."""
        return await self._account.owned()

    @hookimpl
    async def skyward_end(self: HasAccount, instances: Sequence[Instance]) -> None:
        """
        Terminate machines, whichever pool they are of.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await self._account.terminate([each.id for each in instances])

    @hookimpl
    async def skyward_clock(self: HasAccount) -> float | None:
        """Return how far the cloud's clock is ahead of ours."""
        return self._account.api.ahead
