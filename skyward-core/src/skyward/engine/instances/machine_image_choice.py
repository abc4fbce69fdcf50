"""A pool's machine images: which one its machines boot from, and one made of its first node where there is none."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.errors import SkywardError
from skyward.plan.instances.machine_image_rules import bootable, content_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skyward.engine.instances.blueprint import Blueprint
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.engine.instances.rented import Rented
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.instances.machine_image import MachineImage

_log = logging.getLogger(__name__)

LOOK_TIMEOUT = 20.0
"""Seconds that a list of machine images may take: machines that are waited for boot without one instead."""


class MachineImages:
    """
    Have the machines of one pool boot from images that hold what they need.

    Nothing that goes wrong here fails the pool: it is written to the log, and machines boot as they do without.

    Args:
        provider: Where they come from.
        wanted: Whether the user wants it.
    """

    def __init__(self, provider: ProviderHandle, *, wanted: bool) -> None:
        self._provider = provider
        self._boots = wanted and provider.facts.machine_images
        self._makes = self._boots
        self._looked_after: set[int] = set()
        self._making: set[asyncio.Task[None]] = set()
        if wanted and not provider.facts.machine_images:
            _log.warning("warm_image=True changes nothing at %s, which keeps no machine images.", provider.name)

    async def find(self, blueprint: Blueprint) -> MachineImage | None:
        """Return the image that machines of a blueprint boot from; None for what they boot by themselves."""
        if not self._boots:
            return None
        wanted = content_hash(blueprint.image, blueprint.ops)
        try:
            image = bootable(await self._listed(blueprint), wanted)
        except SkywardError as error:
            _log.warning("Machines boot without a warm image, because those there are cannot be listed: %s", error)
            return None
        if image is not None:
            _log.info("machine_image.used provider=%s image=%s hash=%s", self._provider.name, image.id, wanted)
        return image

    def drop(self, image: MachineImage, error: Exception) -> None:
        """Boot from images no more, because of what came of one; said once."""
        if self._boots:
            _log.warning(
                "The machine image %s could not be used, and the pool goes on without: %s To delete it, type: "
                "sky images delete %s",
                image.id,
                error,
                image.content_hash,
            )
        self._boots = self._makes = False

    def begin(self, shell: NodeShell) -> None:
        """Make an image of a node that is ready, in the background, unless there is one or it is being made."""
        if not self._makes or id(shell.blueprint) in self._looked_after or shell.rented.machine_image is not None:
            return
        self._looked_after.add(id(shell.blueprint))
        task = asyncio.get_running_loop().create_task(self._make(shell))
        self._making.add(task)
        task.add_done_callback(self._making.discard)

    async def settled(self, patience: float) -> None:
        """
        Wait until what is under way was asked for, and give up the rest.

        Args:
            patience: For how many seconds.
        """
        if self._making:
            _, late = await asyncio.wait(self._making, timeout=patience)
            for task in late:
                task.cancel()

    async def _make(self, shell: NodeShell) -> None:
        rented = shell.rented
        wanted = content_hash(rented.blueprint.image, rented.blueprint.ops)
        try:
            there = [image for image in await self._listed(rented.blueprint) if image.content_hash == wanted]
            if any(image.state != "failed" for image in there):
                return
            if there:
                await self._provider.call("skyward_delete_machine_images", images=there, timeout=PROVIDER_TIMEOUT)
            if shell.host is not None:
                await shell.host.flush()
            image = await self._made(rented, wanted)
        except Exception as error:
            _log.warning("No machine image could be made of %s: %s", shell.where, error)
        else:
            _log.info("machine_image.begun provider=%s image=%s hash=%s", self._provider.name, image.id, wanted)

    async def _made(self, rented: Rented, wanted: str) -> MachineImage:
        image: MachineImage = await self._provider.call(
            "skyward_make_machine_image",
            cluster=rented.blueprint.cluster,
            infra=rented.infra,
            instance=rented.instance,
            content_hash=wanted,
            timeout=PROVIDER_TIMEOUT,
        )
        return image

    async def _listed(self, blueprint: Blueprint) -> Sequence[MachineImage]:
        listed: Sequence[MachineImage] | None = await self._provider.call(
            "skyward_machine_images", cluster=blueprint.cluster, timeout=LOOK_TIMEOUT
        )
        return listed or ()
