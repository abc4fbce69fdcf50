"""What is wrong with a node, by recorded texts of kernels and of nvidia-smi."""

from __future__ import annotations

import pytest

from skyward.node.health.findings import DiskUse, Gpus, clock, disk, gpus_of, kernel_log, lost_gpus, memory_pressure

GIB = 1 << 30

MEMINFO = """MemTotal:       16303532 kB
MemFree:          204512 kB
MemAvailable:   {available:>8} kB
Buffers:           10484 kB
Cached:           180236 kB
"""
CALM = """some avg10=0.00 avg60=0.12 avg300=0.30 total=21438203
full avg10=0.00 avg60=0.08 avg300=0.21 total=19823112
"""
STALLED = """some avg10=71.20 avg60=54.11 avg300=20.03 total=99438203
full avg10=63.88 avg60=47.52 avg300=17.62 total=88823112
"""
EIGHT = "".join(f"GPU-5c1f9d6{number}-2f1e-4ad4-8a3c-6d1f8ce1b0a{number}, 0\n" for number in range(8))
LOST = (
    "Unable to determine the device handle for GPU0000:CA:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
)
UNKNOWN = "Unable to determine the device handle for gpu 0000:3B:00.0: Unknown Error\n"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n"
)
KMSG = "4,1893,8213370042,-;NVRM: Xid (PCI:0000:{bus}:00): {xid}, {rest}"


@pytest.mark.parametrize(
    ("sample", "certain"),
    [
        (DiskUse("/", 100 * GIB, 50 * GIB, 1000, 900), None),
        (DiskUse("/", 100 * GIB, GIB, 1000, 900), False),
        (DiskUse("/", 8 * GIB, 300 << 20, 1000, 900), False),
        (DiskUse("/", 2 * GIB, 300 << 20, 1000, 900), None),
        (DiskUse("/", 100 * GIB, 50 * GIB, 1000, 5), False),
        (DiskUse("/", 100 * GIB, 50 * GIB, 0, 0), None),
        (DiskUse("/", 100 * GIB, 50 * GIB, 1000, 900, read_only=True), True),
        (DiskUse("/proc", 0, 0, 0, 0), None),
    ],
)
def test_a_file_system(sample: DiskUse, certain: bool | None) -> None:
    """A full one warns, one that has become read-only is broken, and one that counts nothing says nothing."""
    found = disk(sample)
    assert certain == (found and found.certain)


@pytest.mark.parametrize(
    ("meminfo", "pressure", "limit", "used", "short"),
    [
        (MEMINFO.format(available=8_000_000), CALM, None, None, False),
        (MEMINFO.format(available=100_000), CALM, None, None, True),
        (MEMINFO.format(available=8_000_000), STALLED, None, None, True),
        (MEMINFO.format(available=8_000_000), "", 1000.0, 990.0, True),
        (MEMINFO.format(available=8_000_000), "", 1000.0, None, False),
        ("", "", None, None, False),
        ("nonsense", "full avg60=x", None, None, False),
    ],
)
def test_memory(meminfo: str, pressure: str, limit: float | None, used: float | None, short: bool) -> None:
    """By what is available, of the machine or the group, and by how long tasks waited; never certain."""
    found = memory_pressure(meminfo, pressure, limit, used)
    assert short == (found is not None)
    assert found is None or not found.certain


@pytest.mark.parametrize(
    ("output", "reasons"),
    [
        (EIGHT, []),
        (EIGHT.replace("0a0, 0", "0a0, 2"), ["has 2 memory errors that could not be corrected"]),
        ("".join(EIGHT.splitlines(keepends=True)[1:]), ["is gone"]),
        (LOST, ["is gone: Unable to determine"] * 8),
        (UNKNOWN, ["is gone: Unable to determine"] * 8),
        (NO_DRIVER, []),
        ("", []),
        (EIGHT.replace(", 0", ", [N/A]"), []),
    ],
)
def test_gpus(output: str, reasons: list[str]) -> None:
    """Compared with those at the beginning; that the program itself fails says nothing of a GPU."""
    found = lost_gpus(gpus_of(EIGHT), gpus_of(output))
    assert len(reasons) == len(found)
    assert all(reason in one.reason for reason, one in zip(reasons, found, strict=True))
    assert all(one.certain == ("is gone" in one.reason) for one in found)


def test_gpus_without_a_beginning_are_not_missed() -> None:
    """Where nvidia-smi failed at first."""
    assert [] == lost_gpus(Gpus({}), gpus_of(EIGHT))


@pytest.mark.parametrize(
    ("xid", "rest", "broken"),
    [
        (79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", True),
        (48, "pid=2021, name=python, DBE (double bit error) detected", True),
        (95, "pid=2021, name=python, Uncontained: LTC TAG (0x2,0x0)", True),
        (13, "pid=2021, name=python, Graphics SM Warp Exception on (GPC 0, TPC 0)", False),
        (31, "pid=2021, name=python, Ch 00000008, intr 00000000. MMU Fault", False),
        (43, "pid=2021, name=python, Ch 00000010", False),
    ],
)
def test_the_kernels_log(xid: int, rest: str, broken: bool) -> None:
    """What a program did wrong is no fault of its GPU."""
    found = kernel_log(["6,1892,8213370000,-;usb 1-1: new device", KMSG.format(bus="ca", xid=xid, rest=rest)])
    assert [True] * broken == [one.certain for one in found]


@pytest.mark.parametrize(("step", "told"), [(0.0, False), (1.9, False), (2.5, True), (-3600.0, True)])
def test_a_clock_that_is_set(step: float, told: bool) -> None:
    """Never certain: it is right again now, or will be."""
    found = clock(step)
    assert told == (found is not None)
    assert found is None or not found.certain
