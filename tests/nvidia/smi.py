"""
Stand in for `nvidia-smi` where there is no GPU: `python smi.py DIRECTORY ARGUMENTS...`.

What it keeps is in `DIRECTORY/gpus.json`, each command line in `DIRECTORY/asked`.
A process uses a device of it while it holds a lock on `DIRECTORY/devices/UUID`, which the kernel takes back with the
process, as the driver does with its contexts.

Every line it prints was seen from the real one; where, is said at the line:

* guide: NVIDIA's Multi-Instance GPU user guide, examples of A100 with drivers of branches 450 to 550.
* 535: an A30 with driver 535, `-lgi` without instances, as a user's notes have it.
* 580: RTX PRO 6000 with driver 580, users' notes: `-dgi` before `-dci`, `-cgi` in use, a board without MIG.
* A10: a virtual machine, `-mig 0` while the GPU is in use, as its administrator's notes have it.

Codes of exit are those of NVML that the manual of nvidia-smi lists, where it lists one.
"""

from __future__ import annotations

import fcntl
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

# Placements and ids of profiles on devices with eight slices of memory (guide, `mig -lgip` and `-lgipp`, A100 80 GB).
# name suffix of the memory is per device: profile -> (id, id of its compute profile, compute, size, starts, instances).
PROFILES: dict[str, dict[str, tuple[int, int, int, int, tuple[int, ...], tuple[int, ...]]]] = {
    "A100-SXM4-80GB": {
        "1g.10gb": (19, 0, 1, 1, (0, 1, 2, 3, 4, 5, 6), (7, 8, 9, 10, 11, 12, 13)),
        "1g.20gb": (15, 0, 1, 2, (0, 2, 4, 6), (3, 4, 5, 6)),
        "2g.20gb": (14, 1, 2, 2, (0, 2, 4), (3, 4, 5)),
        "3g.40gb": (9, 2, 3, 4, (4, 0), (2, 1)),
        "4g.40gb": (5, 3, 4, 4, (0,), (1,)),
        "7g.80gb": (0, 4, 7, 8, (0,), (0,)),
    },
    "H100 80GB HBM3": {},
    "A10": {},
}
PROFILES["H100 80GB HBM3"] = PROFILES["A100-SXM4-80GB"]

IN_USE, NOT_FOUND, INVALID, RESOURCES = 19, 6, 2, 23


class Machine:
    """The GPUs, as the driver knows them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # One command at a time changes a device.
        self.lock = (directory / "lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.path = directory / "gpus.json"
        self.state: dict[str, Any] = json.loads(self.path.read_text())
        self.gpus: list[dict[str, Any]] = self.state["gpus"]

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.state, indent=1))
        new.replace(self.path)

    def used(self, device: str) -> bool:
        path = self.directory / "devices" / device
        if not path.exists():
            return False
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def chosen(self, wanted: str | None) -> list[dict[str, Any]]:
        if wanted is None:
            return self.gpus
        found = [
            gpu for word in wanted.split(",") for gpu in self.gpus if word in (gpu["uuid"], gpu["bus"], index(gpu))
        ]
        if not found:
            end("No devices were found", NOT_FOUND)
        return found


def index(gpu: dict[str, Any]) -> str:
    return str(gpu["index"])


def end(text: str, code: int) -> None:
    print(text)
    raise SystemExit(code)


def lists(machine: Machine) -> None:
    """`-L` (guide, drivers from 470 on: slices have UUIDs of their own)."""
    for gpu in machine.gpus:
        print(f"GPU {gpu['index']}: NVIDIA {gpu['name']} (UUID: {gpu['uuid']})")
        computes = [(made, one) for made in gpu["instances"] for one in made["computes"]]
        for number, (made, one) in enumerate(sorted(computes, key=lambda pair: pair[0]["start"])):
            print(f"  MIG {made['profile']:<11} Device {number:>2}: (UUID: {one})")


def queries(machine: Machine, fields: list[str], style: list[str], wanted: str | None) -> None:
    """`--query-gpu` (guide: `mig.mode.current`; `nvidia-smi --help-query-gpu`)."""
    units = "" if "nounits" in style else " MiB"
    if "noheader" not in style:
        print(", ".join(fields))
    for gpu in machine.chosen(wanted):
        known = {
            "index": index(gpu),
            "uuid": gpu["uuid"],
            "name": f"NVIDIA {gpu['name']}",
            "pci.bus_id": gpu["bus"],
            "memory.total": f"{gpu['memory']}{units}",
            "driver_version": machine.state["driver"],
            "ecc.errors.uncorrected.volatile.total": "0",
            "mig.mode.current": gpu["mode"],
            "mig.mode.pending": gpu["pending"],
        }
        print(", ".join(known.get(field, "[N/A]") for field in fields))


def sets_mode(machine: Machine, mode: str, wanted: str | None) -> None:
    """`-mig 0|1`."""
    for gpu in machine.chosen(wanted):
        used = machine.used(gpu["uuid"]) or any(
            machine.used(one) for made in gpu["instances"] for one in made["computes"]
        )
        if gpu["mode"] == "[N/A]":
            # 580, and an A5000 with driver 535.
            print(f"Unable to {'enable' if mode == '1' else 'disable'} MIG Mode for GPU {gpu['bus']}: Not Supported")
            print("Treating as warning and moving on.")
        elif mode == "1" and gpu["mode"] == "Disabled" and gpu["virtual"]:
            # guide: A100 passed through to a virtual machine.
            gpu["pending"] = "Enabled"
            print(f"Warning: MIG mode is in pending enable state for GPU {gpu['bus']}:Not Supported")
            print(f"Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU {gpu['bus']}")
        elif mode == "1" and gpu["mode"] == "Disabled" and used:
            # guide, and users of A100 with drivers 450 to 535.
            gpu["pending"] = "Enabled"
            print(f"Warning: MIG mode is in pending enable state for GPU {gpu['bus']}:In use by another client")
            print(
                f"{gpu['bus']} is currently being used by one or more other processes (e.g. CUDA application or a "
                "monitoring application such as another instance of nvidia-smi). Please first kill all processes using "
                "the device and retry the command or reboot the system to make MIG mode effective."
            )
        elif mode == "0" and (used or gpu["instances"]):
            # A10.
            print(f"Unable to disable MIG Mode for GPU {gpu['bus']}: In use by another client")
            end("Terminating early due to previous errors.", IN_USE)
        else:
            gpu["mode"] = gpu["pending"] = "Enabled" if mode == "1" else "Disabled"
            print(f"{gpu['mode']} MIG Mode for GPU {gpu['bus']}")
    print("All done.")


def lists_instances(gpus: list[dict[str, Any]]) -> None:
    """`mig -lgi` (guide; 535 for none)."""
    rows = [(gpu, made) for gpu in gpus for made in sorted(gpu["instances"], key=lambda made: made["start"])]
    if not rows:
        end("No GPU instances found: Not Found", NOT_FOUND)
    rule = f"+{'-' * 55}+"
    print(rule)
    print("| GPU instances:                                        |")
    print("| GPU   Name             Profile  Instance   Placement  |")
    print("|                          ID       ID       Start:Size |")
    print(f"|{'=' * 55}|")
    for gpu, made in rows:
        profile = PROFILES[gpu["name"]][made["profile"]]
        place = f"{made['start']}:{profile[3]}"
        print(f"| {gpu['index']:>3}  MIG {made['profile']:<13} {profile[0]:>4}      {made['id']:>3} {place:>12}     |")
        print(rule)


def creates(gpus: list[dict[str, Any]], asked: list[str], *, computes: bool) -> None:
    """`mig -cgi PROFILES [-C]` (guide; refusals: guide for capacity, a board without the profile for names)."""
    for gpu in gpus:
        table = PROFILES[gpu["name"]]
        for word in asked:
            name = next((name for name, row in table.items() if word in (name, str(row[0]), f"MIG {name}")), None)
            reason = "Invalid Argument"
            if name is not None:
                number, compute, slices, size, starts, ids = table[name]
                taken = {
                    at
                    for made in gpu["instances"]
                    for at in range(made["start"], made["start"] + table[made["profile"]][3])
                }
                left = 7 - sum(table[made["profile"]][2] for made in gpu["instances"])
                used = {made["id"] for made in gpu["instances"]}
                free = [start for start in starts if not taken & set(range(start, start + size))]
                reason = "Insufficient Resources"
                if free and slices <= left:
                    made = {"id": next(one for one in (*ids, *range(20, 40)) if one not in used), "profile": name}
                    made |= {"start": free[0], "computes": []}
                    gpu["instances"].append(made)
                    print(
                        f"Successfully created GPU instance ID {made['id']:>2} on GPU {gpu['index']:>2} "
                        f"using profile MIG {name} (ID {number:>2})"
                    )
                    if computes:
                        made["computes"].append(f"MIG-{uuid.uuid4()}")
                        print(
                            f"Successfully created compute instance ID  0 on GPU {gpu['index']:>2} GPU instance ID "
                            f"{made['id']:>2} using profile MIG {name} (ID {compute:>2})"
                        )
                    continue
            print(f"Unable to create a GPU instance on GPU {gpu['index']:>2} using profile {word}: {reason}")
            end(f"Failed to create GPU instances: {reason}", INVALID if name is None else RESOURCES)


def destroys_computes(machine: Machine, gpus: list[dict[str, Any]], wanted: set[int] | None) -> None:
    """`mig -dci [-gi IDS]` (guide; 580 says that it is refused with this reason while a process uses the slice)."""
    found = [
        (gpu, made)
        for gpu in gpus
        for made in gpu["instances"]
        if made["computes"] and (wanted is None or made["id"] in wanted)
    ]
    if not found:
        end("No compute instances found: Not Found", NOT_FOUND)
    for gpu, made in found:
        where = f"from GPU {gpu['index']:>2} GPU instance ID {made['id']:>2}"
        if any(machine.used(one) for one in made["computes"]):
            print(f"Unable to destroy compute instance ID  0 {where}: In use by another client")
            end("Failed to destroy compute instances: In use by another client", IN_USE)
        made["computes"].clear()
        print(f"Successfully destroyed compute instance ID  0 {where}")


def destroys_instances(gpus: list[dict[str, Any]], wanted: set[int] | None) -> None:
    """`mig -dgi [-gi IDS]` (guide; 580 for the order)."""
    found = [(gpu, made) for gpu in gpus for made in gpu["instances"] if wanted is None or made["id"] in wanted]
    if not found:
        end("No GPU instances found: Not Found", NOT_FOUND)
    for gpu, made in found:
        where = f"GPU instance ID {made['id']:>2} from GPU {gpu['index']:>2}"
        if made["computes"]:
            print(f"Unable to destroy {where}: In use by another client")
            end("Failed to destroy GPU instances: In use by another client", IN_USE)
        gpu["instances"].remove(made)
        print(f"Successfully destroyed {where}")


def mig(machine: Machine, words: list[str]) -> None:
    """`nvidia-smi mig ...`."""
    options = read(words)
    if not any(gpu["mode"] != "[N/A]" for gpu in machine.gpus):
        # 580, a board whose MIG is switched off for good.
        end("No MIG-supported devices found.", NOT_FOUND)
    gpus = [gpu for gpu in machine.chosen(options.get("-i")) if gpu["mode"] == "Enabled"]
    if not gpus:
        # guide, and a farm that checks its machines with driver 535: code 6.
        end("No MIG-enabled devices found.", NOT_FOUND)
    wanted = {int(word) for word in options["-gi"].split(",")} if "-gi" in options else None
    if "-lgi" in options:
        lists_instances(gpus)
    elif "-cgi" in options:
        creates(gpus, options["-cgi"].split(","), computes="-C" in options)
    elif "-dci" in options:
        destroys_computes(machine, gpus, wanted)
    elif "-dgi" in options:
        destroys_instances(gpus, wanted)
    else:
        end("Invalid combination of input arguments. Please run 'nvidia-smi mig -h' for help.", INVALID)


def read(words: list[str]) -> dict[str, str]:
    """Read options, of which some take a word."""
    options: dict[str, str] = {}
    left = iter(words)
    for word in left:
        name, _, value = word.partition("=")
        options[name] = value or (next(left) if name in ("-i", "-gi", "-cgi", "-mig") else "")
    return options


def main(directory: Path, words: list[str]) -> None:
    with (directory / "asked").open("a") as log:
        log.write(" ".join(words) + "\n")
    machine = Machine(directory)
    try:
        if words[:1] == ["mig"]:
            mig(machine, words[1:])
            return
        options = read(words)
        if "-mig" in options:
            sets_mode(machine, options["-mig"], options.get("-i"))
        elif "-L" in options:
            lists(machine)
        elif "--query-gpu" in options:
            style = options.get("--format", "csv").split(",")
            queries(machine, re.split(r",\s*", options["--query-gpu"]), style, options.get("-i"))
        elif not words:
            driver = machine.state["driver"]
            print(f"| NVIDIA-SMI {driver:<21} Driver Version: {driver:<14} CUDA Version: 12.4     |")
        else:
            end("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.", INVALID)
    finally:
        machine.save()


main(Path(sys.argv[1]), sys.argv[2:])
