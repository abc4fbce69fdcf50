"""What a machine has: asked in one round trip, before anything is done to it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from skyward.plan.bootstrap.cache_text import make_entries, unsafe
from skyward.shell_files import shell_file


def script() -> str:
    """Write the script that looks at a machine."""
    return f"{unsafe()}\n{make_entries()}\n{shell_file(__package__, 'probe.sh')}"


@frozen(kw_only=True)
class Gpu:
    """
    Describe an accelerator that a machine has.

    Args:
        name: As its driver calls it.
        memory_gb: Its memory, in GB, of which 1024 MiB make one, as those that devices are sold under.
    """

    name: str
    memory_gb: float


@frozen(kw_only=True)
class Findings:
    """
    Describe a machine as it was found.

    Args:
        cache: Absolute path of Skyward's directory there.
        writable: Whether that directory can be written to.
        unsafe: Which other users could change it, in words; empty if none could.
        system: Kernel, such as `"Linux"`.
        machine: Architecture, such as `"x86_64"`.
        hostname: What it calls itself.
        address: The address at which its SSH server was reached.
        port: The port likewise, as the machine sees it.
        vcpus: Processors.
        memory_gb: Memory, in GB.
        free_gb: Room for the cache, in GB; None if that cannot be told.
        disk_gb: Size of the disk that it is on, in GB; None if that cannot be told.
        runtimes: Digests of the client's sides that it has.
        gets_uv: Whether it has uv, or pip, which can install it.
        gpus: Its accelerators.
        ecc_errors: Uncorrected memory errors of its GPUs since they were reset.
        driver: Version of NVIDIA's driver; empty where there is none, or it does not say.
        cuda: The newest CUDA that it runs; empty likewise.
        xids: Errors of its GPUs that its kernel's log tells of, as far as it may be read.
    """

    cache: str
    writable: bool
    system: str
    machine: str
    hostname: str
    address: str | None
    vcpus: float
    memory_gb: float
    free_gb: float | None
    disk_gb: float | None
    runtimes: frozenset[str]
    gets_uv: bool
    gpus: tuple[Gpu, ...]
    unsafe: str = ""
    ecc_errors: int = 0
    driver: str = ""
    cuda: str = ""
    xids: frozenset[int] = frozenset()
    port: int | None = None


def read(output: str) -> Findings:
    """
    Read what the script printed; lines that are none of its own, such as a greeting, are passed over.

    >>> found = read("Welcome!\\ncache=/root/.cache/skyward\\ncpus=8\\ngpu=NVIDIA L4, 23034\\n")
    >>> found.vcpus, found.gpus
    (8.0, (Gpu(name='NVIDIA L4', memory_gb=22.5),))
    """
    facts: dict[str, str] = {}
    gpus: list[Gpu] = []
    runtimes: set[str] = set()
    ecc_errors = 0
    xids: set[int] = set()
    for line in output.splitlines():
        name, found, value = line.partition("=")
        if not found:
            continue
        if name == "gpu":
            model, _, mebibytes = value.rpartition(",")
            gpus.append(Gpu(name=model.strip(), memory_gb=round(_number(mebibytes) / 1024, 1)))
        elif name == "runtime":
            runtimes.add(value)
        elif name == "ecc":
            ecc_errors += int(_number(value))
        elif name == "xid":
            xids.add(int(_number(value)))
        else:
            facts[name] = value.strip()
    return Findings(
        cache=facts.get("cache", ""),
        writable=facts.get("writable") == "yes",
        unsafe=facts.get("unsafe", ""),
        system=facts.get("system", ""),
        machine=facts.get("machine", ""),
        hostname=facts.get("hostname", ""),
        address=facts.get("server") or None,
        vcpus=_number(facts.get("cpus", "")) or 1.0,
        memory_gb=round(_number(facts.get("memory_kb", "")) * 1024 / 1e9, 1),
        free_gb=_gigabytes(facts, "free_kb"),
        disk_gb=_gigabytes(facts, "disk_kb"),
        runtimes=frozenset(runtimes),
        gets_uv="yes" in (facts.get("uv"), facts.get("pip")),
        gpus=tuple(gpus),
        ecc_errors=ecc_errors,
        driver=facts.get("driver", ""),
        cuda=facts.get("cuda", ""),
        xids=frozenset(xids),
        port=int(_number(facts.get("port", ""))) or None,
    )


def _gigabytes(facts: Mapping[str, str], name: str) -> float | None:
    text = facts.get(name, "")
    return round(int(text) * 1024 / 1e9, 3) if text.isdigit() else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
