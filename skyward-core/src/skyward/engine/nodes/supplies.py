"""What a machine is sent before its bootstrap: our side of the node, and uv where it has no way to get that."""

from __future__ import annotations

import contextlib
import gzip
import logging
import platform
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from skyward.blocking import in_thread
from skyward.engine.instances.recipe import Recipe
from skyward.engine.source.bundle import runtime_bundle
from skyward.engine.source.environment import find_uv
from skyward.errors import ProvisionError
from skyward.plan.bootstrap.environment_commands import hint
from skyward.ssh.probe import Findings
from skyward.ssh.shell import run

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

_log = logging.getLogger(__name__)


async def send_runtime(connection: SSHClientConnection, found: Findings, recipe: Recipe, address: str) -> None:
    """
    Send a machine our side of the node, unless it has it.

    Args:
        connection: The machine.
        found: What it has.
        recipe: What becomes of it.
        address: What messages call it.

    Raises:
        ProvisionError: If it cannot be written there.
        SkywardError: If the machine does not answer.
    """
    bundle = await in_thread(runtime_bundle)
    if bundle.digest in found.runtimes:
        return
    directory = f"{found.cache}/runtime/{bundle.digest}"
    script = (
        f'umask 077; d={shlex.quote(directory)}; n="$d.new.$$"; mkdir -p "$n" && tar -xzf - -C "$n" && '
        ': >"$n/.complete" && { mv "$n" "$d" 2>/dev/null || rm -rf "$n"; } || { rm -rf "$n"; exit 1; }'
    )
    data, uploads = await in_thread(bundle.read), recipe.uploads
    with uploads.sending(len(data), address) if uploads is not None else contextlib.nullcontext():
        done = await run(connection, script, timeout=recipe.timeout, data=data)
    if done.code:
        lines = done.err.strip().splitlines()[-3:]
        raise ProvisionError(
            f"Our side of the node could not be written to {address}: {' '.join(lines)}", hint=hint(lines)
        )


async def send_uv(connection: SSHClientConnection, found: Findings, recipe: Recipe, address: str) -> None:
    """
    Send a machine our own uv, if it will need one, has no way to get it, and is of our kind.

    Args:
        connection: The machine.
        found: What it has.
        recipe: What becomes of it.
        address: What messages call it.

    Raises:
        SkywardError: If the machine does not answer.
    """
    needed = recipe.image.needs_environment or any(op.scope == "environment" for op in recipe.ops)
    if not needed or found.gets_uv or (found.system, found.machine) != (platform.system(), platform.machine()):
        return
    packed = await in_thread(lambda: gzip.compress(Path(find_uv()).read_bytes(), compresslevel=1))
    directory = shlex.quote(f"{found.cache}/tools/bin")
    script = (
        f'umask 077; mkdir -p {directory} && cd {directory} && gzip -dc >"uv.$$" && chmod 700 "uv.$$" && '
        'mv "uv.$$" uv || { rm -f "uv.$$"; exit 1; }'
    )
    done = await run(connection, script, timeout=recipe.timeout, data=packed)
    if done.code:
        _log.warning("%s: our uv could not be written there: %s", address, done.err.strip()[-200:])
