"""Each defect that is planted in the provider of the page is found by the check that is for it."""

from __future__ import annotations

import logging
import re
import secrets
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve, field, frozen

from skyward.errors import SkywardError
from skyward.hookspecs import Instance, InstanceState, hookimpl
from skyward.model.spec.spec import Spec
from skyward.testing.conformance import ProviderConformance
from skyward.testing.conformance.trial import Trial
from tests.clouds.heron import provider as written
from tests.clouds.heron.cloud import KEY, Cloud
from tests.clouds.heron.heron_switches import switches
from tests.seeds import some

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(90)]

Patch = pytest.MonkeyPatch
CHECKS = ProviderConformance()


@frozen
class Defect:
    """
    One defect.

    Args:
        name: What it is.
        check: The check that finds it.
        message: What that says.
        plant: Plants it.
        hosts: Whether real hosts are needed to find it.
    """

    name: str
    check: Callable[..., None]
    message: str
    plant: Callable[[Patch], None]
    hosts: bool = field(default=False, kw_only=True)


def lists(**change: Callable[[Instance], Any]) -> Callable[[Patch], None]:
    """Have instances be described with other fields."""

    def plant(patch: Patch) -> None:
        right = written.instance_of

        def wrong(row: Any, key: Any = None) -> Instance:
            made: Instance = right(row, key)
            return evolve(made, **{name: how(made) for name, how in change.items()})

        patch.setattr(written, "instance_of", wrong)

    return plant


def asks(**change: Any) -> Callable[[Patch], None]:
    """Have launches be asked for with other fields."""

    def plant(patch: Patch) -> None:
        right = written.body_of
        patch.setattr(written, "body_of", lambda request, node: {**right(request, node), **_called(change)})

    return plant


def _called(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value() if callable(value) else value for name, value in change.items()}


def both(*plants: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """Plant several."""

    def plant(patch: Patch) -> None:
        for each in plants:
            each(patch)

    return plant


def states(**change: InstanceState) -> Callable[[Patch], None]:
    """Have words for states mean something else."""
    return lambda patch: patch.setattr(written, "STATES", {**written.STATES, **change})


def facts(**change: Any) -> Callable[[Patch], None]:
    """Have other facts."""

    def plant(patch: Patch) -> None:
        right = written.Heron.skyward_facts
        patch.setattr(written.Heron, "skyward_facts", hookimpl(lambda self: evolve(right(self), **change)))

    return plant


def hook(name: str, wrong: Callable[..., Any]) -> Callable[[Patch], None]:
    """Have another hook."""
    return lambda patch: patch.setattr(written.Heron, name, hookimpl(wrong))


def account(name: str, wrong: Callable[..., Any]) -> Callable[[Patch], None]:
    """Have the account do something else."""
    return lambda patch: patch.setattr(written.Account, name, wrong)


def unexplained(code: str) -> Callable[[Patch], None]:
    """Have no row for a code in the table of errors."""

    def plant(patch: Patch) -> None:
        errors = {kind: word for kind, word in written.ERRORS.items() if word != code}
        rows = [written.kit.ErrorRow(kind=kind, code=(word,)) for kind, word in errors.items()]
        patch.setattr(written, "SERVICE", evolve(written.SERVICE, meaning=written.kit.meaning_by(rows)))

    return plant


def offers(**change: Any) -> Callable[[Patch], None]:
    """Sell other things."""

    def plant(patch: Patch) -> None:
        right = written.offers_of
        patch.setattr(written, "offers_of", lambda row: [evolve(offer, **change) for offer in right(row)])

    return plant


async def first_page(self: Any, path: str, key: str, read: Any) -> Any:
    """Read a page of a list."""
    return [read(row) for row in (await self.api.get(path))[key]]


async def never_renew(self: Any, ids: Any, expires_at: float) -> None:
    """Write no expiry."""


async def order_only(self: Any, ids: Any) -> None:
    """Order that machines are deleted, and wait for nothing."""
    for name in ids:
        await self.api.delete(f"/v1/machines/{name}", also=(404,))


async def first_only(self: Any, ids: Any) -> None:
    """Terminate one of several."""
    await right_terminate(self, ids[:1])


async def all_of_the_account(self: Any, ids: Any) -> None:
    """Terminate whatever there is."""
    await right_terminate(self, [*await self.rows()])


async def swallowed(self: Any, ids: Any) -> None:
    """Take an error for an end."""
    for name in ids:
        try:
            await self.api.call("DELETE", f"/v1/machines/{name}", also=(404, 500))
        except SkywardError as error:
            logging.getLogger("heron").info("not deleted: %s", error)


async def nothing_if_it_fails(self: Any) -> Any:
    """Take a list that fails for an empty one."""
    try:
        return await right_rows(self)
    except SkywardError:
        return {}


async def blocking(self: Any) -> Any:
    """Ask in the event loop's own thread."""
    request = urllib.request.Request(f"{self._account.url}/v1/sizes", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: ASYNC210  # the defect
        answer.read()
    return await right_offers(self)


async def anybody(self: Any) -> None:
    """Check nothing."""


async def no_offers_if_it_fails(self: Any) -> Any:
    """Take an error for a cloud that sells nothing."""
    try:
        return await right_offers(self)
    except SkywardError:
        return []


async def told_in_the_log(self: Any, request: Any) -> Any:
    """Log what is asked for, the pool's private key as well."""
    logging.getLogger("heron").debug("launching with %s", request.cluster.key.private)
    return await right_launch(self, request)


async def all_or_error(self: Any, request: Any) -> Any:
    """Rent one by one, and forget those before the first that fails."""
    made = []
    for node in request.nodes:
        answer = await self._account.api.post("/v1/machines", json=written.body_of(request, node), once=False)
        made.append(written.instance_of(answer["machine"], request.cluster.key))
    return made


def own_expiry(patch: Patch) -> None:
    """Write an expiry that nothing can renew."""
    patch.delattr(written.Heron, "skyward_renew")
    right = written.body_of

    def body_of(request: Any, node: int) -> Any:
        body = right(request, node)
        return {**body, "labels": {**body["labels"], "skyward-expires": "1900000000"}}

    patch.setattr(written, "body_of", body_of)


right_terminate, right_rows = written.Account.terminate, written.Account.rows
right_offers, right_launch = written.Heron.skyward_offers, written.Heron.skyward_launch

IDENTITY = CHECKS.test_an_instance_proves_its_identity
SEVERAL = CHECKS.test_several_instances_are_distinct
OFFERED = CHECKS.test_an_instance_is_as_offered
LISTED = CHECKS.test_instances_are_found_in_the_account
CONFIRMED = CHECKS.test_termination_is_confirmed
PAGES = CHECKS.test_all_pages_of_a_list_are_read


def _address(**change: Any) -> Callable[[Instance], Any]:
    return lambda made: made.address and evolve(made.address, **change)


DEFECTS = (
    Defect("no host key", IDENTITY, "needs host_key= or fingerprints=", lists(address=_address(fingerprints=()))),
    Defect(
        "another fingerprint",
        IDENTITY,
        "IS NOT THE EXPECTED ONE",
        lists(address=_address(fingerprints=("B" * 43,))),
        hosts=True,
    ),
    Defect("another key is let in", IDENTITY, "refuses the login", asks(ssh_key="ssh-ed25519 AAAA me"), hosts=True),
    Defect(
        "no first-boot deadline",
        CHECKS.test_an_instance_without_a_client_terminates_itself,
        "terminated itself",
        asks(user_data=""),
        hosts=True,
    ),
    Defect("only the first page of lists read", PAGES, "lists all of", account("pages", first_page)),
    Defect(
        "failed shown as pending",
        CHECKS.test_a_failed_instance_is_not_pending,
        "which failed, is neither",
        states(failed=InstanceState.PENDING),
    ),
    Defect(
        "reclaimed shown as running",
        CHECKS.test_a_reclaimed_instance_is_not_running,
        "which was reclaimed",
        states(reclaimed=InstanceState.RUNNING),
    ),
    Defect("an expiry that is not renewed", LISTED, "the later expiry", hook("skyward_renew", never_renew)),
    Defect("an expiry that cannot be renewed", LISTED, "cannot put off", own_expiry),
    Defect("end told before it is confirmed", CONFIRMED, "was still billed", account("terminate", order_only)),
    Defect("an error of an end swallowed", CONFIRMED, "was still billed", account("terminate", swallowed)),
    Defect("only the first of several ended", SEVERAL, "are gone after one", account("terminate", first_only)),
    Defect("others ended as well", SEVERAL, "was terminated", account("terminate", all_of_the_account)),
    Defect("no private address", SEVERAL, "has no private_ip", lists(private_ip=lambda made: None)),
    Defect("one private address for all", SEVERAL, "one private_ip", lists(private_ip=lambda made: "10.0.0.1")),
    Defect(
        "a network that isn't there",
        CHECKS.test_nodes_reach_each_other,
        "cannot reach",
        lists(private_ip=lambda made: f"240.0.0.{1 + made.node}"),
        hosts=True,
    ),
    Defect("one host told twice", SEVERAL, "have one address", lists(address=_address(host="127.0.0.1"))),
    Defect("launched_at in milliseconds", SEVERAL, "launched_at", lists(launched_at=lambda made: 1.8e12)),
    Defect(
        "a wrong end_command",
        CHECKS.test_the_end_command_ends_the_bill,
        "after it ran its end_command",
        facts(end_command=("true",)),
        hosts=True,
    ),
    Defect("no end_command", CHECKS.test_the_end_command_ends_the_bill, "names no end_command", facts(end_command=())),
    Defect(
        "blocking calls in the loop",
        CHECKS.test_slow_calls_do_not_block_the_event_loop,
        "was blocked by blocking",
        hook("skyward_offers", blocking),
    ),
    Defect(
        "no capacity error", CHECKS.test_no_capacity_is_a_capacity_error, "is a CapacityError", unexplained("sold_out")
    ),
    Defect(
        "no quota error",
        CHECKS.test_the_accounts_limit_is_a_quota_error,
        "is a QuotaError",
        unexplained("limit_reached"),
    ),
    Defect(
        "refused credentials taken for an empty market",
        CHECKS.test_refused_credentials_are_a_credentials_error,
        "pass skyward_preflight",
        both(hook("skyward_preflight", anybody), hook("skyward_offers", no_offers_if_it_fails)),
    ),
    Defect("region ignored", OFFERED, "The region of", asks(region="fjord")),
    Defect(
        "region ignored, and the wished one told",
        OFFERED,
        "in the cloud's books",
        both(asks(region="fjord"), lists(region=lambda made: None)),
    ),
    Defect("the market ignored", OFFERED, "spot=True", asks(spot=False)),
    Defect("the size ignored", OFFERED, "The instance_type of", asks(size="egret-8")),
    Defect("a price of a month", OFFERED, "by its hourly_rate", lists(hourly_rate=lambda made: made.hourly_rate * 730)),
    Defect("stock ignored", CHECKS.test_stock_is_followed, "and it is offered", offers(available=True)),
    Defect("prices ignored", CHECKS.test_prices_are_followed, "at the old", offers(spot_price=0.02)),
    Defect(
        "a token that is ignored",
        CHECKS.test_a_token_is_idempotent,
        "The same token",
        asks(request_id=lambda: secrets.token_hex(8)),
    ),
    Defect(
        "a lost answer asked for twice",
        CHECKS.test_a_lost_answer_launches_nothing_twice,
        "was repeated|after a lost answer",
        asks(request_id=lambda: secrets.token_hex(8)),
    ),
    Defect(
        "machines of a launch that failed halfway forgotten",
        CHECKS.test_a_partial_launch_returns_what_there_is,
        "billed are",
        hook("skyward_launch", all_or_error),
    ),
    Defect(
        "a list that fails taken for an empty one",
        CHECKS.test_a_failed_list_is_an_error,
        "for one without instances",
        account("rows", nothing_if_it_fails),
    ),
)


@pytest.fixture
def judge(heron: Cloud, without_hosts: None, monkeypatch: Patch) -> Iterator[Callable[[Defect], Trial]]:
    """Run a defect's check on a provider that has it; what the cloud is left with is no matter."""
    trials: list[Trial] = []

    def run(defect: Defect) -> Trial:
        heron.hosts(there=defect.hosts)
        monkeypatch.setattr(written, "LEAST_DEADLINE", 1.0)
        defect.plant(monkeypatch)
        patience = 15.0 if defect.hosts else 4.0
        with Trial(heron.provider(), [KEY], Spec(), patience, switches(heron)) as trial:
            trials.append(trial)
            defect.check(trial)
        return trial

    yield run
    monkeypatch.undo()
    heron.calm()
    for row in heron.alive():
        heron.terminate(row["id"])


@pytest.mark.parametrize("defect", some("planted defects", DEFECTS, least=1 / 3), ids=lambda each: each.name)
def test_a_defect_is_found(defect: Defect, judge: Callable[[Defect], Trial]) -> None:
    """In words that say what is wrong."""
    with pytest.raises((AssertionError, SkywardError)) as caught:
        judge(defect)
    assert re.search(defect.message, said(caught.value)), said(caught.value)


def said(error: BaseException | None) -> str:
    """Return the words of an error and of those before it: what cannot be cleaned up comes last."""
    return "" if error is None else f"{said(error.__context__)}\n{error}"


@pytest.mark.parametrize(
    "plant",
    [
        lambda patch: patch.setattr(written.Heron, "__repr__", lambda self: f"Heron(api_key={self._account.key})"),
        hook("skyward_launch", told_in_the_log),
    ],
    ids=["the key in the repr", "the pool's private key in the log"],
)
def test_a_secret_that_is_shown_is_found(plant: Callable[[Patch], None], judge: Callable[[Defect], Trial]) -> None:
    """Whichever check runs."""
    defect = Defect("a secret", CHECKS.test_an_instance_is_launched_and_terminated, "", plant)
    assert judge(defect).shown()


def test_no_two_defects_are_one() -> None:
    """Thirty and more, each of its own."""
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 30
