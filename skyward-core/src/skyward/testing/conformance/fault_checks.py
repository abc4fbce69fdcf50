"""Check a provider with the faults of its test cloud."""

from __future__ import annotations

import time

from skyward.errors import CapacityError, CredentialsError, QuotaError, SkywardError
from skyward.hookspecs import Offer
from skyward.testing.conformance.instance_checks import check_typed
from skyward.testing.conformance.pool_checks import SEVERAL
from skyward.testing.conformance.rental import Rental
from skyward.testing.conformance.trial import Trial

__all__ = [
    "check_confirmed",
    "check_credentials",
    "check_failed",
    "check_failed_list",
    "check_lost_answer",
    "check_pages",
    "check_partial_launch",
    "check_price",
    "check_reclaimed",
    "check_refusal",
    "check_remains",
    "check_slow",
    "check_stock",
]

SLOW = 0.6
"""Seconds by which each call is late when the event loop is watched."""

_NOTHING_MADE = (CapacityError, QuotaError, CredentialsError)


def _first(trial: Trial, nodes: int = 1) -> Rental:
    offer, spot = trial.ways()[0]
    return Rental(trial=trial, offer=offer, spot=spot, nodes=nodes)


def check_pages(trial: Trial) -> None:
    """
    Check that all pages of lists are read.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    with trial.rental(nodes=SEVERAL) as rental:
        ids = {each.id for each in rental.fill()}
        # Of some clouds, what was launched is offered no more.
        whole = {offer.key for offer in trial.ask("skyward_offers", spec=trial.spec)}
        with trial.switched("small_pages"), trial.another_client():
            trial.until(lambda: ids <= set(rental.coming()), f"skyward_instances lists all of {', '.join(sorted(ids))}")
            if trial.has("skyward_owned"):
                listed = {each.id for each in trial.ask("skyward_owned")}
                assert ids <= listed, f"skyward_owned lacks {', '.join(sorted(ids - listed))}, of a later page."
            offers = {offer.key for offer in trial.ask("skyward_offers", spec=trial.spec)}
            assert whole == offers, f"skyward_offers lacks {', '.join(sorted(whole - offers))}, of a later page."


def check_refusal(trial: Trial, switch: str, kind: type[SkywardError]) -> None:
    """
    Check that a refused launch is an error of the right type, and leaves nothing.

    Args:
        trial: What asks.
        switch: Has launches be refused.
        kind: The type.
    """
    if not trial.facts.rents:
        return
    rental = _first(trial)
    with rental.opened(), trial.switched(switch):
        try:
            made = rental.launch()
        except kind:
            pass
        except SkywardError as error:
            raise AssertionError(f"A launch that is refused so is a {kind.__name__}, not {error!r}.") from error
        else:
            raise AssertionError(
                f"A launch that is refused so is a {kind.__name__}, and skyward_launch returned {made}."
            )
        assert not rental.existing(), "A launch that was refused left an instance."


def check_credentials(trial: Trial) -> None:
    """
    Check that wrong credentials are a CredentialsError before anything is launched.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    with trial.switched("no_login"):
        for hook in ("skyward_preflight", "skyward_offers"):
            try:
                trial.ask(hook, spec=trial.spec)
            except CredentialsError:
                return
            except SkywardError as error:
                raise AssertionError(f"Credentials that are refused are a CredentialsError, not {error!r}.") from error
    raise AssertionError("Credentials that are refused pass skyward_preflight and skyward_offers.")


def check_lost_answer(trial: Trial) -> None:
    """
    Check that a launch whose answer is lost is found again, and launches nothing twice.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    rental, before = _first(trial), set(trial.booked())
    with rental.opened():
        with trial.switched("lose_answer"):
            try:
                rental.launch()
            except _NOTHING_MADE as error:
                text = f"{error!r} says that nothing was launched; the answer was lost, and something was."
                raise AssertionError(text) from error
            except SkywardError as error:
                check_typed(error)
        trial.until(rental.coming, "skyward_instances lists the instance of a launch whose answer was lost")
        again = {each.id for each in rental.launch()}
        made = set(trial.booked()) - before
        assert made == again, f"A launch with the same token returned {again} after a lost answer; billed are {made}."
        assert 1 == len(made), f"A launch whose answer was lost was repeated: {', '.join(sorted(made))} are billed."


def check_partial_launch(trial: Trial) -> None:
    """
    Check that a launch that gets fewer instances returns those, and hides none that is billed.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    before, way = set(trial.booked()), _first(trial)
    with trial.switched("few_left", way.offer) as nodes:
        rental = Rental(trial=trial, offer=way.offer, spot=way.spot, nodes=nodes)
        with rental.opened():
            try:
                returned = {each.id for each in rental.launch()}
            except (CapacityError, QuotaError):
                returned = set()
            except SkywardError as error:
                check_typed(error)
                returned = set(rental.coming())
            made = set(trial.booked()) - before
            assert made == returned, f"A launch with fewer instances left returned {returned}; billed are {made}."


def check_confirmed(trial: Trial) -> None:
    """
    Check that skyward_terminate returns when nothing is billed any more, and never before.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    for switch in ("", "refuse_end"):
        with trial.rental() as rental:
            name = rental.running().id
            if switch:
                trial.switch(switch)()
            try:
                rental.end(name)
            except SkywardError as error:
                check_typed(error)
                if not switch:
                    raise
                if name not in str(error):
                    raise AssertionError(f"The error of an instance that still exists must name it: {error}") from error
            else:
                billed = name in trial.booked()
                assert not billed, f"skyward_terminate returned, and {name} was still billed."


def check_failed(trial: Trial) -> None:
    """
    Check that an instance that failed is not listed as pending or running, and can be terminated.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    with trial.switched("fail_boots"), trial.rental() as rental:
        name = rental.machine.id
        trial.until(lambda: name not in rental.coming(), f"{name}, which failed, is neither pending nor running")
        rental.end(name)
        if trial.switches.books is not None:
            assert name not in trial.booked(), f"{name}, which failed, is still billed after skyward_terminate."


def check_reclaimed(trial: Trial) -> None:
    """
    Check that an instance that its cloud took away is not listed as pending or running.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    ways = [way for way in trial.ways() if way[1]] or trial.ways()
    with trial.rental(ways=ways) as rental:
        name = rental.running().id
        with trial.switched("reclaim", name):
            trial.until(lambda: name not in rental.coming(), f"{name}, which was reclaimed, is not listed as running")


def check_failed_list(trial: Trial) -> None:
    """
    Check that a list that fails is an error, and never an empty list.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    with trial.rental() as rental:
        name = rental.running().id
        hooks = {"skyward_instances": rental.listed}
        if trial.has("skyward_owned"):
            hooks["skyward_owned"] = lambda: trial.ask("skyward_owned")
        for hook, listed in hooks.items():
            with trial.switched("break_lists"):
                deadline = time.monotonic() + trial.patience
                while True:
                    try:
                        found = [each.id for each in listed()]
                    except SkywardError as error:
                        check_typed(error)
                        break
                    # One that is shared for a moment is as good.
                    assert name in found, f"A list that failed was taken for one without instances by {hook}."
                    assert time.monotonic() < deadline, f"{hook} returns a list although each call that lists fails."
                    time.sleep(0.2)


def check_slow(trial: Trial) -> None:
    """
    Check that no call blocks the event loop, however slow the cloud is.

    Args:
        trial: What asks.
    """
    if trial.facts.rents:
        with trial.switched("slow", SLOW), trial.rental() as rental:
            rental.listed()
            rental.end(rental.machine.id)
    assert not trial.blocking, f"The event loop was blocked by {', '.join(trial.blocking)}: use asyncio.to_thread."


def check_stock(trial: Trial) -> None:
    """
    Check that an offer of which nothing is left is not available, or refused with a CapacityError.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    rental = _first(trial)
    with trial.switched("sell_out", rental.offer):
        now = _same(trial, rental.offer)
        if now is None or not now.available or now.price(spot=rental.spot) is None:
            return
        shown = trial.switches.shows_stock
        assert not shown, f"Nothing is left of {rental.offer.key}, as the API's list shows, and it is offered."
        with rental.opened():
            try:
                made = rental.launch()
            except CapacityError:
                return
            assert not made, f"Nothing is left of {rental.offer.key}: it is offered, and {made} came of a launch."


def check_price(trial: Trial) -> None:
    """
    Check that offers follow the cloud's prices.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    offer, spot = trial.ways()[0]
    with trial.switched("raise_price", offer):
        now = _same(trial, offer)
        assert now is not None, f"{offer.key} is offered no more since its price is another."
        assert now.price(spot=spot) != offer.price(spot=spot), (
            f"{offer.key} has another price, and is offered at the old."
        )


def _same(trial: Trial, offer: Offer) -> Offer | None:
    return next((each for each in trial.ask("skyward_offers", spec=trial.spec) if each.key == offer.key), None)


def check_remains(trial: Trial) -> None:
    """
    Check that nothing is left of a pool that was released, such as keys, networks or tags.

    Args:
        trial: What asks.
    """
    if not trial.facts.rents:
        return
    remains = trial.switch("remains")
    with trial.rental() as rental:
        rental.running()
    left = sorted(remains())
    assert not left, f"skyward_release left {', '.join(left)}."
