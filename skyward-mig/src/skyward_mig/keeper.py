"""
The process that cuts a machine's GPUs and puts them together again: `python -m skyward_mig.keeper PROFILE RANKS`.

It reports in a line of JSON what came of it, and waits for the end of its standard input.
That comes when the node leaves, and also when all its processes are killed; this one is not among them, as its
environment names.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from attrs import evolve

from skyward import ConfigError
from skyward_mig import smi
from skyward_mig.profiles import shares
from skyward_mig.record import Busy, Entry, Record, held, place

__all__ = ["main", "put_together"]

T = TypeVar("T")
R = TypeVar("R")

PATIENCE = 20.0
"""Seconds to wait for another pool's node that is about to end."""


class Refused(Exception):
    """
    GPUs that cannot be cut.

    Args:
        message: Why not.
        hint: What to do about it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def main() -> None:
    """Run the process: cut GPUs, report, wait, and undo it."""
    profile, ranks = sys.argv[1], int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        with held(place(), PATIENCE) as record:
            put_together(record)
            try:
                _tell(devices=_cut(record, profile, ranks))
                sys.stdin.read()
            finally:
                put_together(record)
    except Busy:
        _tell(error="another pool has cut the GPUs of this machine.", hint="Wait until it is left.")
    except Refused as error:
        _tell(error=str(error), hint=error.hint)
    except ConfigError as error:
        _tell(error=error.message, hint=error.hint)
    except smi.SmiError as error:
        _tell(error=f"{error}.".replace("..", "."), hint=_hint(error.said))


def put_together(record: Record) -> None:
    """
    Change back whatever was changed; nothing if all is as it was.

    Raises:
        SmiError: If something stays; it is tried again when the machine is cut the next time.
    """
    entries = record.read()
    if not entries:
        return
    there = {gpu.uuid for gpu in smi.gpus()}
    _each([entry for entry in entries if entry.gpu in there], _restore)
    record.write(())


def _cut(record: Record, profile: str, ranks: int) -> list[str]:
    """Cut the GPUs, and name the slice of each rank."""
    found = smi.gpus()
    if not found:
        raise Refused("nvidia-smi finds no GPU.")
    wanted = [(gpu, count) for gpu, count in zip(found, shares(ranks, len(found)), strict=True) if count]
    for gpu, _ in wanted:
        if gpu.mode not in ("Enabled", "Disabled"):
            raise Refused(f"{gpu.model} ({gpu.uuid}) has no MIG.")
        if gpu.mode == "Enabled" and (others := smi.instances(gpu.uuid)):
            raise Refused(
                f"{gpu.model} ({gpu.uuid}) is cut into {len(others)} slices already, which are not ours.",
                "Their owner destroys them so: nvidia-smi mig -dci && nvidia-smi mig -dgi",
            )
    entries = [Entry(gpu.uuid, gpu.mode == "Disabled") for gpu, _ in wanted]
    record.write(entries)

    def cut(piece: tuple[Entry, int]) -> Entry:
        entry, count = piece
        if entry.enabled:
            smi.enable(entry.gpu)
        return evolve(entry, instances=smi.create(entry.gpu, profile, count))

    record.write(_each([(entry, count) for entry, (_, count) in zip(entries, wanted, strict=True)], cut))
    listed = smi.devices()
    devices = [device for gpu, _ in wanted for device in smi.devices_in(listed, gpu.uuid)]
    if len(devices) != ranks:
        raise Refused(f"{ranks} slices of {profile} were made, and nvidia-smi -L lists {len(devices)}.")
    return devices


def _restore(entry: Entry) -> None:
    """Destroy what was made on one GPU, and switch off what was switched on."""
    there = smi.instances(entry.gpu)
    made = there if entry.instances is None else [number for number in entry.instances if number in there]
    if made:
        smi.destroy(entry.gpu, made)
    if entry.enabled and len(made) == len(there):
        smi.disable(entry.gpu)


def _each(values: Iterable[T], do: Callable[[T], R]) -> Sequence[R]:
    """Apply something to all GPUs at once, because each takes seconds; all are done before an error is raised."""
    with ThreadPoolExecutor(16) as threads:
        futures = [threads.submit(do, value) for value in values]
    return [future.result() for future in futures]


def _tell(**facts: object) -> None:
    # It may have ended meanwhile.
    with suppress(OSError):
        os.write(1, json.dumps(facts).encode() + b"\n")


def _hint(said: str) -> str:
    if "cannot be run" in said:
        return "It comes with NVIDIA's driver."
    if "pending enable state" in said:
        return "The machine has to be restarted before MIG mode comes into force, or all that uses the GPU has to end."
    if "Insufficient Permissions" in said or "a password is required" in said:
        return "Log in as root, or as a user with passwordless sudo."
    if "Insufficient Resources" in said:
        return "Ask for fewer ranks on each node: per_node=."
    return ""


if __name__ == "__main__":
    main()
