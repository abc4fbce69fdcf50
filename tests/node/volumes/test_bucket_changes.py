"""What others changed in a bucket is found by its listing, and what the node changed itself stays."""

from __future__ import annotations

from skyward.node.volumes.bucket_changes import Incoming, ObjectState, incoming, objects_of
from skyward.node.volumes.changes import FileState

OLD, NEW, LONGER = ObjectState(1, 5), ObjectState(1, 9), ObjectState(2, 9)
FILE = FileState(1, 5_300_000_000, 1)
NOTHING = Incoming({}, [], {}, [])


def test_a_bucket_as_it_was_is_no_work() -> None:
    """A file bears the time of its object, of which listings say whole seconds."""
    assert ObjectState.of_copy(FILE) == OLD
    assert incoming({"a": OLD}, {"a": OLD}, {"a": FILE}, set()) == NOTHING


def test_what_others_add_change_or_remove_is_found() -> None:
    """By size or time."""
    known = {"changed": OLD, "longer": OLD, "gone": OLD}
    found = {"changed": NEW, "longer": LONGER, "new": OLD}
    assert Incoming(found, ["gone"], {}, []) == incoming(known, found, dict.fromkeys(known, FILE), set())


def test_what_the_node_changed_stays() -> None:
    """Also where it was changed in the bucket, of which the user is told; or removed on either side."""
    known, files = dict.fromkeys(("both", "gone there", "gone here"), OLD), {"both": FILE, "gone there": FILE}
    found = {"both": LONGER, "gone here": OLD}
    assert NOTHING._replace(contested=["both"]) == incoming(known, found, files, known.keys())


def test_what_was_sent_from_here_is_compared_by_its_content() -> None:
    """Its time at the store is not known; another size needs no comparison."""
    known, files = {"same": None, "longer": None}, {"same": FILE, "longer": FILE}
    found = {"same": NEW, "longer": LONGER}
    assert Incoming({"longer": LONGER}, [], {"same": NEW}, []) == incoming(known, found, files, set())


def test_what_was_sent_and_is_gone_was_removed_by_others() -> None:
    """Stores list what they have taken."""
    assert NOTHING._replace(removed=["a"]) == incoming({"a": None}, {}, {"a": FILE}, set())


def test_names_in_a_listing_may_hold_anything() -> None:
    """An object is a line, whatever its name."""
    lines = ["[\n", '{"Path":"a\\nb, {c","Size":3,"ModTime":"2026-11-26T01:00:00.123456789+01:00"},\n', "]\n"]
    assert {"a\nb, {c": ObjectState(3, 1795651200)} == objects_of(lines)
