"""
Which world an input is run in; as a program it runs some inputs of every target, and needs no atheris.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from fuzz_agent import AgentWorld, no_processes
from fuzz_composer import Composer
from fuzz_findings import Watch
from fuzz_links import DoorWorld, WireWorld
from fuzz_scripts import AGENT, CODECS, DOOR, PARSER, SHELL, TARGETS, WIRE, describe, read_script
from fuzz_targets import ShellWorld, World, run_codecs, run_parser

KNOWN = (
    # A call is sent to a worker that has died, and cancelled, while the node ends.
    bytes.fromhex(
        "031d0f03000000000f0300000000011700000e007b226772616365223a20312e307d0f0300000000000a000027000100"
        "000000000000000000000000f87f0100000003000000000000000000000000000000000000000f000009000100000000"
        "000000000f0100000000"
    ),
)
"""Inputs that went wrong once."""

WORLDS: dict[int, Callable[[Watch, int], World]] = {
    SHELL: ShellWorld,
    AGENT: AgentWorld,
    WIRE: WireWorld,
    DOOR: DoorWorld,
}


def run_script(data: bytes, watch: Watch) -> None:
    """Run one input against its target."""
    target, flags, steps = read_script(data)
    if target == PARSER:
        run_parser(steps)
    elif target == CODECS:
        run_codecs(steps)
    else:
        world = WORLDS[target](watch, flags)
        try:
            world.play(steps)
        finally:
            world.close()


def main(seed: int, count: int) -> int:
    """Run so many inputs of each target, tell what goes wrong, and give how much that is."""
    home = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/tmp"))
    (home / "agent").mkdir()
    AgentWorld.directory = home / "agent"
    no_processes()
    watch, findings = Watch(run_script), 0
    try:
        drawn = (Composer(seed * 1000 + at).script(at % len(TARGETS)) for at in range(count * len(TARGETS)))
        for data in (*KNOWN, *drawn):
            for caught in watch.run(data):
                findings += 1
                print("\n".join((caught.key, *describe(data), caught.text)))
    finally:
        shutil.rmtree(home)
    return findings


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
