from typing import Any

import attrs
import pytest
from attrs import frozen
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.spec.allocation import Allocation
from skyward.model.spec.image import Image
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.spec import Spec


@frozen
class Cloud:
    """Stand for a provider: any value that is none of the usual mistakes."""

    region: str = ""


@frozen
class Extra:
    """Stand for a plugin."""


def extra() -> Extra:
    """Make a plugin, as the functions in `sky.plugins` do."""
    return Extra()


def test_the_defaults_are_one_node_here() -> None:
    """A spec without wishes is one node with the client's environment, ended after ten silent minutes."""
    spec = Spec()

    assert (None, None, Nodes(1), Allocation(), Image(), 600, None, ()) == (
        spec.provider,
        spec.accelerator,
        spec.nodes,
        spec.allocation,
        spec.image,
        spec.ttl,
        spec.timeout,
        spec.plugins,
    )


def test_short_spellings_become_values() -> None:
    """What is written as text, number, pair or list is held as a value."""
    spec = Spec(
        provider=Cloud(),
        accelerator="A100-40GB:2",
        nodes=(2, 8),
        memory_gb="64GB",
        disk_gb=100,
        architecture="aarch64",
        allocation=0.8,
        plugins=[Extra()],
    )

    assert Accelerator("A100", count=2, memory_gb=40) == spec.accelerator
    assert Nodes(2, max=8) == spec.nodes
    assert (64, 100) == (spec.memory_gb, spec.disk_gb)
    assert "arm64" == spec.architecture
    assert Allocation.Percent(spot=0.8) == spec.allocation
    assert (Extra(),) == spec.plugins


@pytest.mark.parametrize(
    ("written", "kept"),
    [("x86_64", "x86_64"), ("amd64", "x86_64"), ("X86_64", "x86_64"), ("arm64", "arm64"), ("AArch64", "arm64")],
)
def test_an_architecture_has_one_name(written: Any, kept: str) -> None:
    """Clouds and systems call the two by several names."""
    assert kept == Spec(architecture=written).architecture


def test_it_is_a_hashable_value() -> None:
    """Equal specs are one in a set, if provider and plugins are hashable."""
    assert 1 == len({Spec(provider=Cloud(), plugins=[Extra()]), Spec(provider=Cloud(), plugins=(Extra(),))})


@pytest.mark.parametrize("ttl", [0, None, 0.0])
def test_a_disarmed_switch_is_warned_of(ttl: float | None) -> None:
    """A user who takes the dead man's switch out hears what that means."""
    (warning,) = Spec(ttl=ttl).warnings

    assert "disarms the dead man's switch" in warning


def test_an_armed_switch_needs_no_warning() -> None:
    """The default warns of nothing."""
    assert () == Spec(ttl=60).warnings


@given(
    st.sampled_from(["vcpus", "memory_gb", "disk_gb", "max_hourly_cost", "timeout", "ttl"]),
    st.floats(max_value=0, exclude_max=True) | st.just(float("nan")) | st.just(float("inf")),
)
def test_no_amount_is_negative_or_endless(name: str, value: float) -> None:
    """Amounts are finite and above zero, and the error begins with the parameter."""
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=f"^{name} must be "):
        Spec(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"provider": Cloud}, r"provider must be a value, not the class Cloud. Write sky.Cloud\(\)"),
        ({"provider": "aws"}, r"provider must be a provider such as sky.Local\(\), not 'aws'"),
        ({"provider": [Cloud(), Cloud()]}, r"one provider in a sky.Spec. .*sky.Compute\(provider=\[...\]\)"),
        ({"accelerator": "H1000"}, "H1000"),
        ({"nodes": 0}, "nodes must be a whole number of at least 1, not 0"),
        ({"nodes": (8, 2)}, r"Write nodes=\(2, 8\)"),
        ({"vcpus": 0}, "vcpus must be a finite number above zero, not 0"),
        ({"vcpus": "8"}, "vcpus must be a finite number above zero, not '8'"),
        ({"memory_gb": "lots"}, "memory_gb must be an amount of memory, not 'lots'"),
        ({"disk_gb": 0}, "disk_gb must be finite and more than zero, not 0"),
        ({"architecture": "arm46"}, 'architecture must be "x86_64" or "arm64", not \'arm46\'. Did you mean "arm64"'),
        ({"machine": ""}, "machine must not be blank"),
        ({"allocation": "spott"}, "allocation='spott'.*spot"),
        ({"allocation": 1.5}, "allocation=1.5"),
        ({"image": ["torch"]}, r"image must be a sky.Image, not \['torch'\]. Write image=sky.Image\(pip="),
        ({"image": Image}, r"image must be a sky.Image.*with brackets"),
        ({"region": 1}, "region must be text, not 1"),
        ({"max_hourly_cost": 0}, "max_hourly_cost must be a finite number above zero, not 0"),
        ({"ttl": "10m"}, "ttl must be a number of seconds, not '10m'"),
        ({"timeout": 0}, "timeout must be more than 0 seconds, not 0"),
        ({"plugins": Extra()}, r"plugins must be a list of plugins, not Extra\(\). Write plugins=\["),
        ({"plugins": "torch"}, "plugins must be a list of plugins, not 'torch'"),
        ({"plugins": [extra]}, r"extra makes one when it is called. Write extra\(\), with brackets"),
        ({"plugins": [Extra]}, r"Write Extra\(\), with brackets"),
        ({"plugins": ["torch"]}, "plugins must be a list of plugins; 'torch' is none"),
        ({"plugins": [None]}, "plugins must be a list of plugins; None is none"),
    ],
)
def test_what_no_field_takes_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each error names the parameter, the value, and what to write."""
    with pytest.raises(ConfigError, match=message):
        Spec(**arguments)


def test_a_refused_provider_keeps_its_secrets() -> None:
    """A table of settings may hold a key, so it is not shown."""
    with pytest.raises(ConfigError, match="not a dict") as caught:
        Spec(provider={"api_key": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_changed_spec_is_checked_again() -> None:
    """`attrs.evolve` runs every check, and parses once more what is parsed already."""
    spec = attrs.evolve(Spec(accelerator="H100:8", nodes=(2, 8), allocation=0.5), region="eu")

    assert (8, 8, "eu") == (spec.accelerator.count if spec.accelerator else None, spec.nodes.max, spec.region)
    with pytest.raises(ConfigError, match="nodes must be"):
        attrs.evolve(spec, nodes=0)
