"""What every provider has to do, as tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.guardian.guardian_messages import charged, sealed
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import PluginError, SkywardError
from skyward.hookspecs import Cluster, Instance, InstanceState, LocalAddress, MachineImage, Offer, SSHAddress
from skyward.model.accelerators.accelerator import recognise
from skyward.model.spec.spec import Spec
from skyward.plan.instances.guardian_duty import Duty, RegionOpened, ender, needed, take
from skyward.testing.conformance.trial import LEASE, Rental, Trial

__all__ = ["ProviderConformance"]

SHORTEST_SECRET = 6

IMAGE_HOOKS = ("skyward_machine_images", "skyward_make_machine_image", "skyward_delete_machine_images")


class ProviderConformance:
    """
    Hold a provider to what core relies on.

    A class below it, whose name begins with `Test`, gives the provider in a fixture; the other fixtures may be given
    as well:

        class TestMyCloud(ProviderConformance):
            @pytest.fixture
            def provider(self):
                return MyCloud(api_key="sk-test")

            @pytest.fixture
            def hidden(self):
                return ["sk-test"]
    """

    @pytest.fixture
    def provider(self, request: pytest.FixtureRequest) -> Any:
        """Return the provider: that of the command line, unless a class says otherwise."""
        target = request.config.getoption("skyward_provider", None)
        if not target:
            pytest.fail("Say --skyward-provider MODULE:FACTORY, or give the fixture `provider`.", pytrace=False)
        # Late, because pytest wants to be the first to import its plugins.
        from skyward.testing.conformance.conformance_options import load

        return load(target)()

    @pytest.fixture
    def spec(self) -> Spec:
        """Return what is asked for: anything, unless a class says otherwise."""
        return Spec()

    @pytest.fixture
    def patience(self, request: pytest.FixtureRequest) -> float:
        """Return the seconds that a machine may take to run, or to be gone."""
        return float(request.config.getoption("skyward_patience", None) or 600.0)

    @pytest.fixture
    def hidden(self, provider: Any, request: pytest.FixtureRequest) -> Sequence[str]:
        """Return the texts that must never be shown: fields and variables that the command line names."""
        names: list[str] = request.config.getoption("skyward_secret", None) or []
        found = [str(getattr(provider, name, None) or os.environ.get(name) or "") for name in names]
        for name, text in zip(names, found, strict=True):
            assert len(text) >= SHORTEST_SECRET, f"{name} is no field and no variable with a text worth hiding."
        return found

    @pytest.fixture
    def trial(self, provider: Any, hidden: Sequence[str], spec: Spec, patience: float) -> Iterator[Trial]:
        """Ask the provider; in the end, nothing that it said or logged may hold what must be hidden."""
        with Trial(provider, hidden, spec, patience) as trial:
            yield trial
        assert [] == trial.shown(), "Something that must be hidden was shown."

    def test_it_tells_what_holds(self, trial: Trial, provider: Any) -> None:
        """Facts are sane, and the same whenever they are asked for."""
        facts = trial.facts
        assert facts == provider.skyward_facts(), "skyward_facts must tell the same each time."
        assert facts.name == facts.name.lower().strip(), f"The name {facts.name!r} must be in lower case."
        billed = facts.billing_granularity_s
        assert billed is None or 0 < billed <= LEASE, "billing_granularity_s is in seconds, and None for no bill."
        assert len(facts.regions) == len(set(facts.regions)), "regions names one twice."

    def test_it_can_be_used(self, trial: Trial) -> None:
        """Credentials, permissions and settings are as they have to be; all else here depends on it."""
        trial.ask("skyward_preflight", spec=trial.spec)

    def test_its_offers_are_sane(self, trial: Trial) -> None:
        """Each says what it is, where it is and what it costs, and none is there twice."""
        offers = trial.ask("skyward_offers", spec=trial.spec)
        assert offers, "skyward_offers sells nothing."
        for offer in offers:
            problem = _problem(offer, trial)
            assert not problem, f"skyward_offers: {offer!r} {problem}"
        places = [(offer.instance_type, offer.region, offer.zone) for offer in offers]
        twice = {place for place in places if places.count(place) > 1}
        assert not twice, f"skyward_offers has more than one offer for {sorted(map(str, twice))}."

    def test_what_it_does_not_sell_is_no_accident(self, trial: Trial) -> None:
        """A wish that no offer can meet gives offers that do not meet it, none, or an error of Skyward's."""
        wish = evolve(trial.spec, memory_gb=1e6)
        try:
            offers = trial.ask("skyward_offers", spec=wish)
        except SkywardError as error:
            _check_typed(error)
        else:
            assert all(isinstance(offer, Offer) for offer in offers)

    def test_a_machine_lives_and_is_gone(self, trial: Trial) -> None:
        """From open to release; whatever ends things may be called again, and for what never was."""
        with trial.rental() as rental:
            machine = rental.machine
            assert (0, trial.facts.name) == (machine.node, machine.provider), "An instance names its node and provider."
            assert rental.spot == machine.spot, "An instance says whether it may be taken back."
            _check_address(rental.running())
            _check_json(rental.infra, "skyward_open")
            rental.end(machine.id)
            if trial.facts.rents:
                trial.until(lambda: not rental.existing(), f"{machine.id} is gone after skyward_terminate")
            rental.end(machine.id)
            rental.end(_unknown(machine.id))
            rental.release()

    def test_a_token_rents_once(self, trial: Trial) -> None:
        """A launch that is repeated because its answer was lost finds what it rented."""
        with trial.rental() as rental:
            again = rental.launch()
            assert [rental.machine.id] == [machine.id for machine in again], "The same token rented twice."
            rental.running()
            if trial.facts.rents:
                assert [rental.machine.id] == [machine.id for machine in rental.existing()]

    def test_a_machine_is_found_by_its_pool(self, trial: Trial) -> None:
        """An instance is listed for its own pool and no other, with its tags, and ends with no other."""
        with trial.rental() as rental:
            running = rental.running()
            if not trial.facts.rents:
                return
            other = Rental(trial=trial, offer=rental.offer, spot=rental.spot)
            with other.opened():
                assert running.id not in [machine.id for machine in other.listed()], "Another pool lists it as well."
            there = running.id in [machine.id for machine in rental.existing()]
            assert there, f"{running.id} ended when another pool was ended and released."
            if running.tags is not None:
                _check_tags(running, rental)

    def test_a_machine_is_found_in_the_account(self, trial: Trial) -> None:
        """A client that lost its pool finds it, can put off its expiry, and ends it."""
        if not trial.has("skyward_owned"):
            return
        with trial.rental() as rental:
            rental.running()
            trial.until(lambda: _owned(rental), f"skyward_owned lists {rental.machine.id}")
            [found] = _owned(rental)
            _check_tags(found, rental)
            if trial.has("skyward_renew"):
                _check_renewal(rental)
            else:
                told = found.tags is not None and found.tags.expires_at is not None
                assert not told, "An expiry that skyward_renew cannot put off makes a pool that lives look dead."
            assert trial.has("skyward_end"), "What skyward_owned lists is ended by skyward_end, which is missing."
            trial.ask("skyward_end", instances=[found])
            trial.until(lambda: not _owned(rental), f"{found.id} is gone after skyward_end")
            trial.ask("skyward_end", instances=[found])

    def test_a_machine_image_lives_and_is_gone(self, trial: Trial) -> None:
        """Made once of a machine that runs on, listed where it fits, booted from, and deleted, also twice."""
        has = [hook for hook in IMAGE_HOOKS if trial.has(hook)]
        if not trial.facts.machine_images:
            assert not has, f"skyward_facts does not say machine_images=True, and there is {', '.join(has)}."
            return
        missing = sorted({*IMAGE_HOOKS} - {*has})
        assert not missing, f"skyward_facts says machine_images=True, and there is no {', '.join(missing)}."
        with trial.rental() as rental:
            made = _make_image(rental)
            try:
                assert rental.image_hash == made.content_hash, "A machine image says which content_hash it has."
                trial.until(lambda: _ready_image(rental), f"skyward_machine_images lists {made.id} as ready")
                assert made.id == _make_image(rental).id, "The same machine image was made twice."
                assert [made.id] == [image.id for image in _images(rental, None)], "A list of all has each image once."
                assert rental.running().id == rental.machine.id
                [image] = _images(rental, rental.cluster)
                other = Rental(trial=trial, offer=rental.offer, spot=rental.spot, machine_image=image)
                with other.opened():
                    assert other.launch(), f"No machine could be rented that boots from {image.id}."
                    _check_address(other.running())
            finally:
                trial.ask("skyward_delete_machine_images", images=[made])
            trial.until(lambda: not _images(rental, None), f"{made.id} is gone after skyward_delete_machine_images")
            trial.ask("skyward_delete_machine_images", images=[made])

    def test_what_cannot_be_rented_is_refused_by_type(self, trial: Trial) -> None:
        """A kind of machine that there is not is an error of Skyward's, where it is an error at all."""
        offer, spot = trial.ways()[0]
        rental = Rental(trial=trial, offer=evolve(offer, instance_type=f"{offer.instance_type}-none"), spot=spot)
        with rental.opened():
            try:
                rental.launch()
            except SkywardError as error:
                _check_typed(error)

    def test_it_works_in_a_guardian(self, trial: Trial, provider: Any) -> None:
        """A running machine that cannot end its own bill is ended by another process, with the provider made anew."""
        if trial.facts.rents and ender(trial.facts, InstanceState.RUNNING) == "guardian":
            with trial.rental() as rental:
                rental.running()
                _guard(rental, provider)

    def test_what_does_not_run_yet_is_ended_by_a_guardian(self, trial: Trial, provider: Any) -> None:
        """A machine that cannot end its own bill before it runs is ended by another process if it never does."""
        if trial.facts.rents and ender(trial.facts, InstanceState.PENDING) == "guardian":
            with trial.rental() as rental:
                _guard(rental, provider)

    def test_a_guardian_takes_away_what_it_does_not_know(self, trial: Trial, provider: Any) -> None:
        """A client may die before it knows what it has set up."""
        if not needed(trial.facts, LEASE):
            return
        offer, spot = trial.ways()[0]
        rental = Rental(trial=trial, offer=offer, spot=spot)
        infra = trial.ask("skyward_open", cluster=rental.cluster)
        try:
            trial.ask("skyward_release", cluster=rental.cluster, infra=None)
        except BaseException:
            trial.ask("skyward_release", cluster=rental.cluster, infra=infra)
            raise

    def test_a_pool_runs_a_function(self, trial: Trial, provider: Any) -> None:
        """The whole way: a pool of one node does its work, and leaves nothing."""
        with sky.Compute(trial.spec, options=sky.Options(console=False, logging=False)) as pool:
            info = sky.function(sky.instance_info)() >> pool
        assert trial.facts.name == info.provider
        if trial.has("skyward_owned"):
            trial.until(lambda: not _of_pool(trial, info.job_id), f"the machines of pool {info.job_id} are gone")


def _problem(offer: object, trial: Trial) -> str:
    """Return what is wrong with an offer; nothing if it is sane."""
    if not isinstance(offer, Offer):
        return "is no Offer."
    facts = trial.facts
    if offer.provider != facts.name:
        return f"must name its provider {facts.name!r}."
    if not offer.instance_type:
        return "has no instance_type."
    if facts.regions and offer.region not in facts.regions:
        return f"is in none of the regions that skyward_facts names: {', '.join(facts.regions)}."
    if offer.spot_price is not None and not facts.spot:
        return "has a spot_price, but skyward_facts says that there is no spot."
    for price in (offer.spot_price, offer.on_demand_price):
        if price is not None and not (price > 0 or (price == 0 and facts.billing_granularity_s is None)):
            return f"has the price {price!r}; a price is above zero, or None where it is not sold so."
    for name in ("vcpus", "memory_gb", "disk_gb", "accelerator_memory_gb"):
        value = getattr(offer, name)
        if value is not None and not value > 0:
            return f"has {name}={value!r}; what is not known is None."
    if (offer.accelerator_name is None) != (not offer.accelerator_count):
        return "must have a name and a count of accelerators, or neither."
    if offer.accelerator_name is not None and recognise(offer.accelerator_name).custom:
        return "has an accelerator that the catalogue does not know; skyward_accelerators can add it."
    return _json_problem(offer)


def _json_problem(value: Any) -> str:
    plain = attrs.asdict(value) if attrs.has(type(value)) else value
    try:
        json.dumps(plain, default=_as_dict)
    except (TypeError, ValueError) as error:
        return f"is nothing that JSON can hold: {error}."
    return ""


def _as_dict(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _check_json(value: Any, hook: str) -> None:
    problem = _json_problem(value)
    assert not problem, f"What {hook} returns {problem}"


def _check_typed(error: SkywardError) -> None:
    untyped = isinstance(error, PluginError)
    assert not untyped, f"{error} Raise one of the errors of skyward.errors instead."


def _check_address(machine: Instance) -> None:
    assert machine.state is InstanceState.RUNNING
    known = isinstance(machine.address, LocalAddress | SSHAddress)
    assert known, f"{machine.id} runs, and its address is {machine.address!r}."


def _check_tags(machine: Instance, rental: Rental) -> None:
    """Hold what was written on a machine against what can be read there; a cloud may have no place for all of it."""
    wanted, found = rental.request.tags_of(0), machine.tags
    assert found is not None, f"{machine.id} is listed without its tags."
    for name in ("pool_id", "pool_name", "node", "owner", "client", "token"):
        read, written = getattr(found, name), getattr(wanted, name)
        same = read == written or (name != "pool_id" and read in ("", None))
        assert same, f"The tag {name} of {machine.id} is {read!r}, and {written!r} was written."


def _check_renewal(rental: Rental) -> None:
    later, trial = float(int(rental.request.tags.expires_at or 0) + 1000), rental.trial
    ids = [rental.machine.id]
    trial.ask("skyward_renew", cluster=rental.cluster, infra=rental.infra, ids=ids, expires_at=later)

    def renewed() -> bool:
        return [later] == [machine.tags.expires_at for machine in _owned(rental) if machine.tags is not None]

    trial.until(renewed, f"skyward_owned tells the later expiry of {rental.machine.id}")
    # As `sky down` does, which has no infra: the pool's own program is to know that it is being ended.
    trial.ask("skyward_renew", cluster=rental.cluster, infra=None, ids=ids, expires_at=0.0)

    def called_off() -> bool:
        return [True] == [machine.tags.called_off for machine in rental.existing() if machine.tags is not None]

    trial.until(called_off, f"skyward_instances tells the expiry 0 of {rental.machine.id}")


def _guard(rental: Rental, provider: Any) -> None:
    """End a machine as a guardian does: with nothing but what it was sent."""
    trial = rental.trial
    opened = RegionOpened(rental.cluster, rental.infra)
    known = take(Duty(pool_id=rental.pool_id, pool_name="conformance", ttl=LEASE), opened)
    anew, duty = charged(sealed(provider, known))
    [(cluster, infra)] = duty.regions
    trial.handle = ProviderHandle(anew)

    def listed() -> bool:
        rows = trial.ask("skyward_instances", cluster=cluster, infra=infra)
        return rental.machine.id in [machine.id for machine in rows]

    made_anew = f"a provider made anew from its arguments lists {rental.machine.id}"
    trial.until(listed, f"{made_anew}, whatever its state")
    trial.ask("skyward_terminate", cluster=cluster, infra=infra, ids=[rental.machine.id])
    trial.until(lambda: not rental.existing(), f"{rental.machine.id} is gone after a guardian ended it")
    trial.ask("skyward_release", cluster=cluster, infra=infra)


def _owned(rental: Rental) -> list[Instance]:
    found = rental.trial.ask("skyward_owned")
    return [each for each in found if each.id == rental.machine.id and each.state is not InstanceState.ENDED]


def _make_image(rental: Rental) -> MachineImage:
    made: MachineImage = rental.trial.ask(
        "skyward_make_machine_image",
        cluster=rental.cluster,
        infra=rental.infra,
        instance=rental.running(),
        content_hash=rental.image_hash,
    )
    return made


def _images(rental: Rental, cluster: Cluster | None) -> list[MachineImage]:
    listed = rental.trial.ask("skyward_machine_images", cluster=cluster)
    return [image for image in listed if image.content_hash == rental.image_hash]


def _ready_image(rental: Rental) -> bool:
    states = [image.state for image in _images(rental, rental.cluster)]
    assert "failed" not in states, "The machine image could not be made."
    return states == ["ready"]


def _of_pool(trial: Trial, pool_id: str) -> list[Instance]:
    found = trial.ask("skyward_owned")
    return [
        each
        for each in found
        if each.tags is not None and each.tags.pool_id == pool_id and each.state is not InstanceState.ENDED
    ]


def _unknown(name: str) -> str:
    """Return an id that looks like another and is none."""
    last = "1" if name.endswith("0") else "0"
    return f"{name[:-1]}{last}"
