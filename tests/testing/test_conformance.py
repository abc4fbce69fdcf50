"""Our own providers pass the checks that everybody's have to, and the checks find what is wrong."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen

import skyward as sky
from skyward.hookspecs import Instance, LaunchRequest, MachineImage, Offer, ProviderFacts, hookimpl
from skyward.model.spec.spec import Spec
from skyward.testing import ListingLag, Rehearsal, SlowApi, SlowBoot, TooManyRequests
from skyward.testing.books import Books
from skyward.testing.conformance import ProviderConformance, Switches
from skyward.testing.conformance.__main__ import main
from skyward.testing.conformance.trial import Trial
from tests.hosts import SSHD, hosts
from tests.testing.rehearsal_switches import switches

SAMPLE = Path(__file__).parents[1] / "third_party" / "skyward-sample" / "src"


class TestLocal(ProviderConformance):
    """This machine."""

    @pytest.fixture
    def provider(self) -> sky.Local:
        """Give it."""
        return sky.Local()


class TestRehearsal(ProviderConformance):
    """The rehearsal cloud on a good day."""

    @pytest.fixture
    def provider(self, books: str) -> Rehearsal:
        """Give it, with books of its own."""
        return Rehearsal(directory=books)

    @pytest.fixture
    def switches(self, provider: Rehearsal) -> Switches:
        """Give its faults."""
        return switches(provider)


class TestGuarded(ProviderConformance):
    """The rehearsal cloud whose machines cannot end their own bill."""

    @pytest.fixture
    def provider(self, books: str) -> Rehearsal:
        """Give it, with books of its own."""
        return Rehearsal(directory=books, ends_own_bill=False)

    @pytest.fixture
    def switches(self, provider: Rehearsal) -> Switches:
        """Give its faults."""
        return switches(provider)


@pytest.mark.slow
@pytest.mark.timeout(120)
class TestSlowRehearsal(ProviderConformance):
    """The rehearsal cloud on a day on which everything works and nothing is fast."""

    @pytest.fixture
    def provider(self, books: str) -> Rehearsal:
        """Give it, with books of its own."""
        slow = [SlowApi(seconds=0.02), SlowBoot(seconds=0.2), ListingLag(seconds=0.2), TooManyRequests(times=2)]
        return Rehearsal(faults=slow, directory=books)

    @pytest.fixture
    def switches(self, provider: Rehearsal) -> Switches:
        """Give its faults."""
        return switches(provider)


class TestSample(ProviderConformance):
    """A third party's."""

    @pytest.fixture
    def provider(self, books: str, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Give it, which is not installed here."""
        monkeypatch.syspath_prepend(str(SAMPLE))
        from skyward_sample.provider import SampleCloud

        return SampleCloud(books)


@pytest.mark.skipif(not Path(SSHD).exists(), reason="there is no OpenSSH server")
@pytest.mark.slow
@pytest.mark.timeout(120)
class TestSSH(ProviderConformance):
    """A machine that one has."""

    @pytest.fixture
    def provider(self) -> Iterator[sky.SSH]:
        """Run a host, and give it."""
        with hosts(1) as ([host], key):
            yield sky.SSH([f"{host.address}:{host.port}"], key=str(key), known_hosts=f"{key}.known")

    @pytest.fixture
    def hidden(self, provider: sky.SSH) -> Sequence[str]:
        """Give what is in the file of the private key."""
        return Path(provider.key or "").read_text().splitlines()[1:-1]


@frozen
class Keeping(Rehearsal):
    """The rehearsal cloud, which keeps machine images, and which a flaw makes do one thing wrong."""

    flaw: str = ""
    shelf: list[MachineImage] = field(factory=list, eq=False)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Tell what holds."""
        return evolve(super().skyward_facts(), machine_images=self.flaw != "unsaid")

    @hookimpl
    async def skyward_machine_images(self) -> Sequence[MachineImage]:
        """List what is on the shelf."""
        return list(self.shelf)

    @hookimpl
    async def skyward_make_machine_image(self, instance: Instance, content_hash: str) -> MachineImage:
        """Put an image on the shelf, unless it is there."""
        state = {"slow": "pending", "fails": "failed"}.get(self.flaw, "ready")
        written = "none" if self.flaw == "hash" else content_hash
        made = [image for image in self.shelf if image.content_hash == written and self.flaw != "twice"]
        name = f"of-{instance.id}-{len(self.shelf)}"
        fresh = MachineImage(id=name, provider="rehearsal", content_hash=written, state=state)  # type: ignore[arg-type]
        self.shelf.extend(() if made else [fresh])
        return (made or [fresh])[0]

    @hookimpl
    async def skyward_delete_machine_images(self, images: Sequence[MachineImage]) -> None:
        """Take images from the shelf."""
        if self.flaw != "stays":
            self.shelf[:] = [image for image in self.shelf if image not in images]


class TestKeeping(ProviderConformance):
    """A cloud with machine images."""

    @pytest.fixture
    def provider(self, books: str) -> Keeping:
        """Give it."""
        return Keeping(directory=books)

    @pytest.fixture
    def switches(self, provider: Keeping) -> Switches:
        """Give its faults."""
        return switches(provider)


# What is wrong with a provider is found, each by the check that is named.


@frozen
class Flawed(Rehearsal):
    """The rehearsal cloud, which a flaw makes do one thing wrong."""

    flaw: str = ""
    secret: str = "sk-0123456789"
    _rented: set[str] = field(factory=set, init=False, eq=False)

    def __repr__(self) -> str:
        return f"Flawed({self.secret!r})" if self.flaw == "repr" else "Flawed()"

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Tell what holds."""
        facts = super().skyward_facts()
        if self.flaw == "forgets":
            return evolve(facts, ends_own_bill=False)
        if self.flaw == "running":
            return evolve(facts, ends_own_bill="running")
        return evolve(facts, name="Rehearsal") if self.flaw == "name" else facts

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        """Sell what makes no sense."""
        first, *rest = await super().skyward_offers()
        changes: dict[str, Any] = {
            "price": {"spot_price": 0.0},
            "region": {"region": "atlantis"},
            "accelerator": {"accelerator_name": "Frobnicator", "accelerator_count": 1},
            "count": {"accelerator_name": "A100"},
            "memory": {"memory_gb": 0},
            "json": {"instance_type": Path("small")},
        }
        if self.flaw == "twice":
            return [first, first, *rest]
        if self.flaw == "log":
            logging.getLogger("flawed").debug("asking with key %s", self.secret)
        if self.flaw == "error":
            raise ValueError(f"bad key {self.secret}")
        return [evolve(first, **changes.get(self.flaw, {})), *rest]

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        """Rent."""
        if self.flaw == "token":
            another = secrets.token_hex(8)
            request = evolve(request, token=another, tags=evolve(request.tags, token=another))
        if self.flaw == "untyped" and request.cluster.offer.instance_type.endswith("-none"):
            raise KeyError(request.cluster.offer.instance_type)
        made = await super().skyward_launch(request)
        self._rented.update(one.id for one in made)
        return [evolve(one, node=7) if self.flaw == "node" else one for one in made]

    @hookimpl
    async def skyward_instances(self, cluster: Any) -> Sequence[Instance]:
        """List."""
        if self.flaw == "everyone":
            return self.machines()
        listed = await super().skyward_instances(cluster)
        if self.flaw == "forgets":
            return [made for made in listed if made.id in self._rented]
        if self.flaw == "running":
            # It boots at once, so that what was rented elsewhere stands for what does not run.
            return [made for made in listed if made.id in self._rented]
        return [evolve(made, address=None) if self.flaw == "address" else made for made in listed]

    @hookimpl
    async def skyward_terminate(self, cluster: Any, ids: Sequence[str]) -> None:
        """End."""
        known = {machine.id for machine in self.machines()}
        if self.flaw == "unknown" and not known.issuperset(ids):
            raise sky.SkywardError(f"There is no {ids}.")
        await super().skyward_terminate(cluster, [] if self.flaw == "stays" else ids)

    @hookimpl
    async def skyward_release(self, cluster: Any) -> None:
        """Clear away."""
        if self.flaw == "greedy":
            await super().skyward_end(self.machines())
        await super().skyward_release(cluster)

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        """List all."""
        owned = await super().skyward_owned()
        return [evolve(each, tags=None) if self.flaw == "tags" else each for each in owned]

    @hookimpl
    async def skyward_renew(self, cluster: Any, ids: Sequence[str], expires_at: float) -> None:
        """Put the expiry off."""
        if self.flaw != "renew":
            await super().skyward_renew(cluster, ids, expires_at)


ALL = ProviderConformance()
LIFE, OFFERS = ALL.test_an_instance_is_launched_and_terminated, ALL.test_offers_are_valid
GUARDED, EARLY = ALL.test_a_guardian_terminates_running_instances, ALL.test_a_guardian_terminates_pending_instances


def judged(flaw: str, check: Callable[..., None], books: str) -> list[str]:
    """Run one check on a flawed provider, and return what it showed of its secret."""
    cloud = Flawed(directory=books, flaw=flaw)
    with Trial(cloud, ["sk-0123456789"], Spec(), patience=1.0) as trial:
        arguments = (trial, cloud) if check in (ALL.test_facts_are_valid_and_constant, GUARDED, EARLY) else (trial,)
        try:
            check(*arguments)
        finally:
            cloud.clear()
        return trial.shown()


@pytest.mark.parametrize(
    ("flaw", "check", "message"),
    [
        ("name", ALL.test_facts_are_valid_and_constant, "'Rehearsal' must be in lower case"),
        ("price", OFFERS, "has the price 0.0; a price is above zero"),
        ("region", OFFERS, "in none of the regions"),
        ("accelerator", OFFERS, "accelerator that the catalogue does not know"),
        ("count", OFFERS, "a name and a count of accelerators, or neither"),
        ("memory", OFFERS, "memory_gb=0"),
        ("json", OFFERS, "nothing that JSON can hold"),
        ("twice", OFFERS, "more than one offer for .*small.*north"),
        ("node", LIFE, "names its node"),
        ("address", LIFE, "its address is None"),
        ("stays", LIFE, "still not true: the machines of pool"),
        ("forgets", GUARDED, "made again from its arguments lists"),
        ("running", EARLY, "made again from its arguments lists .*whatever its state"),
        ("token", ALL.test_a_token_is_idempotent, "launched twice"),
        ("everyone", ALL.test_instances_are_listed_by_pool, "Another pool lists it"),
        ("greedy", ALL.test_instances_are_listed_by_pool, "ended when another pool was ended"),
        ("tags", ALL.test_instances_are_found_in_the_account, "listed without its tags"),
        ("renew", ALL.test_instances_are_found_in_the_account, "still not true: skyward_owned tells the later expiry"),
        ("untyped", ALL.test_an_unknown_type_is_refused_by_type, "Raise one of the errors"),
    ],
)
def test_flaws_are_found(flaw: str, check: Callable[..., None], message: str, books: str) -> None:
    """By the check that is for it, in words that say what to do."""
    with pytest.raises(AssertionError, match=message):
        judged(flaw, check, books)


def test_a_check_ends_no_other_pools_machine(books: str) -> None:
    """Whatever a provider lists that forgets to look for the pool's tag."""
    cloud = Flawed(directory=books, flaw="everyone")
    with Trial(cloud, [], Spec(), patience=1.0) as trial, trial.rental() as rental:
        with trial.rental() as other:
            assert [other.machine.id] == [machine.id for machine in other.existing()]
        assert [rental.machine.id] == [machine.id for machine in cloud.machines()]


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("unsaid", "does not say machine_images=True, and there is skyward_machine_images"),
        ("hash", "says which content_hash it has"),
        ("slow", "still not true: skyward_machine_images lists of-.* as ready"),
        ("fails", "could not be made"),
        ("twice", "made twice"),
        ("stays", "still not true: of-.* is gone after skyward_delete_machine_images"),
    ],
)
def test_flaws_of_machine_images_are_found(flaw: str, message: str, books: str) -> None:
    """By the check that is for them."""
    cloud = Keeping(directory=books, flaw=flaw)
    with Trial(cloud, [], Spec(), patience=1.0) as trial:
        with pytest.raises(AssertionError, match=message):
            ALL.test_a_machine_image_is_made_booted_and_deleted(trial)
        cloud.clear()


def test_ending_what_is_not_known_has_to_be_harmless(books: str) -> None:
    """An error there is found as the error that it is."""
    with pytest.raises(sky.SkywardError, match="There is no"):
        judged("unknown", LIFE, books)


@pytest.mark.parametrize(("flaw", "shown"), [("", 0), ("repr", 3), ("log", 1)])
def test_secrets_are_found(flaw: str, shown: int, books: str) -> None:
    """In the provider's text, that of a spec with it, and in the log; and told without themselves."""
    found = judged(flaw, OFFERS, books)
    assert shown == len(found)
    assert not [text for text in found if "sk-0123456789" in text or "*****" not in text]


def test_secrets_in_errors_are_found(books: str) -> None:
    """A text that reaches the user."""
    cloud = Flawed(directory=books, flaw="error")
    with Trial(cloud, [cloud.secret], Spec(), patience=1.0) as trial:
        with pytest.raises(sky.PluginError):
            OFFERS(trial)
        assert trial.shown()


def test_what_fails_is_ended_all_the_same(books: str) -> None:
    """A check that breaks off leaves no machine."""
    cloud = Rehearsal(directory=books)
    with Trial(cloud, [], Spec(), patience=5.0) as trial:
        with contextlib.suppress(InterruptedError), trial.rental() as rental:
            assert [rental.machine.id] == [machine.id for machine in cloud.machines()]
            raise InterruptedError
        assert [] == cloud.machines()
        assert len(Books(books).machines()) == 1


@pytest.mark.slow
def test_the_command(books: str, tmp_path: Path) -> None:
    """It finds a provider in the working directory, takes pytest's options, and its status says how it went."""
    (tmp_path / "mine.py").write_text(f"""
import skyward.testing

def cloud():
    return skyward.testing.Rehearsal(directory={books!r})
""")

    def run(target: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "skyward.testing.conformance", target, "--skyward-secret", "MINE", "-q"]
        environment = {**os.environ, "MINE": "sk-0123456789"}
        return subprocess.run(
            [*command, "-k", "facts or offers_are"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    good, wrong = run("mine:cloud"), run("mine:clod")
    assert (0, "2 passed, 32 deselected") == (good.returncode, good.stdout.splitlines()[-1].partition(" in ")[0])
    assert (4, True) == (wrong.returncode, "has no attribute 'clod'" in wrong.stderr)


def test_the_command_without_a_provider(capsys: pytest.CaptureFixture[str]) -> None:
    """It says how it is used."""
    assert [2, 2] == [main([]), main(["-q"])]
    assert 2 == capsys.readouterr().err.count("MODULE:FACTORY")
