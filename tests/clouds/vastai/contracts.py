"""What was rented, as Vast.ai tells it. Sections are those of reference/vastai.md."""

from __future__ import annotations

import time
from typing import Any

from attrs import define, field

from tests.clouds.hosting import Machine
from tests.clouds.vastai.listings import HOURS_A_MONTH, Ask
from tests.hosts import Host

SCRIPT = 4048  # Learned on 2026-11-22
RUNTYPES = {"ssh_direct", "ssh_direc ssh_proxy", "ssh_proxy", "ssh"}  # §4; the second is the SDK's spelling


@define(eq=False)
class Contract:
    """One instance; `machine` is its container, if there ever was one."""

    id: int
    ask: Ask
    given: dict[str, Any]
    key: str
    wanted: str = "running"
    state: str = "running"
    status: str | None = None
    says: str = ""
    machine: Machine | None = None
    destroyed: bool = False
    born: float = field(factory=time.monotonic)
    started: float = field(factory=time.time)
    keys: list[str] = field(factory=list)
    """Keys that Vast.ai authorizes: the account's, and those attached."""

    def let_in(self, host: Host) -> None:
        """Write the authorized keys, before anything runs there; Vast.ai writes no newline at the end."""
        file = host.base / "home" / ".ssh" / "authorized_keys"
        if self.keys:
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(self.keys))

    def refresh(self) -> None:
        """Write it anew, as Vast.ai does after hours: what others wrote there is gone."""
        if self.machine is not None and self.machine.host is not None:
            file = self.machine.host.base / "home" / ".ssh" / "authorized_keys"
            file.write_text("".join(f"{key}\n" for key in self.keys))

    @property
    def bid(self) -> float | None:
        """Return what is bid for it; None on demand."""
        price: float | None = self.given.get("price")
        return price


def described(contract: Contract, port: int) -> dict[str, Any]:
    """Describe a contract, whose container has its SSH server at an outer port (§5)."""
    facts = contract.ask.facts
    runs = contract.status == "running" and contract.machine is not None
    disk = facts["storage_cost"] * contract.given["disk"] / HOURS_A_MONTH
    base = facts["dph_base"] if contract.bid is None else contract.bid
    return {
        "id": contract.id,
        "label": contract.given.get("label"),
        "machine_id": contract.ask.id // 10,
        "actual_status": contract.status,
        "intended_status": contract.wanted,
        "cur_state": contract.state,
        "next_state": contract.wanted,
        "status_msg": contract.says or None,
        "is_bid": contract.bid is not None,
        "min_bid": facts["min_bid"],
        "dph_base": base,
        "dph_total": base + disk,
        "start_date": contract.started,
        "end_date": contract.started + facts["duration"],
        "image_uuid": contract.given["image"],
        "image_runtype": "ssh_direc ssh_proxy",
        "extra_env": [[name, text] for name, text in (contract.given.get("env") or {}).items()],
        "num_gpus": facts["num_gpus"],
        "gpu_name": facts["gpu_name"],
        "gpu_ram": facts["gpu_ram"],
        "cpu_ram": facts["cpu_ram"],
        "cpu_cores": facts["cpu_cores"],
        "cpu_cores_effective": facts["cpu_cores_effective"],
        "disk_space": contract.given["disk"],
        "geolocation": facts["geolocation"],
        "static_ip": facts["static_ip"],
        "template_hash_id": None,
        "local_ipaddrs": "172.17.0.2",
        "public_ipaddr": f" {contract.machine.address}\n" if contract.machine else None,
        "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(port)}]} if runs else None,
        "ssh_host": "ssh5.vast.ai",
        "ssh_port": 10600,
    }


def wrong(given: dict[str, Any]) -> tuple[str, str] | None:
    """Say what is wrong with an order (§4)."""
    if not given.get("image"):
        return "invalid_args", "error 400/3467: Invalid args: 'image' is required"
    if len(given.get("label") or "") > 256:
        return "label_too_long", "label is too long"
    if len(given.get("onstart") or "") + len(given.get("args_str") or "") > SCRIPT:
        return "invalid_args", "onstart is too long"
    if given.get("runtype") not in RUNTYPES:
        return "invalid_args", f"runtype {given.get('runtype')!r}"
    if not isinstance(given.get("env") or {}, dict):
        return "invalid_args", "env must be an object"
    if not isinstance(given.get("disk"), int | float) or given["disk"] < 8:
        return "invalid_args", "disk"
    if given.get("price") is not None and not 0.001 <= given["price"] <= 128:
        return "invalid_price", "price is out of range"
    return None
