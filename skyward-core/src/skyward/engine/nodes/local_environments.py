"""Environments of nodes on this machine: made once for each image, however many nodes wait for them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyward.blocking import in_thread
from skyward.engine.nodes.host import Prepared
from skyward.engine.nodes.local_machine import missing_packages, shell_variables
from skyward.engine.source.environment import image_steps, prepare, runtime_directory
from skyward.model.events import event as events
from skyward.model.spec.image import Image
from skyward.model.spec.op import AptInstall
from skyward.plan.bootstrap.environment_commands import Step, apt_packages, not_installed, op_step

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.instances.blueprint import Blueprint
    from skyward.engine.nodes.node_shell import NodeShell


class LocalEnvironments:
    """
    Make the environments of one pool's nodes that are on this machine; lives in the engine's loop.

    Args:
        reporting: Where events go.
        timeout: Seconds that one may take; None for what its image says.
    """

    def __init__(self, reporting: Reporting, timeout: float | None) -> None:
        self._reporting = reporting
        self._timeout = timeout
        self._preparing: dict[str, asyncio.Task[Path]] = {}
        self._variables: asyncio.Task[dict[str, str]] | None = None
        self._looked = False

    async def prepare(self, shell: NodeShell) -> Prepared:
        """Return the interpreter of the image's environment and its variables; made once, however many nodes wait."""
        blueprint = shell.blueprint
        ops = [op for op in blueprint.ops if op.scope == "environment"]
        await self._look_for_packages(blueprint)
        for op in blueprint.ops:
            if op.scope != "environment" and not isinstance(op, AptInstall):
                self._reporting.publish(
                    events.BootstrapConsole(line=f"not run on this machine: {op}", instance=shell.info)
                )
        if not blueprint.image.needs_environment and not ops:
            return Prepared(python=sys.executable, env=await self._shell_variables(shell, None))
        steps = (*image_steps(blueprint.image), *map(op_step, ops))
        key = _environment_key(blueprint.image, steps if ops else ())
        if key not in self._preparing:
            timeout = self._timeout or blueprint.image.bootstrap_timeout
            self._preparing[key] = asyncio.ensure_future(
                in_thread(partial(prepare, key, steps, timeout=timeout, tell=self._tell_phase(shell)))
            )
        python = await asyncio.shield(self._preparing[key])
        variables = await self._shell_variables(shell, python)
        return Prepared(python=str(python), env={**variables, "PYTHONPATH": str(runtime_directory())})

    async def _look_for_packages(self, blueprint: Blueprint) -> None:
        """Report once which system packages this machine lacks, which are not installed here."""
        wanted, self._looked = () if self._looked else apt_packages(blueprint.image, blueprint.ops), True
        if wanted and (line := not_installed(wanted, await in_thread(missing_packages, wanted))):
            self._reporting.publish(events.Error(message=line))

    async def _shell_variables(self, shell: NodeShell, python: Path | None) -> Mapping[str, str]:
        """Return what the image's `shell_vars` print here; as elsewhere, its `env` counts more than they."""
        image = shell.blueprint.image
        if not image.shell_vars:
            return {}
        if self._variables is None:
            timeout = self._timeout or image.bootstrap_timeout
            self._variables = asyncio.ensure_future(in_thread(partial(shell_variables, image, python, timeout=timeout)))
        found = await asyncio.shield(self._variables)
        return {name: text for name, text in found.items() if name not in image.env}

    def _tell_phase(self, shell: NodeShell) -> Any:
        def tell(phase: str, event: Any) -> None:
            self._reporting.preparing(shell, events.BootstrapPhase(phase=phase, event=event))

        return tell


def _environment_key(image: Image, steps: tuple[Step, ...]) -> str:
    """Name an environment by what is in it: the image, and what plugins add to it."""
    tag = f"py{sys.version_info.major}.{sys.version_info.minor}-{image.content_hash()}"
    if not steps:
        return tag
    return f"{tag}-{hashlib.sha256(json.dumps([step.content for step in steps]).encode()).hexdigest()[:8]}"
