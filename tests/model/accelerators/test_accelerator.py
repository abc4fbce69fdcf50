"""
An accelerator is what each node has; every way to write it gives the same value.
"""

from __future__ import annotations

import math
import pickle
from typing import get_args

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from skyward.errors import ConfigError
from skyward.model.accelerators import accelerator_factories as accelerators
from skyward.model.accelerators.accelerator import (
    NVIDIA,
    Accelerator,
    AcceleratorSpec,
    accelerator,
    is_nvidia,
    is_trainium,
    mig_profiles,
    recognise,
)
from skyward.model.accelerators.catalogue import CATALOGUE
from skyward.model.accelerators.device import Device

DEVICES = list(CATALOGUE)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("H100", Accelerator("H100")),
        ("h100:8", Accelerator("H100", count=8)),
        ("8x H100", Accelerator("H100", count=8)),
        ("A100-40GB", Accelerator("A100", memory_gb=40)),
        ("A100-40GB:2", Accelerator("A100", memory_gb="40GB", count=2)),
        ("H100-NVL", Accelerator("H100", form_factor="NVL")),
        ("H100-SXM5:4", Accelerator("H100", form_factor="SXM", count=4)),
        ("A100-3g.20gb", Accelerator("A100", mig="3g.20gb")),
        ("RTX 4090", Accelerator("RTX_4090")),
        ("v5p-8", Accelerator("TPUv5p", count=4, topology="v5p-8")),
    ],
)
def test_text_means_the_value(written: str, meant: Accelerator) -> None:
    """What can be said with arguments can be said with text."""
    assert meant == accelerator(written)


def test_none_and_values_pass() -> None:
    """Nothing is parsed twice, and no accelerator stays none."""
    assert accelerator(None) is None
    assert Accelerator("T4") is not None
    asked = Accelerator("T4", count=2)
    assert accelerator(asked) is asked


@pytest.mark.parametrize("one", DEVICES, ids=lambda one: one.name)
def test_every_device_can_be_asked_for_and_read_back(one: Device) -> None:
    """For each variant, form factor and profile of each device, the text of the value means the value."""
    asked = [Accelerator(one.name, count=2)]
    for made in one.variants:
        asked.append(Accelerator(one.name, memory_gb=made.memory_gb))
        asked += [Accelerator(one.name, memory_gb=made.memory_gb, form_factor=form) for form in made.form_factors]
        asked += [Accelerator(one.name, memory_gb=made.memory_gb, mig=profile, count=4) for profile, _ in made.mig]
    assert asked == [accelerator(str(value)) for value in asked]


def test_the_type_names_what_the_catalogue_has() -> None:
    """Each name of the `NVIDIA` type is an accelerator of theirs, and each of theirs has its name there."""
    names = get_args(NVIDIA)
    assert {"NVIDIA"} == {accelerator(name).manufacturer for name in names}
    assert {one.name for one in DEVICES if one.manufacturer == "NVIDIA"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("asked", "memory"),
    [
        (Accelerator("A100", memory_gb="40GB"), 40),
        (Accelerator("H100", form_factor="NVL"), 94),
        (Accelerator("A100", mig="1g.5gb"), 40),
        (Accelerator("A100", mig="1g.10gb"), 80),
        (Accelerator("B200", memory_gb=180), 192),
        (Accelerator("T4"), 16),
    ],
)
def test_the_memory_follows_from_what_is_stated(asked: Accelerator, memory: float) -> None:
    """The first variant that meets all that is stated is meant."""
    assert memory == asked.memory_gb
    assert f"{memory}GB" == asked.memory


@pytest.mark.parametrize("one", DEVICES, ids=lambda one: one.name)
def test_a_name_means_any_memory_and_a_factory_the_usual_one(one: Device) -> None:
    """A name as text takes every variant; called, the factory takes one: the usual, or the one that is stated."""
    offers = {made.memory_gb: recognise(one.name, memory_gb=made.memory_gb) for made in one.variants}
    factory = getattr(accelerators, one.name)
    assert all(accelerator(one.name).accepts(offer) for offer in offers.values())
    assert [one.memory_gb] == [memory for memory, offer in offers.items() if factory().accepts(offer)]
    for stated in offers:
        asked = (accelerator(f"{one.name}-{stated:g}GB"), factory(memory=stated))
        assert all([stated] == [memory for memory, offer in offers.items() if one.accepts(offer)] for one in asked)


def test_a_factory_keeps_to_the_form_factor() -> None:
    """The usual memory is that of the form factor, and a name takes any memory that it has in it."""
    nvl, plain = recognise("H100 NVL"), recognise("H100 SXM", memory_gb=94)
    assert (94, 80) == (accelerators.H100(form_factor="NVL").memory_gb, accelerators.H100(form_factor="SXM").memory_gb)
    assert accelerators.H100(form_factor="NVL").accepts(nvl)
    assert accelerator("H100-NVL").accepts(nvl)
    assert accelerator("H100-SXM").accepts(plain)
    assert not accelerators.H100(form_factor="SXM").accepts(plain)


def test_facts_come_from_the_catalogue() -> None:
    """Maker and generation are known without being stated."""
    assert ("NVIDIA", "Hopper") == (Accelerator("H100").manufacturer, Accelerator("H100").architecture)


@pytest.mark.parametrize(
    ("given_name", "near"), [("H1000", "H100"), ("RTX 4095", "RTX_4090"), ("A100O", "A100"), ("Traniium2", "Trainium2")]
)
def test_an_unknown_name_offers_the_nearest(given_name: str, near: str) -> None:
    """The error names the parameter, the value, the nearest known names and the way around."""
    with pytest.raises(ConfigError, match=rf"accelerator=.*{given_name}.*Did you mean .*{near}.*Custom\("):
        accelerator(given_name)


def test_a_name_like_no_other_is_sent_to_the_list() -> None:
    """Where nothing is near, the error says where the names are."""
    with pytest.raises(ConfigError, match=r"gpu='quantum'.*dir\(sky.accelerators\)"):
        accelerator("quantum", "gpu")


@pytest.mark.parametrize("value", [5, 0.5, ["H100"], True, b"H100"])
def test_what_is_neither_text_nor_value_is_refused(value: object) -> None:
    """The error shows how to write one."""
    with pytest.raises(ConfigError, match=r"^accelerator must be an accelerator or its name, not .*H100:8"):
        accelerator(value)


@pytest.mark.parametrize("count", [0, -1, 1.5, math.nan, math.inf])
def test_a_count_that_can_not_be_had_is_refused(count: float) -> None:
    """Whole numbers and shares of one are counts."""
    with pytest.raises(ConfigError, match=r"^count=.* accelerators can't be had. Write a whole number, or a share"):
        Accelerator("H100", count=count)


@pytest.mark.parametrize("count", ["8", True, None])
def test_a_count_is_a_number(count: object) -> None:
    """Text and truth values are no counts."""
    with pytest.raises(ConfigError, match=r"^count must be a number of accelerators"):
        Accelerator("H100", count=count)  # type: ignore[arg-type]


def test_a_whole_count_is_an_int() -> None:
    """8.0 and 8 are the same wish and look the same."""
    assert int is type(Accelerator("H100", count=8.0).count)
    assert 0.5 == Accelerator("L4", count=0.5).count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "A100", "memory_gb": "44GB"}, "memory='44GB' is none of A100. Accepted: 80GB, 40GB"),
        ({"name": "T4", "form_factor": "SXM"}, r"form_factor='SXM' is none of T4. It is made as 16GB \(PCIe\)"),
        ({"name": "H100", "form_factor": "NVL", "memory_gb": 80}, "form_factor='NVL' is none of H100 with 80GB"),
        ({"name": "H100", "form_factor": "MXM"}, "form_factor='MXM' is none that Skyward knows. Accepted: SXM, PCIe"),
        ({"name": "H100", "mig": "9g.80gb"}, "mig='9g.80gb' is no MIG profile of H100. Accepted: 1g.10gb"),
        ({"name": "A100", "memory_gb": 80, "mig": "3g.20gb"}, "mig='3g.20gb' is no MIG profile of A100"),
        ({"name": "T4", "mig": "1g.5gb"}, "mig='1g.5gb' can't be had: Skyward knows no MIG profile of T4"),
        ({"name": "H100", "mig": 3}, "mig=3 is no MIG profile"),
        ({"name": "My-GPU", "custom": True, "mig": "1g.5gb"}, "needs a device of the catalogue"),
        ({"name": "", "custom": True}, "^name must be what the cloud calls the accelerator"),
        ({"name": None}, "^name must be the name of an accelerator, not None"),
    ],
)
def test_what_no_device_is_made_with_is_refused(arguments: dict[str, object], message: str) -> None:
    """The error names what is wrong and lists what there is."""
    with pytest.raises(ConfigError, match=message):
        Accelerator(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "memory", "profile", "instances"),
    [
        ("H100", "80GB", "1g.10gb", 7),
        ("H100", "80GB", "1g.20gb", 4),
        ("A100", "80GB", "2g.20gb", 3),
        ("A100", "80GB", "3g.40gb", 2),
        ("A100", "80GB", "4g.40gb", 1),
        ("H100", "80GB", "7g.80gb", 1),
        ("A100", "40GB", "1g.5gb", 7),
        ("A100", "40GB", "2g.10gb", 3),
        ("A100", "40GB", "3g.20gb", 2),
        ("A100", "40GB", "4g.20gb", 1),
        ("A100", "40GB", "1g.10gb", 4),
        ("A30", "24GB", "1g.6gb", 4),
        ("H200", "141GB", "1g.18gb", 7),
        ("B200", "180GB", "3g.90gb", 2),
    ],
)
def test_a_profile_says_how_many_workers_there_are(device: str, memory: str, profile: str, instances: int) -> None:
    """Each partition of each device is a worker, and the same profile can mean more on a larger device."""
    asked = Accelerator(device, memory_gb=memory, mig=profile, count=2)
    assert (instances, 2 * instances) == (asked.partitions, asked.workers)
    assert instances == mig_profiles(device, memory)[profile]


def test_without_a_profile_each_device_is_one_worker() -> None:
    """A share of a device is still a worker."""
    assert (1, 8) == (Accelerator("H100").partitions, Accelerator("H100", count=8).workers)
    assert 1 == Accelerator("L4", count=0.5).workers


def test_profiles_of_the_usual_memory_are_listed() -> None:
    """The memory may stand in the name, or be left out."""
    assert mig_profiles("A100-40GB") == mig_profiles("A100", 40) != mig_profiles("A100")
    with pytest.raises(ConfigError, match=r"name='A1000' is no accelerator"):
        mig_profiles("A1000")


@pytest.mark.parametrize(
    ("asked", "offered", "accepted"),
    [
        ("A100", recognise("NVIDIA A100-SXM4-80GB"), True),
        ("A100", recognise("NVIDIA A100-SXM4-40GB"), True),
        ("A100-80GB", recognise("NVIDIA A100-SXM4-40GB"), False),
        ("A100", recognise("A100", memory_gb=20), False),
        ("A100", recognise("A100", memory_gb=96), True),
        ("A100", recognise("A100"), True),
        ("A100-40GB", recognise("A100", memory_gb=39.6), True),
        ("A100-40GB", recognise("A100", memory_gb=80), False),
        ("H100", recognise("H100 NVL", memory_gb=94), True),
        ("H100-80GB", recognise("H100 NVL", memory_gb=94), False),
        ("H100-SXM", recognise("H100 PCIe"), False),
        ("H100-SXM", recognise("H100"), True),
        ("H100", recognise("H100", memory_gb=60), False),
        ("H100:4", recognise("H100", count=8), True),
        ("H100:8", recognise("H100", count=4), False),
        ("L4", recognise("L4", count=0.25), False),
        ("B200", recognise("NVIDIA B200", memory_gb=180), True),
        ("GB200", recognise("GB200", memory_gb=186), True),
        ("H100", recognise("H200"), False),
        ("A100-3g.20gb", recognise("A100", memory_gb=40), True),
        ("A100-3g.20gb", recognise("A100", memory_gb=80), False),
    ],
)
def test_an_offer_is_matched(asked: str, offered: Accelerator, accepted: bool) -> None:
    """Stated memory has to be that memory, else any that is made will do, or more; what is not told is right."""
    assert accepted is accelerator(asked).accepts(offered)


def test_a_custom_one_matches_by_name() -> None:
    """Case and separators make no difference, and its memory is the least that will do."""
    asked = Accelerator("My-GPU", memory_gb=48, custom=True)
    assert asked.accepts(recognise("my gpu", memory_gb=47.5))
    assert not asked.accepts(recognise("my gpu", memory_gb=24))
    assert not asked.accepts(recognise("your gpu", memory_gb=48))
    assert (None, None) == (asked.manufacturer, asked.architecture)


@settings(deadline=None)
@given(st.text(min_size=1).filter(str.strip), st.one_of(st.none(), st.floats(min_value=1, max_value=1000)))
def test_whatever_a_cloud_says_is_recognised(name: str, memory: float | None) -> None:
    """A listing with a device of tomorrow in it is still a listing."""
    assert recognise(name, count=2, memory_gb=memory).name


@settings(deadline=None)
@given(st.text())
def test_any_text_is_an_accelerator_or_a_config_error(text: str) -> None:
    """No text makes the parser fail in another way."""
    try:
        value: object = accelerator(text)
    except ConfigError as error:
        value = error
    assert isinstance(value, Accelerator | ConfigError)


@pytest.mark.parametrize(
    ("name", "nvidia", "trainium"),
    [
        ("H100", True, False),
        ("H100:8", True, False),
        ("NVIDIA GeForce RTX 4090", True, False),
        ("MI300X", False, False),
        ("Trainium2", False, True),
        ("trn1", False, True),
        ("Inferentia2", False, False),
        ("TPUv5p", False, False),
        ("nobody's", False, False),
    ],
)
def test_makers_are_told_by_name(name: str, nvidia: bool, trainium: bool) -> None:
    """A name in any spelling is enough, and an unknown one is no maker's."""
    assert (nvidia, trainium) == (is_nvidia(name), is_trainium(name))


def test_makers_are_told_of_values() -> None:
    """Values are accepted where names are."""
    assert is_nvidia(Accelerator("H100"))
    assert is_trainium(Accelerator("Trainium2"))


def test_older_ways_to_write_one_mean_the_same() -> None:
    """`Accelerator.NVIDIA.H100` and `AcceleratorSpec.NVIDIA.H100` are the factories of the catalogue."""
    assert AcceleratorSpec is Accelerator
    assert Accelerator("H100", count=8, memory_gb=80) == Accelerator.NVIDIA.H100(count=8)
    assert Accelerator("H100", mig="3g.40gb") == AcceleratorSpec.NVIDIA.H100(mig="3g.40gb")
    assert "Trainium2" == AcceleratorSpec.AWS.Trainium(version=2).name
    assert "Inferentia2" == AcceleratorSpec.AWS.Inferentia(version=2).name
    assert "TPUv5p" == AcceleratorSpec.Google.TPU(version="v5p").name
    assert accelerator("v5p-8") == AcceleratorSpec.Google.TPUSlice("v5p-8")
    assert "MI300X" == AcceleratorSpec.AMD.MI("300X").name


def test_it_is_a_value() -> None:
    """It is hashable, survives pickling, and is checked again when it is changed."""
    asked = Accelerator("A100", memory_gb=40, count=8)
    assert asked == pickle.loads(pickle.dumps(asked))
    assert {asked: 1}[Accelerator("A100", memory_gb=40, count=8)] == 1
    assert Accelerator("A100", memory_gb=40, count=4) == attrs.evolve(asked, count=4)
    with pytest.raises(ConfigError, match=r"no MIG profile of A100"):
        attrs.evolve(asked, mig="1g.80gb")


def test_several_slices_are_refused() -> None:
    """A node is part of one slice."""
    with pytest.raises(ConfigError, match=r"asks for several slices"):
        accelerator("v5p-8:2")
