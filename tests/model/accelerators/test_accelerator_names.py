"""
The names that clouds, drivers and people write, each recognised as one device of the catalogue or as none.

They stand in `accelerator_names.tsv`, from the clouds' catalogues and official clients, and from what drivers report.
A name that is none of the catalogue has a hyphen for its device: it is passed on as it is, and fits no other wish.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from attrs import frozen

from skyward.model.accelerators.accelerator import Accelerator, recognise
from skyward.model.accelerators.catalogue import CATALOGUE


@frozen(kw_only=True)
class Name:
    """One line of the table, in its words."""

    source: str
    name: str
    device: str
    memory_gb: str
    form_factor: str
    count: str


TABLE = Path(__file__).with_name("accelerator_names.tsv")
with TABLE.open(encoding="utf-8", newline="") as file:
    NAMES = [Name(**row) for row in csv.DictReader(file, delimiter="\t")]


def understood(name: str) -> tuple[str, str, str, str]:
    """Say in the table's words what is made of a name."""
    seen = recognise(name)
    if seen.device is None:
        return "-", "-", "-", "-"
    memory = f"{seen.memory_gb:g}" if seen.exact_memory and seen.memory_gb is not None else "-"
    return seen.name, memory, seen.form_factor or "-", f"{seen.count:g}"


@pytest.mark.parametrize("source", dict.fromkeys(each.source for each in NAMES))
def test_a_name_means_the_device_that_it_is_or_none(source: str) -> None:
    """Device, memory, form factor and count are those that the name tells."""
    rows = [each for each in NAMES if each.source == source]
    expected = {each.name: (each.device, each.memory_gb, each.form_factor, each.count) for each in rows}
    assert expected == {each.name: understood(each.name) for each in rows}


def test_the_table_is_long_and_says_nothing_twice() -> None:
    """About a thousand names, of which a third are none of the catalogue's."""
    assert 1000 < len({each.name for each in NAMES})
    assert 300 < len({each.name for each in NAMES if each.device == "-"})
    assert len(NAMES) == len({(each.source, each.name) for each in NAMES})


@pytest.mark.parametrize("unknown", [each.name for each in NAMES if each.device == "-" and each.source == "vastai"])
def test_a_name_of_no_device_fits_no_wish_for_one(unknown: str) -> None:
    """A laptop's GPU, or a card that is not known, never passes for the one whose name its own begins with."""
    offered = recognise(unknown, count=8, memory_gb=1024)
    assert [] == [device.name for device in CATALOGUE if Accelerator(device.name).accepts(offered)]


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        ("RTX_4090", "RTX 4090D"),
        ("RTX_4090", "NVIDIA GeForce RTX 4090 D"),
        ("RTX_4090_D", "RTX 4090"),
        ("RTX_5090", "NVIDIA GeForce RTX 5090 D"),
        ("RTX_4090", "NVIDIA GeForce RTX 4090 Laptop GPU"),
        ("RTX_PRO_6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb"),
        ("A100", "NVIDIA A100-SXM4-80GB MIG 3g.40gb"),
        ("L40", "L40S"),
        ("A40", "NVIDIA A40-48Q"),
    ],
)
def test_a_lesser_device_does_not_pass_for_the_one_asked_for(wanted: str, offered: str) -> None:
    """Neither a card that was cut down for export, nor one of a laptop, a slice, or a share."""
    assert not Accelerator(wanted).accepts(recognise(offered))


@pytest.mark.parametrize("name", ["7900XTX", "AMD 7900XTX", "RX 7900 XTX", "AMD Radeon RX 7900 XTX", "RX7900XTX"])
def test_amds_card_is_known_however_it_is_written(name: str) -> None:
    """With and without the words around its number."""
    assert Accelerator("RX_7900_XTX").accepts(recognise(name))
