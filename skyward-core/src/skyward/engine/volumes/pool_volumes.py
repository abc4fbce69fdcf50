"""The buckets of a pool: refused before anything is rented, on each node before its workers, written before its end."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from skyward import errors
from skyward.blocking import in_thread
from skyward.engine.volumes.key_renewal import RENEW_BEFORE, KeyRenewal
from skyward.engine.volumes.linked_folder import LinkedFolder
from skyward.engine.volumes.storage_keys import keys_of
from skyward.errors import ConfigError, ProvisionError, StorageError
from skyward.model.instances.bucket_storage import BucketStorage
from skyward.model.instances.machine import LocalAddress, SSHAddress
from skyward.model.spec.volumes import Volume
from skyward.node.volumes.keeper_process import KeeperProcess
from skyward.node.volumes.volume_order import VolumeOrder
from skyward.plan.pool.last_writes import LastWrites, WriteVerdict, looked, named
from skyward.providers.local import Local

if TYPE_CHECKING:
    from pathlib import Path

    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.model.spec.spec import Spec

__all__ = ["PoolVolumes"]

_log = logging.getLogger(__name__)

STORAGE_WITHIN = 60.0
"""Seconds in which a provider says where its object store is."""

COPIED_WITHIN = 6 * 3600.0
"""Seconds in which copied buckets have to be on a node; rclone itself gives up much sooner if nothing comes."""

FLUSH_ROUND = 5.0
"""Seconds after which a node says what it has not written yet."""

STALLED = 60.0
"""Seconds without anything written after which the user is warned that a machine is kept."""

ANSWERED_WITHIN = 60.0
"""Seconds that a node may take for an answer, beside what its workers or its buckets take."""

REMOVED_WITHIN = 60.0
"""Seconds in which volumes are unmounted, and copied files removed, once all is in the buckets."""

Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""What asks the process that keeps volumes."""

REGION = "us-east-1"
"""The region that requests are signed for where nothing else is said."""


class PoolVolumes:
    """
    Give the nodes of one pool its buckets; lives in the engine's loop.

    Args:
        engine: The loop.
        provider: Where its machines come from.
        spec: What the user asks for.
        pool: Its name.
        within: Seconds that a machine may take to be made ready.
    """

    def __init__(self, engine: EngineLoop, provider: ProviderHandle, spec: Spec, pool: str, within: float) -> None:
        self._engine = engine
        self._provider = provider
        self._spec = spec
        self._pool = pool
        self._within = within
        self._buckets = tuple(each for each in spec.volumes if isinstance(each, Volume))
        folders = [each for each in self._buckets if isinstance(each.storage, os.PathLike)]
        self._links = [LinkedFolder(each) for each in folders]
        self._stores = tuple(each for each in self._buckets if each not in folders)
        self._region: str | None = None
        self._own: BucketStorage | None = None
        self._attached: set[NodeShell] = set()
        self._local: asyncio.Task[None] | None = None
        self._keeper: KeeperProcess | None = None
        self._renewal = KeyRenewal(self._orders, self._send_keys)
        self.unwritten: list[str] = []

    async def check(self, region: str | None) -> None:
        """
        Refuse volumes that the pool's nodes cannot have, before anything is rented.

        Args:
            region: Region of the offer that is tried first.

        Raises:
            ConfigError: If nothing says where a bucket is, or a folder stands for a store of other machines.
            NoSuchBucketError: If the folder of a bucket is not there.
            CredentialsError: If there are no keys.
        """
        self._region = region
        if self._links and not isinstance(self._spec.provider, Local):
            raise ConfigError(
                f"storage= of {self._buckets[0].title} is a folder of this machine, which machines of "
                f"{self._provider.name} do not have.",
                hint="Write storage=sky.Storage(...), or provider=sky.Local().",
            )
        for link in self._links:
            link.check()
        await self._orders()

    async def attach(self, shell: NodeShell) -> None:
        """
        Mount the volumes on a node, before its workers start.

        Args:
            shell: The node, whose agent answers.

        Raises:
            StorageError: If a bucket cannot be had; others of its kind say why.
            ConfigError: If its mount point is in use, or the disk is too small.
            ProvisionError: If the node does not answer.
        """
        if not self._buckets:
            return
        if isinstance(shell.instance.address, LocalAddress):
            if self._local is None:
                self._local = asyncio.ensure_future(self._open_here())
            await asyncio.shield(self._local)
            return
        orders = await self._orders()
        question = {"do": "open", "orders": orders, "packages": True}
        copied = any(volume.type == "sync" for volume in self._stores)
        within = COPIED_WITHIN if copied else max(self._within, ANSWERED_WITHIN)
        self._attached.add(shell)
        try:
            async with asyncio.timeout(within):
                said = await shell.ask({"volumes": question})
        except TimeoutError:
            raise ProvisionError(
                f"{shell.where} did not have its volumes within {within:g} s.",
                node=shell.index,
                hint="Raise bootstrap_timeout.",
            ) from None
        self._opened(said, shell.where)
        self._renewal.begin(orders)

    async def detach(self, shell: NodeShell, patience: float) -> None:
        """
        Order a node to write what it has left to write, and to take its volumes away; the machine is there until then.

        Args:
            shell: The node.
            patience: Seconds that its workers have to end.
        """
        if shell not in self._attached:
            return
        self._attached.discard(shell)
        if shell.link is None or shell.leaving or not patience:
            return
        # Whatever comes of its link now is no loss of a node.
        shell.leaving = True
        try:
            async with asyncio.timeout(patience + ANSWERED_WITHIN):
                await shell.ask({"end_workers": patience})
            await self._written(lambda question: shell.ask({"volumes": question}), shell.where, _reached(shell))
        except Exception as error:
            # Whatever is wrong with the volumes, the machine is terminated.
            self._not_written(shell.where, error)
        else:
            await _removed(lambda question: shell.ask({"volumes": question}), shell.where)

    async def close(self) -> None:
        """Take away what this machine has of the volumes, once nothing runs here any more."""
        self._renewal.close()
        if self._local is not None:
            self._local.cancel()
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            where = f"this machine, for pool {self._pool!r},"
            try:
                await self._written(keeper.ask, where, "It is this one.")
            except Exception as error:
                # Whatever is wrong with the volumes, what is rented is terminated.
                self._not_written(where, error)
            else:
                await _removed(keeper.ask, where)
            finally:
                keeper.close()
                await keeper.wait(REMOVED_WITHIN)
        for link in self._links:
            await in_thread(link.close)

    async def _open_here(self) -> None:
        """Mount the volumes on this machine for all of its nodes: they share its folders."""
        for link in self._links:
            await in_thread(link.open)
        if not self._stores:
            return
        self._keeper = KeeperProcess(self._engine.loop, _note, _note)
        folder, tools = await in_thread(_own_folders)
        orders = await self._orders()
        question = {"do": "open", "orders": orders, "packages": False, "folder": folder, "tools": tools}
        self._opened(await self._keeper.ask(question), "This machine")
        self._renewal.begin(orders)

    async def _send_keys(self, orders: Sequence[dict[str, Any]]) -> None:
        """Send new keys to all that use the old ones; one that is lost meanwhile needs none."""
        question = {"do": "renew", "orders": orders}
        asked = [shell.ask({"volumes": question}) for shell in self._attached]
        if self._keeper is not None:
            asked.append(self._keeper.ask(question))
        async with asyncio.timeout(ANSWERED_WITHIN):
            await asyncio.gather(*asked, return_exceptions=True)

    def _opened(self, said: dict[str, Any], where: str) -> None:
        if "failed" not in said:
            for note in said["notes"]:
                _log.warning("%s: %s", where, note)
            return
        known = {kind.__name__: kind for kind in (ConfigError, StorageError, *StorageError.__subclasses__())}
        kind = known.get(str(said.get("kind")), ProvisionError)
        raise kind(f"{where}: {said['failed']}", hint=said.get("hint"), pool=self._pool)

    async def _orders(self) -> list[dict[str, Any]]:
        """Return what a node is to have, with keys as they are now."""
        return [(await self._order(volume)).to_dict() for volume in self._stores]

    async def _order(self, volume: Volume) -> VolumeOrder:
        if volume.storage is None:
            store = await self._providers_own(volume)
        else:
            store = await keys_of(volume.storage, volume.title)
        return VolumeOrder(
            bucket=volume.bucket,
            prefix=volume.prefix,
            mount=volume.mount,
            read_only=volume.read_only,
            synced=volume.type == "sync",
            endpoint=store.endpoint,
            region=store.region or REGION,
            path_style=store.path_style,
            access_key=store.access_key,
            secret_key=store.secret_key,
            session_token=store.session_token,
            expires_at=store.expires_at,
        )

    async def _providers_own(self, volume: Volume) -> BucketStorage:
        known = self._own
        if known is not None and (known.expires_at is None or known.expires_at - RENEW_BEFORE > time.time()):
            return known
        found = await self._provider.call(
            "skyward_volume_storage", spec=self._spec, region=self._region, timeout=STORAGE_WITHIN
        )
        if found is None:
            raise ConfigError(
                f"Nothing says where the bucket of {volume.title} is: it has no storage=, and {self._provider.name} "
                "has no object store that is known here.",
                hint='Write storage=sky.storage.S3(region="eu-central-1"), or another of sky.storage.',
            )
        if not isinstance(found, BucketStorage):
            raise errors.PluginError(
                f"skyward_volume_storage of {self._provider.name} must return BucketStorage, "
                f"not {type(found).__name__}.",
                plugin=self._provider.name,
                hook="skyward_volume_storage",
            )
        self._own = found
        return found

    async def _written(self, ask: Ask, where: str, reached: str) -> None:
        """
        Wait until all that tasks wrote is in the buckets.

        Raises:
            StorageError: If that does not go on for `ttl` seconds after the user was warned.
        """
        before: LastWrites | None = None
        while True:
            said = await ask({"do": "flush", "within": FLUSH_ROUND})
            if "failed" in said:
                raise ProvisionError(str(said["failed"]))
            if not said["unwritten"]:
                return
            now = LastWrites(
                unwritten=said["unwritten"], moved=said["moved"], errors=said["errors"], since=self._engine.loop.time()
            )
            before, verdict = looked(before, now, stalled=STALLED, kept=self._spec.ttl or None)
            files, why = named(now.unwritten), said["why"] or "no reason is known"
            if verdict is WriteVerdict.WARN:
                _log.error(
                    "%s is kept, and billed: tasks wrote %s, which cannot be written to the bucket (%s). It is tried "
                    "on for %s. %s To end it at once, interrupt this program, or run `sky down %s`.",
                    where,
                    files,
                    why,
                    f"{self._spec.ttl:g} s" if self._spec.ttl else "as long as that takes",
                    reached,
                    self._pool,
                )
            elif verdict is WriteVerdict.GIVE_UP:
                raise StorageError(f"{files} could not be written: {why}")

    def _not_written(self, where: str, error: BaseException) -> None:
        why = str(error) or type(error).__name__
        if all(volume.read_only for volume in self._stores):
            _log.warning("Volumes on %s did not end in good order: %s", where, why)
            return
        said = f"What tasks wrote to volumes on {where} may not be in the bucket: {why}"
        _log.error("%s", said)
        self.unwritten.append(said)


async def _removed(ask: Ask, where: str) -> None:
    """Request that volumes are unmounted and copies removed, once all is in the buckets: a failure loses nothing."""
    try:
        async with asyncio.timeout(REMOVED_WITHIN):
            said = await ask({"do": "close"})
        why = str(said.get("failed", ""))
    except Exception as error:
        why = str(error) or f"it took longer than {REMOVED_WITHIN:g} s"
    if why:
        _log.warning("All is in the buckets, but volumes on %s were not removed: %s", where, why)


def _reached(shell: NodeShell) -> str:
    """Describe how a user reaches a machine."""
    address = shell.instance.address
    if not isinstance(address, SSHAddress):
        return f"It is {shell.where}."
    port = f" -p {address.port}" if address.port else ""
    user = f"{address.user}@" if address.user else ""
    return f"It is reached with `ssh{port} {user}{address.host}`."


def _own_folders() -> tuple[str, str]:
    """Return a folder for caches and one for tools, on this machine."""
    from skyward.engine.source.environment import cache_entry

    tools: Path = cache_entry("tools")
    return tempfile.mkdtemp(prefix="skyward-volumes-"), str(tools)


def _note(text: str) -> None:
    _log.warning("This machine: %s", text)
