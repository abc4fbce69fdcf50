"""What the plugin for slices reads of a GPU; none is cut here, for the machine may be shared."""

from __future__ import annotations

import re
import subprocess

import pytest

from skyward.model.accelerators.accelerator import recognise
from skyward_mig import smi
from skyward_mig.profiles import slices
from tests.gpus.conftest import asked

pytestmark = [pytest.mark.gpus, pytest.mark.timeout(60)]

_PROFILE = re.compile(r"^\|\s+0\s+MIG (\S+)\s+\d+\s+\d+/(\d+)\s", re.MULTILINE)


def test_the_gpu_and_its_mode_are_read(model: str) -> None:
    """One that is not cut has no instances and no devices."""
    [gpu, *_] = smi.gpus()
    assert (gpu.uuid, gpu.model, gpu.mode) == (*asked("uuid"), model, *asked("mig.mode.current"))
    if gpu.mode == "Disabled":
        assert smi.instances(gpu.uuid) == ()
        assert smi.devices_in(smi.devices(), gpu.uuid) == ()


def test_the_catalogue_has_the_profiles_that_the_gpu_has(model: str) -> None:
    """As many of each as the driver says."""
    said = subprocess.run(["nvidia-smi", "mig", "-lgip"], capture_output=True, text=True, check=False, timeout=60)
    found = {name: int(total) for name, total in _PROFILE.findall(said.stdout)}
    assert found, f"{model} has no MIG: {said.stdout}"
    known = recognise(model)
    assert {name: slices(known, name) for name in found} == found
