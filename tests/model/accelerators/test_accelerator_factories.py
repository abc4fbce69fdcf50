"""
`sky.accelerators` has a factory for each device of the catalogue.
"""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.model.accelerators import accelerator_factories as accelerators
from skyward.model.accelerators.accelerator import Accelerator, accelerator
from skyward.model.accelerators.catalogue import CATALOGUE


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_every_device_has_a_factory(name: str) -> None:
    """The factory makes what the name means, of its usual memory, and is listed."""
    factory, made = getattr(accelerators, name), CATALOGUE[name].variants
    usual = Accelerator(name, count=2, memory_gb=made[0].memory_gb, exact_memory=len(made) > 1)
    assert usual == factory(count=2)
    assert name in dir(accelerators)
    assert f"sky.accelerators.{name}" == repr(factory)


def test_arguments_say_which_one() -> None:
    """Count, memory, form factor and profile are what a factory takes, each optional."""
    assert Accelerator("A100", memory_gb=40) == accelerators.A100(memory="40GB")
    assert accelerators.A100(memory=40) == accelerators.A100(memory="40GB")
    assert Accelerator("H100", count=8, form_factor="SXM", memory_gb=80) == accelerators.H100(
        count=8, form_factor="SXM"
    )
    assert Accelerator("H100", mig="3g.40gb") == accelerators.H100(mig="3g.40gb")
    assert Accelerator("H100", memory_gb=80) == accelerators.H100(count=1, memory=None, form_factor=None, mig=None)


def test_arguments_are_given_by_name() -> None:
    """A bare number could be a count or an amount of memory."""
    with pytest.raises(TypeError, match=r"positional argument"):
        accelerators.H100(8)


@pytest.mark.parametrize("name", ["H100", "A100", "RTX_4090", "MI300X", "Trainium2", "TPUv5p"])
def test_makers_group_the_same_factories(name: str) -> None:
    """Each device is under its maker and nowhere else."""
    owners = [maker for maker in accelerators.MAKERS.values() if name in dir(maker)]
    assert [CATALOGUE[name].manufacturer] == [maker.name for maker in owners]
    assert getattr(accelerators, name) == getattr(owners[0], name)


def test_an_unknown_device_offers_the_nearest() -> None:
    """A typing error is answered with the name, for the list and for a maker."""
    with pytest.raises(AttributeError, match=r"sky.accelerators has no 'H1000'. Did you mean H100"):
        _ = accelerators.H1000
    with pytest.raises(AttributeError, match=r"sky.accelerators.NVIDIA has no 'rtx_4090'. Did you mean RTX_4090"):
        _ = accelerators.NVIDIA.rtx_4090
    with pytest.raises(AttributeError, match=r"sky.accelerators.AMD has no 'H100'"):
        _ = accelerators.AMD.H100


def test_a_factory_that_was_not_called_is_explained() -> None:
    """Parentheses are easily forgotten."""
    with pytest.raises(ConfigError, match=r"not sky.accelerators.H100. Call it, as in sky.accelerators.H100\(\)"):
        accelerator(accelerators.H100)


def test_any_other_device_can_be_named() -> None:
    """`Custom` takes name, memory and count."""
    asked = accelerators.Custom("My-GPU", memory="48GB", count=2)
    assert ("My-GPU", 48.0, 2) == (asked.name, asked.memory_gb, asked.count)
    assert accelerators.Custom("My-GPU").memory_gb is None


@pytest.mark.parametrize(
    ("made", "name", "count"),
    [
        (accelerators.Trainium(), "Trainium1", 1),
        (accelerators.Trainium(version=2, count=16), "Trainium2", 16),
        (accelerators.Inferentia(version=2), "Inferentia2", 1),
        (accelerators.TPU(version="v5p", count=4), "TPUv5p", 4),
        (accelerators.TPU(version="6e"), "TPUv6e", 1),
        (accelerators.TPUSlice("v5litepod-8"), "TPUv5e", 8),
        (accelerators.MI("300X", count=8), "MI300X", 8),
        (accelerators.MI("mi210"), "MI210", 1),
        (accelerators.MI(100), "MI100", 1),
    ],
)
def test_families_are_asked_for_by_generation(made: Accelerator, name: str, count: float) -> None:
    """A family's function gives the device of the catalogue."""
    assert (name, count) == (made.name, made.count)


def test_a_generation_that_is_none_is_answered_with_those_there_are() -> None:
    """The error lists the family."""
    with pytest.raises(ConfigError, match=r"'Trainium9' is no accelerator.*Known: Trainium1, Trainium2, Trainium3"):
        accelerators.Trainium(version=9)
    with pytest.raises(ConfigError, match=r"'MI999' is no accelerator.*Known: MI50, MI100"):
        accelerators.MI("999")


@pytest.mark.parametrize("name", ["v5p", "H100"])
def test_a_slice_has_a_size(name: str) -> None:
    """A generation alone is no slice."""
    with pytest.raises(ConfigError, match=f"name='{name}' is no slice of TPUs"):
        accelerators.TPUSlice(name)
