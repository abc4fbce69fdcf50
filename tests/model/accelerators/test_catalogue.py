"""
The catalogue finds devices by every name that clouds have for them.
"""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator import Accelerator, recognise
from skyward.model.accelerators.catalogue import CATALOGUE, Catalogue
from skyward.model.accelerators.device import Device, Spelling, Variant, compact

DEVICES = list(CATALOGUE)


def device(name: str, *spellings: str | Spelling) -> Device:
    """Return a device that no catalogue has."""
    variants = [Variant(memory_gb=64)]
    return Device(name=name, manufacturer="AMD", architecture="None", variants=variants, spellings=spellings)


@pytest.mark.parametrize("one", DEVICES, ids=lambda one: one.name)
def test_every_entry_is_complete(one: Device) -> None:
    """A device has an identifier for a name, an architecture, memory, and profiles that hold something."""
    assert one.name.isidentifier()
    assert one.architecture
    assert all(variant.memory_gb > 0 for variant in one.variants)
    assert all(count > 0 for variant in one.variants for _, count in variant.mig)


@pytest.mark.parametrize("one", DEVICES, ids=lambda one: one.name)
def test_a_device_is_found_by_each_of_its_names(one: Device) -> None:
    """Its name and all spellings lead to it, in any case and with any separators."""
    names = [one.name, *(spelling.text for spelling in one.spellings)]
    found = {CATALOGUE[variant] for name in names for variant in (name, name.lower(), name.replace(" ", "-"))}
    assert {one} == found


@pytest.mark.parametrize(
    "spelling", [spelling for one in DEVICES for spelling in one.spellings if spelling.memory_gb], ids=str
)
def test_a_spelling_states_memory_that_the_device_is_made_with(spelling: Spelling) -> None:
    """What a spelling says agrees with the variants."""
    found = CATALOGUE[spelling.text]
    assert found.choose(memory_gb=spelling.memory_gb, form_factor=spelling.form_factor).memory_gb == spelling.memory_gb


def test_profiles_share_out_no_more_than_the_device_has() -> None:
    """The instances of a MIG profile fit into the memory of one device, as it is reported."""
    overfull = [
        (one.name, profile)
        for one in DEVICES
        for variant in one.variants
        for profile, count in variant.mig
        if count * float(profile.split(".")[1].split("gb")[0]) > max(variant.memory_gb, *variant.reported_gb, 0) * 1.03
    ]
    assert [] == overfull


def test_names_are_compared_without_what_sellers_add() -> None:
    """Case, separators and vendors' words make no difference."""
    assert {"rtx4090"} == {compact(text) for text in ("NVIDIA GeForce RTX 4090", "rtx_4090", "RTX-4090")}


def test_a_name_of_vendors_words_alone_stays_a_name() -> None:
    """Nothing is taken away where nothing would be left."""
    assert "gpu" == compact("GPU")


@pytest.mark.parametrize(
    ("given", "memory"), [(80, 80), (79.6, 80), (81.5, 80), (40, 40), (39.4, 40), (60, None), (160, None)]
)
def test_a_reported_figure_belongs_to_the_nearest_variant(given: float, memory: float | None) -> None:
    """Drivers report a little less or more than a device is sold under."""
    found = CATALOGUE["A100"].variant(given)
    assert memory == (found.memory_gb if found else None)


@pytest.mark.parametrize(
    ("name", "mebibytes", "memory"),
    [
        ("NVIDIA A100-SXM4-80GB", 81920, 80),
        ("NVIDIA A100-SXM4-40GB", 40960, 40),
        ("NVIDIA H100 80GB HBM3", 81559, 80),
        ("NVIDIA H200", 143771, 141),
        ("NVIDIA L4", 23034, 24),
        ("NVIDIA A10", 23028, 24),
        ("NVIDIA A10G", 23028, 24),
        ("NVIDIA A40", 46068, 48),
        ("NVIDIA L40S", 46068, 48),
        ("Tesla T4", 15360, 16),
        ("Tesla V100-SXM2-16GB", 16160, 16),
        ("NVIDIA GeForce RTX 4090", 24564, 24),
    ],
)
def test_what_nvidia_smi_tells_of_memory_is_what_was_asked_for(name: str, mebibytes: int, memory: float) -> None:
    """Also where exactly that much was asked for: cards that check their memory keep some of it for that."""
    there = recognise(name, memory_gb=round(mebibytes / 1024, 1))
    assert memory == there.memory_gb
    assert Accelerator(there.name, memory_gb=memory).accepts(there)


def test_plugins_add_devices() -> None:
    """A registered device is found, and registering it again changes nothing."""
    catalogue = Catalogue(DEVICES)
    frobnicator = device("Frobnicator", "Frob 9000")
    catalogue.register(frobnicator)
    catalogue.register(frobnicator)
    assert frobnicator == catalogue["frob-9000"]
    assert "Frobnicator" == catalogue.names[-1]


def test_no_plugin_takes_a_name_that_is_taken() -> None:
    """Whose name it is is said, so that the plugin's author knows."""
    catalogue = Catalogue(DEVICES)
    with pytest.raises(ConfigError, match=r"'Fast' can't be called 'Tesla T4', because T4 is"):
        catalogue.register(device("Fast", "Tesla T4"))
    assert "Fast" not in catalogue.names


def test_a_name_has_to_be_an_attribute() -> None:
    """`sky.accelerators` could not have it otherwise."""
    with pytest.raises(ConfigError, match=r"needs a name that is a Python identifier"):
        Catalogue([device("Frob 9000")])


def test_an_unknown_name_is_a_key_error() -> None:
    """Indexing raises where `find` gives None."""
    with pytest.raises(KeyError, match=r"Voodoo2"):
        CATALOGUE["Voodoo2"]
    assert CATALOGUE.find("Voodoo2") is None


@pytest.mark.parametrize(("given", "near"), [("RTX 4095", "RTX_4090"), ("H1000", "H100"), ("MI300", "MI300X")])
def test_the_nearest_names_are_offered(given: str, near: str) -> None:
    """The first of at most three is the likeliest."""
    assert near in CATALOGUE.nearest(given)
    assert len(CATALOGUE.nearest(given)) <= 3


def test_nothing_is_offered_where_nothing_is_near() -> None:
    """A far-fetched suggestion helps no user."""
    assert () == CATALOGUE.nearest("quantum")
