"""
Runs one of Accelerate's own test scripts in a rank, on a pool or as what torchrun starts.

    torchrun --nproc-per-node 2 -m tests.suites.accelerate_script test_ops
"""

from __future__ import annotations

import importlib
import sys

WITHOUT = ("join", "stateful")
"""
Functions of a script that are left out, by parts of their names, since they fail however it is started: on processors
`join_uneven_inputs` does nothing, and torchdata is not installed.
"""


def run(name: str) -> tuple[str, int]:
    """Run a script, and give its name and how many ranks it saw."""
    from accelerate import PartialState

    # Without it a script that makes no Accelerator sees no other rank on processors.
    state = PartialState(cpu=True)
    ranks = state.num_processes
    module = importlib.import_module(f"accelerate.test_utils.scripts.{name}")
    for part in [one for one in vars(module) if any(word in one for word in WITHOUT)]:
        setattr(module, part, lambda *_: None)
    # It reads its command line.
    sys.argv = [name]
    module.main()
    return name, ranks


if __name__ == "__main__":
    print(run(sys.argv[1]))
