"""Events are stored as plain values, and nothing in them is shown that should not be."""

from __future__ import annotations

import json

import attrs
import pytest

from skyward.model.events import event as events
from skyward.model.instances.cost_report import Receipt
from skyward.model.instances.instance import InstanceInfo
from skyward.plan.logs.event_record import LONGEST, facts_of, plain


def same(text: str) -> str:
    return text


def test_an_event_has_its_class_its_place_and_its_fields() -> None:
    """Without those that are empty."""
    info = InstanceInfo(node=3, id="i-7")
    event = events.InstanceStopping(instance_id="i-7", reason="idle", instance=info, at=0.0)
    assert {
        "event": "InstanceStopping", "node": 3, "instance": "i-7", "data": {"instance_id": "i-7", "reason": "idle"},
    } == facts_of(event, same)  # fmt: skip


def test_texts_are_cleared_and_cut() -> None:
    """Wherever they are."""
    assert "SECRET" == facts_of(events.Error(message="secret"), str.upper)["data"]["message"]
    assert LONGEST == len(facts_of(events.Error(message="x" * 2 * LONGEST), same)["data"]["message"])


def test_an_event_of_the_users_own_is_stored() -> None:
    """What it holds that is no plain value is named by its class, and never asked how it looks."""

    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    @attrs.frozen(kw_only=True)
    class Own(events.SkywardEvent):
        epoch: int
        thing: object

    assert {"event": "Own", "data": {"epoch": 3, "thing": "<Rude>"}} == facts_of(Own(epoch=3, thing=Rude()), same)


def test_a_receipt_is_opened() -> None:
    """It is stored at the end."""
    assert 2.5 == plain(Receipt(total_cost=2.5), same)["total_cost"]


@pytest.mark.parametrize("value", [1.5, True, None, ("a", 1), {"a": ("b",)}, Receipt()])
def test_what_is_plain_is_json(value: object) -> None:
    """As it is, or in lists and objects."""
    assert json.loads(json.dumps(plain(value, same))) == plain(value, same)
