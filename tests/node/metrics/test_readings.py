"""What kernels and nvidia-smi write is read right, whatever their version."""

from __future__ import annotations

import pytest

from skyward.node.metrics import readings
from skyward.node.metrics.readings import CPUTimes, Memory, Traffic

STAT_6_1 = """\
cpu  10132153 290696 3084719 46828483 16683 0 25195 175628 100 0
cpu0 1393280 32966 572056 13343292 6130 0 17875 23933 50 0
intr 199292 0 9 0
ctxt 1990473
"""
STAT_2_6 = "cpu  2255 34 2290 22625563 6290 127 456\ncpu0 1132 34 1441 11311718 3675 127 438\n"
STAT_2_4 = "cpu  1279636934 73759586 192327563 12184330186\ncpu0 591\n"

MEMINFO_5 = """\
MemTotal:       16384000 kB
MemFree:         1000000 kB
MemAvailable:   12288000 kB
Buffers:          100000 kB
Cached:          9000000 kB
HugePages_Total:       0
"""
MEMINFO_3_2 = """\
MemTotal:        2048000 kB
MemFree:          512000 kB
Buffers:          102400 kB
Cached:           409600 kB
SwapCached:            0 kB
Shmem:            204800 kB
SReclaimable:     204800 kB
"""

DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 2776770   11307    0    0    0     0          0         0  2776770   11307    0    0    0     0       0          0
  eth0: 1215645    2751    0    0    0     0          0         0  1782404    4324    0    0    0   427       0          0
ens5.10:  100       1      0    0    0     0          0         0      200       1    0    0    0     0       0          0
"""  # noqa: E501
DEV_2_4 = "    lo:99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n  eth0:1215645751 1 0 0 0 0 0 0 1782404 1 0 0 0 0 0 0\n"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (STAT_6_1, CPUTimes(busy=13708391, total=60553557)),
        (STAT_2_6, CPUTimes(busy=2255 + 34 + 2290 + 127 + 456, total=22637015)),
        (STAT_2_4, CPUTimes(busy=1279636934 + 73759586 + 192327563, total=13730054269)),
        ("", None),
        ("intr 5 6 7 8\n", None),
        ("cpu  1 2\n", None),
        ("cpu  a b c d e\n", None),
    ],
)
def test_cpu_times(text: str, read: CPUTimes | None) -> None:
    """The time of guests is not counted twice; old kernels tell fewer times."""
    assert read == readings.cpu_times(text)


@pytest.mark.parametrize(
    ("before", "after", "percent"),
    [
        ((0, 100), (25, 200), 25.0),
        ((0, 100), (0, 200), 0.0),
        ((0, 100), (100, 200), 100.0),
        ((0, 100), (101, 200), 100.0),
        ((10, 100), (9, 200), 0.0),
        ((10, 100), (10, 100), None),
        ((10, 100), (5, 50), None),
    ],
)
def test_cpu_percent(before: tuple[int, int], after: tuple[int, int], percent: float | None) -> None:
    """It stays within 0 and 100, and is nothing where no time has passed."""
    assert percent == readings.cpu_percent(CPUTimes(*before), CPUTimes(*after))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (MEMINFO_5, Memory(used=4000.0, total=16000.0)),
        (MEMINFO_3_2, Memory(used=1000.0, total=2000.0)),
        ("MemTotal: 1024 kB\nMemAvailable: 4096 kB\n", Memory(used=0.0, total=1.0)),
        ("MemFree: 1024 kB\n", None),
        ("MemTotal: 1024 kB\n", None),
        ("", None),
    ],
)
def test_memory(text: str, read: Memory | None) -> None:
    """Caches are not in use; kernels that do not say what is available are read by their sums."""
    assert read == readings.memory(text)


@pytest.mark.parametrize(
    ("text", "interface", "read"),
    [
        (DEV, None, Traffic(1215745, 1782604)),
        (DEV, "eth0", Traffic(1215645, 1782404)),
        (DEV, "ens5.10", Traffic(100, 200)),
        (DEV, "lo", Traffic(2776770, 2776770)),
        (DEV, "eth1", None),
        (DEV_2_4, None, Traffic(1215645751, 1782404)),
        (DEV_2_4, "eth0", Traffic(1215645751, 1782404)),
        ("", None, None),
    ],
)
def test_traffic(text: str, interface: str | None, read: Traffic | None) -> None:
    """All but the loopback, or the one that was named; old kernels put no blank after the colon."""
    assert read == readings.traffic(text, interface)


def test_rate() -> None:
    """A counter that began anew tells nothing, nor does no time."""
    assert (5.0, None, None) == (readings.rate(10, 20, 2.0), readings.rate(20, 10, 2.0), readings.rate(10, 20, 0.0))


def test_disk_percent() -> None:
    """As `df` counts; a file system without blocks, such as /proc, tells nothing."""
    assert (50.0, None) == (readings.disk_percent(100, 55, 45), readings.disk_percent(0, 0, 0))


@pytest.mark.parametrize(
    ("text", "value"),
    [("12\n", 12.0), (" -3.5e2 ", -350.0), ("", None), ("12 %", None), ("1\n2\n", None), ("inf", None), ("nan", None)],
)
def test_number(text: str, value: float | None) -> None:
    """One finite number, and nothing else."""
    assert value == readings.number(text)


SOURCES = ["gpu", "gpu_memory", "gpu_memory_total", "gpu_temp"]


@pytest.mark.parametrize(
    ("output", "read"),
    [
        (
            "0, 97, 70123, 81559, 61\n1, 0, 4, 81559, 33\n",
            {
                0: {"gpu": 97.0, "gpu_memory": 70123.0, "gpu_memory_total": 81559.0, "gpu_temp": 61.0},
                1: {"gpu": 0.0, "gpu_memory": 4.0, "gpu_memory_total": 81559.0, "gpu_temp": 33.0},
            },
        ),
        ("0, [N/A], 20, 40960, 30\n", {0: {"gpu_memory": 20.0, "gpu_memory_total": 40960.0, "gpu_temp": 30.0}}),
        (
            "0, [Not Supported], [Not Supported], 2002, 50\r\n",
            {0: {"gpu_memory_total": 2002.0, "gpu_temp": 50.0}},
        ),
        ("0, [Unknown Error], [GPU requires reset], N/A, [GPU is lost]\n", {0: {}}),
        ("No devices were found\n", None),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", None),
        ("0, 97\n", None),
        ("", None),
    ],
)
def test_gpus(output: str, read: dict[int, dict[str, float]] | None) -> None:
    """What a GPU does not tell is left out; messages in place of values are no GPU."""
    assert read == readings.gpus(output, SOURCES)
