"""An order of a volume travels as JSON, and shows no key."""

from __future__ import annotations

import json

import pytest

from skyward.errors import ProtocolError
from skyward.node.volumes.volume_order import VolumeOrder

ORDER = VolumeOrder(
    bucket="b-1", prefix="a/", mount="/d", endpoint="http://h:1", region="x", access_key="k", secret_key="hidden"
)


def test_it_arrives_as_it_was() -> None:
    """Keys among it."""
    assert VolumeOrder.from_dict(json.loads(json.dumps(ORDER.to_dict()))) == ORDER


def test_no_repr_shows_a_key() -> None:
    """As logs and tracebacks would."""
    assert "hidden" not in repr(ORDER)


def test_what_lacks_something_is_refused() -> None:
    """It comes from a client of another version."""
    with pytest.raises(ProtocolError, match="lacks 'bucket'"):
        VolumeOrder.from_dict({"mount": "/d"})
