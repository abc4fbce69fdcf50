"""
Providers are asked side by side, as rarely as they allow, and one that fails is no other's trouble.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import AllProvidersFailedError, ConfigError, CredentialsError, PluginError
from skyward.market import handles, repository
from skyward.market.repository import Offers
from tests.market.clouds import Cloud, gpu


class Meeting:
    """A place where a number of providers wait for each other, so that they pass only if asked at once."""

    def __init__(self, number: int) -> None:
        self.missing = number
        self.met: asyncio.Event | None = None

    async def __call__(self) -> None:
        self.met = self.met or asyncio.Event()
        self.missing -= 1
        if not self.missing:
            self.met.set()
        await asyncio.wait_for(self.met.wait(), 20)


def test_providers_are_asked_side_by_side() -> None:
    """Three that only answer once all three are asked do answer."""
    meeting = Meeting(3)
    clouds = [Cloud(name=name, sold=[gpu(provider=name)], meanwhile=meeting) for name in "abc"]
    assert 3 == sky.offers(clouds).select().count()


def test_what_is_new_enough_is_not_asked_again() -> None:
    """Not by the same repository, and not by another one of the same providers."""
    cloud = Cloud(sold=[gpu()])
    offers = sky.offers([cloud])
    assert (1, 1) == (offers.select().count(), offers.accelerator("H100").count())
    assert 1 == sky.offers(cloud).select().count()
    assert 1 == len(cloud.asked)


def test_what_may_not_be_kept_is_asked_each_time() -> None:
    """A provider's own time to live counts."""
    sold = [gpu()]
    cloud = Cloud(sold=sold, ttl=0)
    offers = sky.offers([cloud])
    assert 1 == offers.select().count()
    sold.append(gpu("A100"))
    assert 2 == offers.select().count()


def test_what_is_older_than_it_may_be_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old by the clock, and also what seems to come from the future."""
    cloud = Cloud(sold=[gpu()], ttl=300)
    times = iter([1000.0, 1299.0, 1300.0, 1200.0])
    monkeypatch.setattr(repository.time, "time", lambda: next(times))
    asked = []
    for _ in range(4):
        sky.offers([cloud]).select().count()
        asked.append(len(cloud.asked))
    assert [1, 1, 2, 3] == asked


def test_who_asks_at_the_same_time_shares_the_answer() -> None:
    """Several threads with one repository ask a provider once."""
    waiting = Meeting(1)
    cloud = Cloud(sold=[gpu()], meanwhile=waiting)
    offers = sky.offers([cloud])
    with ThreadPoolExecutor(4) as threads:
        counted = list(threads.map(lambda _: offers.select().count(), range(4)))
    assert [1] * 4 == counted
    assert 1 == len(cloud.asked)


def test_one_that_fails_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """Its failure is kept and warned about once, and it is not asked again at once."""
    broken = Cloud(name="broken", sold=CredentialsError("BROKEN_KEY is not set."))
    offers = sky.offers([broken, Cloud(sold=[gpu()])])
    with caplog.at_level(logging.WARNING, logger="skyward"):
        assert 1 == offers.select().count()
        assert 1 == offers.select().count()
    assert 1 == len(broken.asked)
    assert ["offers.failed provider=broken reason=BROKEN_KEY is not set."] == caplog.messages
    assert {"broken": CredentialsError} == {name: type(error) for name, error in offers.failures.items()}


def test_one_that_works_again_is_no_failure_any_more() -> None:
    """The next look asks it, where it lets itself be asked."""
    sold: list[Any] = ["nonsense"]
    offers = sky.offers([Cloud(sold=sold, ttl=0), Cloud(name="other")])
    assert 0 == offers.select().count()
    assert PluginError is type(offers.failures["cloud"])
    sold[:] = [gpu()]
    assert 1 == offers.select().count()
    assert {} == offers.failures


def test_old_offers_of_one_that_fails_are_not_sold() -> None:
    """What it sold some time ago is not what it sells now."""
    sold: list[Any] = [gpu()]
    offers = sky.offers([Cloud(sold=sold, ttl=0), Cloud(name="other")])
    assert 1 == offers.select().count()
    sold[:] = ["nonsense"]
    assert 0 == offers.select().count()


def test_if_all_fail_all_are_listed() -> None:
    """With the reason of each."""
    failing = [Cloud(name=name, sold=CredentialsError(f"{name.upper()}_KEY is not set.")) for name in "ab"]
    listed = r"what it sells: a: A_KEY is not set\. 1 other .*:\n  a: A_KEY is not set\.\n  b: B_KEY is not set\."
    with pytest.raises(AllProvidersFailedError, match=listed) as caught:
        sky.offers(failing).select().all()
    assert (("a", "A_KEY is not set."), ("b", "B_KEY is not set.")) == caught.value.reasons


def test_one_provider_is_asked_alone() -> None:
    """A query for one does not wait for the others."""
    one, other = Cloud(name="one"), Cloud(name="other")
    assert 0 == sky.offers([one, other]).provider("one").count()
    assert (1, 0) == (len(one.asked), len(other.asked))


def test_two_accounts_of_one_provider_do_not_mix() -> None:
    """Each sells what it sells, and both together sell both."""
    mine, yours = Cloud(sold=[gpu()], secret="mine"), Cloud(sold=[gpu("A100")], secret="yours")
    both = sky.offers([mine, yours])
    assert {"H100", "A100"} == {offer.accelerator_name for offer in both.select().all()}
    assert ["H100"] == [offer.accelerator_name for offer in sky.offers([mine]).select().all()]


def test_no_secret_is_written_down(cache: Path) -> None:
    """Neither a secret setting nor the key of an account is in any file of the cache."""
    secret, key = "sk-very-secret-indeed", "account-of-somebody"
    sky.offers([Cloud(sold=[gpu()], secret=secret, key=key)]).select().count()
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert any(b"H100" in path.read_bytes() for path in files)
    assert [] == [path for path in files for word in (secret, key) if word.encode() in path.read_bytes()]


def test_it_can_be_awaited() -> None:
    """Awaiting it asks the providers, and gives itself."""
    cloud = Cloud(sold=[gpu()])

    async def main() -> tuple[Offers, int, Any, int]:
        offers = await sky.offers([cloud])
        asked = len(cloud.asked)
        return offers, asked, await offers.accelerator("H100").cheapest(), await offers.select().count()

    offers, asked, cheapest, count = asyncio.run(main())
    assert (Offers, 1, "H100", 1) == (type(offers), asked, cheapest.accelerator_name, count)


def test_a_plain_use_in_a_loop_does_not_hang() -> None:
    """The looking up is done in another thread."""

    async def main() -> None:
        query = sky.offers([Cloud(sold=[gpu(), gpu("A100", 1.0)])]).select()
        assert query.cheapest().accelerator_name == "A100"
        assert [offer.on_demand_price for offer in query.all()] == [1.0, 2.0]
        assert query.count() == 2

    asyncio.run(main())


def test_without_providers_all_that_are_installed_are_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that need arguments are not, and one without credentials is left out with a warning."""

    def keyless() -> Any:
        raise CredentialsError("KEYLESS_KEY is not set.")

    table = {"Cloud": lambda: Cloud(sold=[gpu()]), "SSH": sky.SSH, "Keyless": keyless}
    monkeypatch.setattr(handles, "installed_providers", lambda: table)
    with caplog.at_level(logging.WARNING, logger="skyward"):
        offers = sky.offers()
        assert 1 == offers.select().count()
    assert ("cloud",) == offers.providers
    assert ["provider.failed provider=Keyless reason=KEYLESS_KEY is not set."] == caplog.messages
    assert ["Keyless"] == list(offers.failures)


def test_this_machine_is_always_there() -> None:
    """What is installed includes it."""
    assert "local" in sky.offers().providers


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "providers is empty. Leave it out"),
        ("locl", "must be a list of providers, not 'locl'. Write sky.Local"),
        (["xyzzy"], "not 'xyzzy'. Installed are .*Local"),
        ([sky.Local], "Local makes a provider when it is called"),
        (5, "not 5. Installed are"),
    ],
)
def test_what_is_no_provider_is_refused(given: Any, message: str) -> None:
    """The error says what to write."""
    with pytest.raises(ConfigError, match=message):
        sky.offers(given)


def test_what_has_no_hooks_is_no_provider() -> None:
    """As everywhere else."""
    with pytest.raises(PluginError, match="'object' is no plugin"):
        sky.offers([object()])
