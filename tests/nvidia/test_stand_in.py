"""
What stands in for NVIDIA's programs says and refuses what they do.

The texts are those of NVIDIA's Multi-Instance GPU user guide, and of users' notes where that shows none; the programs
themselves say at each line where it was seen.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.nvidia.machine import Gpus

A100 = "A100-SXM4-80GB"


class Shell:
    """Run the programs of a machine."""

    def __init__(self, directory: Path, *models: str) -> None:
        self.gpus = Gpus(directory / "bin", directory, *models)
        self.programs = directory / "bin"

    def __call__(self, words: str) -> tuple[int, str]:
        program, *rest = words.split()
        done = subprocess.run([self.programs / program, *rest], capture_output=True, text=True, check=False)
        # Names of devices are drawn at random.
        return done.returncode, re.sub("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "...", done.stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Run a machine with one A100."""
    return Shell(tmp_path, A100)


def test_a_life_as_the_guide_shows_it(shell: Shell) -> None:
    """Mode on, two halves, the list of devices, and back."""
    assert (0, "Enabled MIG Mode for GPU 00000000:07:00.0\nAll done.\n") == shell("nvidia-smi -i 0 -mig 1")
    assert (6, "No GPU instances found: Not Found\n") == shell("nvidia-smi mig -lgi")
    made = (
        "Successfully created GPU instance ID  2 on GPU  0 using profile MIG 3g.40gb (ID  9)\n"
        "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  2 using profile MIG 3g.40gb (ID  2)\n"
        "Successfully created GPU instance ID  1 on GPU  0 using profile MIG 3g.40gb (ID  9)\n"
        "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 using profile MIG 3g.40gb (ID  2)\n"
    )
    assert (0, made) == shell("nvidia-smi mig -cgi 9,3g.40gb -C")
    table = """\
+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 3g.40gb          9        1          0:4     |
+-------------------------------------------------------+
|   0  MIG 3g.40gb          9        2          4:4     |
+-------------------------------------------------------+
"""
    assert (0, table) == shell("nvidia-smi mig -lgi")
    listed = (
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-...)\n"
        "  MIG 3g.40gb     Device  1: (UUID: MIG-...)\n"
    )
    assert (0, listed) == shell("nvidia-smi -L")
    destroyed = (
        "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  2\n"
        "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  1\n"
    )
    assert (0, destroyed) == shell("nvidia-smi mig -dci")
    assert (0, "Successfully destroyed GPU instance ID  1 from GPU  0\n") == shell("nvidia-smi mig -dgi -gi 1")
    assert (0, "Successfully destroyed GPU instance ID  2 from GPU  0\n") == shell("nvidia-smi mig -i 0 -dgi")
    assert (0, "Disabled MIG Mode for GPU 00000000:07:00.0\nAll done.\n") == shell("nvidia-smi -i 0 -mig 0")


@pytest.mark.parametrize(
    ("profile", "count"),
    [("1g.10gb", 7), ("1g.20gb", 4), ("2g.20gb", 3), ("3g.40gb", 2), ("4g.40gb", 1), ("7g.80gb", 1)],
)
def test_there_is_room_for_as_many_as_the_guides_table_says(shell: Shell, profile: str, count: int) -> None:
    """And for no more; those that were made before the one without room stay."""
    shell("nvidia-smi -mig 1")
    code, said = shell(f"nvidia-smi mig -cgi {','.join([profile] * (count + 1))} -C")
    assert 23 == code
    assert count == said.count("Successfully created GPU instance")
    refusal = f"Unable to create a GPU instance on GPU  0 using profile {profile}: Insufficient Resources\n"
    assert said.endswith(refusal + "Failed to create GPU instances: Insufficient Resources\n")
    assert [("Enabled", [profile] * count)] == shell.gpus.cut


def test_what_is_refused_with_slices_there(shell: Shell) -> None:
    """The order of destruction, the mode, and a profile of other devices."""
    assert (6, "No MIG-enabled devices found.\n") == shell("nvidia-smi mig -cgi 9 -C")
    shell("nvidia-smi -mig 1")
    shell("nvidia-smi mig -cgi 4g.40gb -C")
    in_use = (
        "Unable to destroy GPU instance ID  1 from GPU  0: In use by another client\n"
        "Failed to destroy GPU instances: In use by another client\n"
    )
    assert (19, in_use) == shell("nvidia-smi mig -dgi -gi 1")
    in_use = (
        "Unable to disable MIG Mode for GPU 00000000:07:00.0: In use by another client\n"
        "Terminating early due to previous errors.\n"
    )
    assert (19, in_use) == shell("nvidia-smi -mig 0")
    unknown = (
        "Unable to create a GPU instance on GPU  0 using profile 3g.20gb: Invalid Argument\n"
        "Failed to create GPU instances: Invalid Argument\n"
    )
    assert (2, unknown) == shell("nvidia-smi mig -cgi 3g.20gb -C")


def test_gpu_that_somebody_uses(shell: Shell) -> None:
    """The mode is only to come, and that is no failure to the program."""
    device = shell.gpus.devices / shell.gpus.gpus[0]["uuid"]
    with subprocess.Popen(
        ["sh", "-c", 'exec 9<>"$0" && flock -s 9 && echo ready && read end', device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as user:
        assert user.stdout is not None
        assert b"ready\n" == user.stdout.readline()
        code, said = shell("nvidia-smi -i 0 -mig 1")
    assert 0 == code
    assert said.startswith(
        "Warning: MIG mode is in pending enable state for GPU 00000000:07:00.0:In use by another client\n"
    )
    assert said.endswith("reboot the system to make MIG mode effective.\nAll done.\n")
    modes = shell("nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending --format=csv")
    assert (0, "pci.bus_id, mig.mode.current, mig.mode.pending\n00000000:07:00.0, Disabled, Enabled\n") == modes


def test_gpu_without_mig(tmp_path: Path) -> None:
    """It treats that as a warning, and goes on."""
    shell = Shell(tmp_path, "A10")
    refusal = (
        "Unable to enable MIG Mode for GPU 00000000:07:00.0: Not Supported\n"
        "Treating as warning and moving on.\n"
        "All done.\n"
    )
    assert (0, refusal) == shell("nvidia-smi -mig 1")
    assert (6, "No MIG-supported devices found.\n") == shell("nvidia-smi mig -lgip")
