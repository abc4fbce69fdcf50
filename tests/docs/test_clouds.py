"""
The table of the page "Clouds" says what the providers say of themselves.

    python -m tests.docs.test_clouds        write it anew
"""

from __future__ import annotations

import re
from pathlib import Path

import skyward as sky
from skyward.hookspecs import ProviderFacts
from skyward.model.instances.machine import EndsOwnBill

PAGE = Path(__file__).parents[2] / "docs" / "clouds.md"

_NAMES = (
    "",
    "spot",
    "a client that dies",
    "billed by",
    "nodes reach each other",
    "machine images",
    "disks of yours",
    "limits of its API",
)
_HEAD = f"|{'|'.join(f' {name} ' if name else ' ' for name in _NAMES)}|\n|{'---|' * len(_NAMES)}\n"
_DISKS = {
    "aws": "disks, for one node; for all to read",
    "digitalocean": "disks, for one node",
    "runpod": "a network volume, for all nodes",
    "vastai": "a local volume, for nodes on its machine",
    "verda": "disks, for one node; shares, for all",
}
_ENDS: dict[EndsOwnBill, str] = {
    True: "machines terminate themselves",
    "running": "machines that run terminate themselves, a guardian here all others",
    False: "a guardian here terminates them",
}
_LIMITS = {
    "aws": "throttled by account and region; [repeated](aws.md)",
    "digitalocean": "250 calls a minute, 5,000 an hour",
    "runpod": "what its header `RateLimit` says",
    "vastai": "an interval for each kind of call, and a number of searches a day",
    "verda": "not published; its refusals are waited out",
}


def providers() -> list[object]:
    """Make a value of each cloud, which asks no server anything."""
    return [sky.AWS(), sky.DigitalOcean(token="t"), sky.RunPod(), sky.VastAI(), sky.Verda()]


def row(provider: object) -> str:
    """Write what a provider says of itself."""
    facts: ProviderFacts = provider.skyward_facts()  # type: ignore[attr-defined]
    granularity = facts.billing_granularity_s or 0.0
    billed = "the second" if granularity == 1 else f"{granularity / 60:g} minutes"
    least = f", {facts.minimum_billed_s:g} s at least" if facts.minimum_billed_s else ""
    cells = [
        f"[`sky.{type(provider).__name__}`]({facts.name}.md)",
        "yes" if facts.spot else "no",
        _ENDS[facts.ends_own_bill],
        billed + least,
        "yes" if facts.nodes_reach_each_other else "no",
        "yes" if facts.machine_images else "no",
        f"[{_DISKS[facts.name]}]({facts.name}.md#disks)" if facts.disks else "no",
        _LIMITS[facts.name],
    ]
    return f"| {' | '.join(cells)} |\n"


def table() -> str:
    """Write the whole table."""
    return _HEAD + "".join(map(row, providers()))


def test_the_table_is_what_providers_say() -> None:
    """It was written from the facts of this version."""
    assert table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"\| \| spot .*?\n\n", lambda _: table() + "\n", text, flags=re.DOTALL), encoding="utf-8")
