"""A machine with GPUs that are not there: NVIDIA's programs, stood in for."""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MEMORY = {"A100-SXM4-80GB": 81920, "H100 80GB HBM3": 81559, "A10": 23028}


class Gpus:
    """
    Put NVIDIA's programs into a directory.

    Args:
        programs: The directory, which is on a process's path.
        kept: Where they keep their state.
        models: What the GPUs are.
        virtual: Whether the machine is virtual, where MIG mode takes a reboot.
        without: A program that the machine lacks.
    """

    def __init__(self, programs: Path, kept: Path, *models: str, virtual: bool = False, without: str = "") -> None:
        self.kept = kept
        self.devices = kept / "devices"
        for directory in (programs, kept, self.devices):
            directory.mkdir(parents=True, exist_ok=True)
        gpus = [
            {
                "index": index,
                "name": model,
                "uuid": f"GPU-{uuid.uuid4()}",
                "bus": f"00000000:{7 + index:02X}:00.0",
                "memory": MEMORY[model],
                "mode": "[N/A]" if model == "A10" else "Disabled",
                "pending": "[N/A]" if model == "A10" else "Disabled",
                "virtual": virtual,
                "instances": [],
            }
            for index, model in enumerate(models)
        ]
        self.write(gpus)
        for name, script in (("nvidia-smi", "smi.py"), ("nvidia-cuda-mps-control", "mps_control.py")):
            if name != without:
                path = programs / name
                words = shlex.join([sys.executable, "-I", "-S", str(HERE / script), str(kept)])
                path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
                path.chmod(0o755)

    def write(self, gpus: list[dict[str, Any]]) -> None:
        """Make the GPUs be as another program left them."""
        (self.kept / "gpus.json").write_text(json.dumps({"driver": "550.54.15", "gpus": gpus}))

    @property
    def gpus(self) -> list[dict[str, Any]]:
        """The GPUs as they are now."""
        read: list[dict[str, Any]] = json.loads((self.kept / "gpus.json").read_text())["gpus"]
        return read

    @property
    def cut(self) -> list[tuple[str, list[str]]]:
        """The mode of each GPU, and the profiles it is cut into."""
        return [(gpu["mode"], [made["profile"] for made in gpu["instances"]]) for gpu in self.gpus]

    @property
    def slices(self) -> list[str]:
        """The UUIDs of all slices."""
        return [one for gpu in self.gpus for made in gpu["instances"] for one in made["computes"]]

    @property
    def asked(self) -> list[str]:
        """What was asked of nvidia-smi that changes something."""
        path = self.kept / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if "-mig " in line or (line.startswith("mig ") and "-lgi" not in line)]

    @property
    def daemon(self) -> list[str]:
        """What was asked of the MPS control daemon."""
        path = self.kept / "mps"
        return path.read_text().splitlines() if path.exists() else []
