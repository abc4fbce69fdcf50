"""What every provider has to do, as tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.errors import CapacityError, QuotaError, SkywardError
from skyward.hookspecs import InstanceState, Offer
from skyward.model.spec.spec import Spec
from skyward.plan.instances.guardian_duty import ender, needed
from skyward.testing.conformance import fault_checks, pool_checks
from skyward.testing.conformance.instance_checks import (
    check_address,
    check_renewal,
    check_tags,
    check_typed,
    guard,
    images,
    make_image,
    of_pool,
    owned,
    ready_image,
    unknown,
)
from skyward.testing.conformance.rental import LEASE, Rental
from skyward.testing.conformance.switches import Switches
from skyward.testing.conformance.trial import Trial
from skyward.testing.conformance.valid_offers import check_json, offer_problem

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

        return load(target, "--skyward-provider")()

    @pytest.fixture
    def switches(self, provider: Any, request: pytest.FixtureRequest) -> Switches:
        """Return the faults that the test cloud can inject: those of the command line, else none."""
        target = request.config.getoption("skyward_switches", None)
        if not target:
            return Switches()
        from skyward.testing.conformance.conformance_options import load

        made: Switches = load(target, "--skyward-switches")(provider)
        return made

    @pytest.fixture
    def spec(self) -> Spec:
        """Return what is asked for: anything, unless a class says otherwise."""
        return Spec()

    @pytest.fixture
    def patience(self, request: pytest.FixtureRequest) -> float:
        """Return the seconds that an instance may take to run, or to be gone."""
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
    def trial(
        self, provider: Any, hidden: Sequence[str], spec: Spec, patience: float, switches: Switches
    ) -> Iterator[Trial]:
        """Yield what asks the provider; in the end, nothing that it said or logged may hold what must be hidden."""
        with Trial(provider, hidden, spec, patience, switches) as trial:
            yield trial
        assert [] == trial.shown(), "Something that must be hidden was shown."
        assert not trial.blocking, f"The event loop was blocked by {', '.join(trial.blocking)}: use asyncio.to_thread."

    def test_facts_are_valid_and_constant(self, trial: Trial, provider: Any) -> None:
        """Check that facts are valid, and the same each time."""
        facts = trial.facts
        assert facts == provider.skyward_facts(), "skyward_facts must return the same each time."
        assert facts.name == facts.name.lower().strip(), f"The name {facts.name!r} must be in lower case."
        billed = facts.billing_granularity_s
        assert billed is None or 0 < billed <= LEASE, "billing_granularity_s is in seconds, and None for no bill."
        assert len(facts.regions) == len(set(facts.regions)), "regions names one twice."

    def test_preflight_passes(self, trial: Trial) -> None:
        """Check that credentials, permissions and settings are as they have to be; all else depends on it."""
        trial.ask("skyward_preflight", spec=trial.spec)

    def test_offers_are_valid(self, trial: Trial) -> None:
        """Check that each offer says what it is, where it is and what it costs, and that none is there twice."""
        offers = trial.ask("skyward_offers", spec=trial.spec)
        assert offers, "skyward_offers sells nothing."
        for offer in offers:
            problem = offer_problem(offer, trial.facts)
            assert not problem, f"skyward_offers: {offer!r} {problem}"
        places = [(offer.instance_type, offer.region, offer.zone) for offer in offers]
        twice = {place for place in places if places.count(place) > 1}
        assert not twice, f"skyward_offers has more than one offer for {sorted(map(str, twice))}."

    def test_a_spec_without_an_offer_is_no_crash(self, trial: Trial) -> None:
        """Check that a spec that no offer meets returns offers that do not meet it, none, or an error of Skyward's."""
        wish = evolve(trial.spec, memory_gb=1e6)
        try:
            offers = trial.ask("skyward_offers", spec=wish)
        except SkywardError as error:
            check_typed(error)
        else:
            assert all(isinstance(offer, Offer) for offer in offers)

    def test_an_instance_is_launched_and_terminated(self, trial: Trial) -> None:
        """Check an instance's life from open to release; what terminates may be called again, and for unknown ids."""
        with trial.rental() as rental:
            machine = rental.machine
            assert (0, trial.facts.name) == (machine.node, machine.provider), "An instance names its node and provider."
            assert rental.spot == machine.spot, "An instance says whether it may be reclaimed."
            check_address(rental.running())
            check_json(rental.infra, "skyward_open")
            rental.end(machine.id)
            if trial.facts.rents:
                trial.until(lambda: not rental.existing(), f"{machine.id} is gone after skyward_terminate")
            rental.end(machine.id)
            rental.end(unknown(machine.id))
            rental.release()

    def test_a_token_is_idempotent(self, trial: Trial) -> None:
        """Check that a launch that is repeated with its token returns what the first one launched."""
        with trial.rental() as rental:
            again = rental.launch()
            assert [rental.machine.id] == [machine.id for machine in again], "The same token launched twice."
            rental.running()
            if trial.facts.rents:
                assert [rental.machine.id] == [machine.id for machine in rental.existing()]

    def test_instances_are_listed_by_pool(self, trial: Trial) -> None:
        """Check that an instance is listed for its own pool and no other, with its tags, and ends with no other."""
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
                check_tags(running, rental)

    def test_instances_are_found_in_the_account(self, trial: Trial) -> None:
        """Check that a client that lost its pool finds its instances, renews their expiry, and terminates them."""
        if not trial.has("skyward_owned"):
            return
        with trial.rental() as rental:
            rental.running()
            trial.until(lambda: owned(rental), f"skyward_owned lists {rental.machine.id}")
            [found] = owned(rental)
            check_tags(found, rental)
            if trial.has("skyward_renew"):
                check_renewal(rental)
            else:
                written = found.tags is not None and found.tags.expires_at is not None
                assert not written, "An expiry that skyward_renew cannot put off makes a pool that lives look dead."
            assert trial.has("skyward_end"), "What skyward_owned lists is ended by skyward_end, which is missing."
            trial.ask("skyward_end", instances=[found])
            trial.until(lambda: not owned(rental), f"{found.id} is gone after skyward_end")
            trial.ask("skyward_end", instances=[found])

    def test_a_machine_image_is_made_booted_and_deleted(self, trial: Trial) -> None:
        """Check that an image is made once, listed where it fits, booted from, and deleted, also twice."""
        has = [hook for hook in IMAGE_HOOKS if trial.has(hook)]
        if not trial.facts.machine_images:
            assert not has, f"skyward_facts does not say machine_images=True, and there is {', '.join(has)}."
            return
        missing = sorted({*IMAGE_HOOKS} - {*has})
        assert not missing, f"skyward_facts says machine_images=True, and there is no {', '.join(missing)}."
        with trial.rental() as rental:
            made = make_image(rental)
            try:
                assert rental.image_hash == made.content_hash, "A machine image says which content_hash it has."
                trial.until(lambda: ready_image(rental), f"skyward_machine_images lists {made.id} as ready")
                assert made.id == make_image(rental).id, "The same machine image was made twice."
                assert [made.id] == [image.id for image in images(rental, None)], "A list of all has each image once."
                assert rental.running().id == rental.machine.id
                [image] = images(rental, rental.cluster)
                other = Rental(trial=trial, offer=rental.offer, spot=rental.spot, machine_image=image)
                with other.opened():
                    assert other.launch(), f"No machine could be rented that boots from {image.id}."
                    check_address(other.running())
            finally:
                trial.ask("skyward_delete_machine_images", images=[made])
            trial.until(lambda: not images(rental, None), f"{made.id} is gone after skyward_delete_machine_images")
            trial.ask("skyward_delete_machine_images", images=[made])

    def test_an_unknown_type_is_refused_by_type(self, trial: Trial) -> None:
        """Check that an unknown instance type is an error of Skyward's, where it is an error at all."""
        offer, spot = trial.ways()[0]
        rental = Rental(trial=trial, offer=evolve(offer, instance_type=f"{offer.instance_type}-none"), spot=spot)
        with rental.opened():
            try:
                rental.launch()
            except SkywardError as error:
                check_typed(error)

    def test_several_instances_are_distinct(self, trial: Trial) -> None:
        """Check that instances of one launch have ids and addresses of their own, and end one by one or together."""
        if trial.facts.rents:
            pool_checks.check_several(trial)

    def test_an_instance_is_as_offered(self, trial: Trial) -> None:
        """Check that region, type, market and price of an instance are those of its offer."""
        if trial.facts.rents:
            pool_checks.check_offer_is_followed(trial)

    def test_an_instance_proves_its_identity(self, trial: Trial) -> None:
        """Check that an address pins the host key, lets the pool's key in, and refuses another host."""
        pool_checks.check_identity(trial)

    def test_nodes_reach_each_other(self, trial: Trial) -> None:
        """Check that two nodes of a pool reach each other where the facts say so."""
        pool_checks.check_network(trial)

    def test_the_end_command_ends_the_bill(self, trial: Trial) -> None:
        """Check that an instance that runs `end_command` is not billed any more."""
        pool_checks.check_end_command(trial)

    def test_an_instance_without_a_client_terminates_itself(self, trial: Trial) -> None:
        """Check that an instance has a deadline at its first boot, for a client that dies before a node is made."""
        pool_checks.check_ttl(trial)

    def test_a_guardian_terminates_running_instances(self, trial: Trial, provider: Any) -> None:
        """Check that a running instance that cannot end its own bill is terminated from another process."""
        if trial.facts.rents and ender(trial.facts, InstanceState.RUNNING) == "guardian":
            with trial.rental() as rental:
                rental.running()
                guard(trial, rental, provider)

    def test_a_guardian_terminates_pending_instances(self, trial: Trial, provider: Any) -> None:
        """Check that an instance that never runs, and cannot end its own bill, is terminated from another process."""
        if trial.facts.rents and ender(trial.facts, InstanceState.PENDING) == "guardian":
            with trial.rental() as rental:
                guard(trial, rental, provider)

    def test_a_guardian_releases_without_infra(self, trial: Trial) -> None:
        """Check that what a client set up is released although the client died before it knew of it."""
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

    def test_a_pool_runs_a_function(self, trial: Trial) -> None:
        """Check that a pool of one node does its work, and leaves nothing."""
        with sky.Compute(trial.spec, options=sky.Options(console=False, logging=False)) as pool:
            info = sky.function(sky.instance_info)() >> pool
        assert trial.facts.name == info.provider
        if trial.has("skyward_owned"):
            trial.until(lambda: not of_pool(trial, info.job_id), f"the machines of pool {info.job_id} are gone")

    # Faults that a test cloud injects.

    def test_all_pages_of_a_list_are_read(self, trial: Trial) -> None:
        """Check that lists have what is on a later page."""
        fault_checks.check_pages(trial)

    def test_no_capacity_is_a_capacity_error(self, trial: Trial) -> None:
        """Check that a launch without an instance left is a CapacityError."""
        fault_checks.check_refusal(trial, "no_capacity", CapacityError)

    def test_the_accounts_limit_is_a_quota_error(self, trial: Trial) -> None:
        """Check that a launch at the account's limit is a QuotaError."""
        fault_checks.check_refusal(trial, "no_quota", QuotaError)

    def test_refused_credentials_are_a_credentials_error(self, trial: Trial) -> None:
        """Check that refused credentials are a CredentialsError before anything is launched."""
        fault_checks.check_credentials(trial)

    def test_a_lost_answer_launches_nothing_twice(self, trial: Trial) -> None:
        """Check that a launch whose answer is lost is found again by its token."""
        fault_checks.check_lost_answer(trial)

    def test_a_partial_launch_returns_what_there_is(self, trial: Trial) -> None:
        """Check that a launch that gets fewer instances returns them all."""
        fault_checks.check_partial_launch(trial)

    def test_termination_is_confirmed(self, trial: Trial) -> None:
        """Check that skyward_terminate returns when nothing is billed any more, and never before."""
        fault_checks.check_confirmed(trial)

    def test_a_failed_instance_is_not_pending(self, trial: Trial) -> None:
        """Check that an instance that failed is listed as ending or ended, and can be terminated."""
        fault_checks.check_failed(trial)

    def test_a_reclaimed_instance_is_not_running(self, trial: Trial) -> None:
        """Check that an instance that its cloud took away is listed as ending or ended, or not at all."""
        fault_checks.check_reclaimed(trial)

    def test_a_failed_list_is_an_error(self, trial: Trial) -> None:
        """Check that a list that fails is never taken for an empty one."""
        fault_checks.check_failed_list(trial)

    def test_slow_calls_do_not_block_the_event_loop(self, trial: Trial) -> None:
        """Check that the event loop turns while a slow cloud is waited for."""
        fault_checks.check_slow(trial)

    def test_stock_is_followed(self, trial: Trial) -> None:
        """Check that an offer of which nothing is left is not available, or refused with a CapacityError."""
        fault_checks.check_stock(trial)

    def test_prices_are_followed(self, trial: Trial) -> None:
        """Check that offers have the cloud's prices of the moment."""
        fault_checks.check_price(trial)

    def test_release_leaves_nothing(self, trial: Trial) -> None:
        """Check that nothing is left of a released pool."""
        fault_checks.check_remains(trial)
