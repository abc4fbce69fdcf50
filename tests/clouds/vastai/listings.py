"""What the market lists, and how it is searched: machines of other people, each listing rentable once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import define

HOURS_A_MONTH = 730.0

# reference/vastai.md §2: all prices in USD; gpu_ram and cpu_ram in MB, cpu_ram of the whole machine.
_USUAL: dict[str, Any] = {
    "num_gpus": 1,
    "gpu_frac": 0.5,
    "gpu_arch": "nvidia",
    "cpu_arch": "amd64",
    "cpu_cores": 64,
    "cpu_cores_effective": 32.0,
    "cpu_ram": 131072,
    "disk_space": 512.0,
    "storage_cost": 0.2,
    "inet_up_cost": 0.01,
    "inet_down_cost": 0.01,
    "inet_down": 900.0,
    "inet_up": 900.0,
    "reliability": 0.995,
    "verification": "verified",
    "rented": False,
    "external": None,
    "cuda_max_good": 12.8,
    "driver_version": "570.86.15",
    "direct_port_count": 64,
    "static_ip": True,
    "duration": 2592000.0,
    "hosting_type": 0,
    "avail_vol_ask_id": None,
    "cluster_id": None,
    "vms_enabled": False,
}

_CARDS: dict[str, dict[str, Any]] = {
    "RTX 4090": {"gpu_ram": 24564, "compute_cap": 890},
    "RTX 3090": {"gpu_ram": 24576, "compute_cap": 860},
    "A100 SXM4": {"gpu_ram": 81920, "compute_cap": 800},
    "H100 SXM": {"gpu_ram": 81559, "compute_cap": 900},
    "GH200 SXM": {"gpu_ram": 97871, "compute_cap": 900},
}


def _row(card: str, place: str | None, base: float, bid: float, **facts: Any) -> dict[str, Any]:
    priced = {"gpu_name": card, "geolocation": place, "dph_base": base, "min_bid": bid}
    return {**_USUAL, **_CARDS[card], **priced, **facts}


LISTINGS = (
    _row("RTX 4090", "California, US", 0.40, 0.20),
    _row("RTX 4090", "Texas, US", 0.42, 0.21),
    _row("RTX 4090", "Texas, US", 0.44, 0.22, num_gpus=2, gpu_frac=1.0, cpu_cores_effective=64.0),
    _row("RTX 4090", ", DE", 0.46, 0.23),
    _row("RTX 4090", None, 0.47, 0.24),
    # The number of its processors is not known.
    _row("RTX 4090", "Bavaria, DE", 0.48, 0.25, cpu_cores=None),
    # The cheapest of all: no check has looked at it, or it cannot be reached directly, or it is gone tomorrow.
    _row("RTX 4090", "Utah, US", 0.10, 0.05, verification="unverified"),
    _row("RTX 4090", "Utah, US", 0.11, 0.05, direct_port_count=0),
    _row("RTX 3090", "Quebec, CA", 0.18, 0.09, duration=7200.0, cuda_max_good=12.2),
    _row("RTX 3090", "Quebec, CA", 0.20, 0.10),
    _row("A100 SXM4", "Oregon, US", 1.10, 0.60),
    _row("A100 SXM4", "Oregon, US", 2.20, 1.20, num_gpus=2, gpu_frac=0.25),
    _row("H100 SXM", "Paris, FR", 2.10, 1.00),
    _row("H100 SXM", "Paris, FR", 16.00, 8.00, num_gpus=8, gpu_frac=1.0, cpu_cores_effective=64.0),
    _row("GH200 SXM", "Virginia, US", 1.90, 0.95, cpu_arch="arm64", gpu_frac=1.0, cpu_cores_effective=64.0),
)

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda has, wanted: bool(has == wanted),
    "neq": lambda has, wanted: bool(has != wanted),
    "gt": lambda has, wanted: has is not None and has > wanted,
    "gte": lambda has, wanted: has is not None and has >= wanted,
    "lt": lambda has, wanted: has is not None and has < wanted,
    "lte": lambda has, wanted: has is not None and has <= wanted,
    "in": lambda has, wanted: has in wanted,
    "notin": lambda has, wanted: has not in wanted,
}
# What the SDK's own list of columns has, and no listing here.
_VIRTUAL = {"datacenter", "target_reliability", "gpu_totalram", "dphtotal", "ubuntu_version", "gpu_max_power"}
_OTHER_KEYS = {"type", "order", "limit", "allocated_storage", "disable_bundling"}


@define
class Ask:
    """One listing; `by` is the contract that has it."""

    id: int
    facts: dict[str, Any]
    by: int | None = None

    def row(self, storage_gb: float) -> dict[str, Any]:
        """Describe it, with so much disk in its price."""
        facts = self.facts
        disk = facts["storage_cost"] * storage_gb / HOURS_A_MONTH
        return {
            **facts,
            "id": self.id,
            "ask_contract_id": self.id,
            "machine_id": self.id // 10,
            "host_id": self.id // 100,
            "bundle_id": self.id + 5,
            "gpu_total_ram": facts["gpu_ram"] * facts["num_gpus"],
            "dph_total": facts["dph_base"] + disk,
            "storage_total_cost": disk,
            "rentable": self.by is None,
            "public_ipaddr": "203.0.113.42",
            "score": 100.0 / facts["dph_base"],
        }


def asks() -> dict[int, Ask]:
    """Make all listings, by their ids."""
    return {number: Ask(number, dict(facts)) for number, facts in enumerate(LISTINGS, start=31_000_071)}


def searched(all_asks: Iterable[Ask], query: dict[str, Any]) -> list[dict[str, Any]]:
    """
    Find listings as `POST /api/v0/bundles/` does.

    What the query does not say of `verified` is not asked for; `type` changes nothing but the order (§2).

    Raises:
        ValueError: If an operator is none, or a filter is for nothing that a listing has.
    """
    storage = float(query.get("allocated_storage") or 8.0)
    found = []
    for ask in all_asks:
        row = ask.row(storage)
        told = {
            **row,
            "verified": row["verification"] == "verified",
            "reliability2": row["reliability"],
            "external": bool(row["external"]),
            "geolocation": (row["geolocation"] or "")[-2:],
        }
        filters = {name: wanted for name, wanted in query.items() if name not in _OTHER_KEYS}
        if unknown := filters.keys() - told.keys() - _VIRTUAL:
            raise ValueError(f"unknown search key {min(unknown)!r}")
        if all(meets(told.get(name), wanted) for name, wanted in filters.items()):
            found.append(row)
    for name, direction in reversed(query.get("order") or [["score", "desc"]]):
        found.sort(key=lambda row: (row[name] is not None, row[name]), reverse=direction == "desc")
    return found[: int(query.get("limit") or 64)]


def meets(has: Any, wanted: Any) -> bool:
    """
    Say whether a value passes a filter.

    Raises:
        ValueError: If an operator is none.
    """
    if not isinstance(wanted, dict) or not set(wanted) <= set(_COMPARE):
        raise ValueError(f"invalid operator in {wanted!r}")
    return all(_COMPARE[name](has, _like(value, has)) for name, value in wanted.items())


def _like(value: Any, has: Any) -> Any:
    """Read a number that the SDK sends as text."""
    return type(has)(value) if isinstance(value, str) and isinstance(has, int | float) else value
