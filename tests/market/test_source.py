"""
A provider's answer is checked, put into the catalogue's words, and kept apart from that of other accounts.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from attrs import evolve

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import CredentialsError, PluginError
from skyward.hookspecs import Offer
from skyward.market.source import ask, source_of, without_arguments
from skyward.market.store import Source
from skyward.providers.local import Local
from skyward.providers.ssh import SSH
from tests.market.clouds import Cloud, gpu


def asked(sold: Any) -> list[Offer]:
    """Return what a provider is understood to sell."""
    return asyncio.run(ask(ProviderHandle(Cloud(sold=sold)), 100.0))


def source(provider: object) -> Source:
    """Return the name that the provider's offers are kept under."""
    return source_of(ProviderHandle(provider))


def test_a_provider_is_asked_for_all_it_has() -> None:
    """The spec asks for nothing, and names the provider."""
    cloud = Cloud()
    asyncio.run(ask(ProviderHandle(cloud), 100.0))
    [spec] = cloud.asked
    assert (cloud, None, None) == (spec.provider, spec.accelerator, spec.max_hourly_cost)


def test_offers_are_put_into_the_catalogue_s_words() -> None:
    """With the time they were seen, where the provider does not tell it."""
    [one, other] = asked((gpu("NVIDIA H100 80GB HBM3"), gpu("nvidia_h200", seen_at=50.0)))
    assert ("H100", 80, 100.0) == (one.accelerator_name, one.accelerator_memory_gb, one.seen_at)
    assert ("H200", 50.0) == (other.accelerator_name, other.seen_at)


@pytest.mark.parametrize(
    ("sold", "message"),
    [
        (None, "Provider 'cloud' returned None, which is no list of offers"),
        ([{"price": 1}], r"Provider 'cloud' returned \{'price': 1\}, which is no Offer"),
        ([gpu(price=float("nan"))], "Provider 'cloud' returned 'H100-box' with the price nan"),
        ([gpu(price=-1)], "Provider 'cloud' returned 'H100-box' with the price -1"),
        ([gpu(accelerator_count=1.5)], "Provider 'cloud' returned an offer that cannot be: count=1.5"),
    ],
)
def test_nonsense_is_the_provider_s_failure(sold: Any, message: str) -> None:
    """The error names the provider and what is wrong."""
    with pytest.raises(PluginError, match=message) as caught:
        asked(sold)
    assert ("cloud", "skyward_offers") == (caught.value.provider, caught.value.hook)


def test_what_a_provider_raises_goes_on_as_it_is() -> None:
    """An error of ours keeps its class."""
    with pytest.raises(CredentialsError, match="no key"):
        asked(CredentialsError("There is no key."))


def test_each_setting_makes_a_source_of_its_own() -> None:
    """Two regions, two accounts or two keys never share what they are sold."""
    base = Cloud(secret="one")
    others = [evolve(base, secret="two"), evolve(base, key="account-2"), evolve(base, regions=("r",))]
    assert 4 == len({source(one) for one in (base, *others)})
    assert source(base) == source(evolve(base, sold=[gpu()]))
    assert source(SSH(["a"])) != source(SSH(["b"]))


def test_a_source_is_the_same_in_every_process() -> None:
    """A digest has no address and no order of hashing in it."""
    script = """
import sys
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.market.source import source_of
from tests.market.clouds import Cloud
print(source_of(ProviderHandle(Cloud(secret="s", regions=("a", "b")))).digest)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert source(Cloud(secret="s", regions=("a", "b"))).digest == run.stdout.strip()


class Plain:
    """A provider's settings without a text of their own."""

    def __init__(self, region: str) -> None:
        self.region = region


def test_settings_without_a_text_count_by_what_they_hold() -> None:
    """Two values that are alike make one source, wherever they are in memory."""
    one, other, alike = (Cloud(key="k", name="cloud", secret=Plain(region)) for region in "aba")  # type: ignore[arg-type]
    assert source(one) == source(alike)
    assert source(one) != source(other)


def test_who_needs_no_arguments_is_known() -> None:
    """`sky.offers()` makes those, and no others."""
    assert (True, False) == (without_arguments(Local), without_arguments(SSH))
    assert without_arguments(lambda *args, **options: None)
