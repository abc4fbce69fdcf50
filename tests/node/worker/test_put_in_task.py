"""What a task puts stays in the memory of its node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skyward.errors import RefError, SerializationError
from skyward.link.frames import Kind, encode
from skyward.link.payload_making import dump
from skyward.link.payload_parts import Place
from skyward.link.refs import HERE
from skyward.link.segment import write_segment
from skyward.node.data.node_store import NodeStore
from skyward.node.worker import put_in_task
from skyward.node.worker.put_in_task import put_here


def test_results_name_it_each_by_itself() -> None:
    """None has its bytes."""
    ref = put_here({"array": np.ones(1 << 20)}, data=True)
    names = set()
    for _ in range(2):
        payload = dump([ref, (ref,)], data=True, refs=HERE)
        assert len(payload.inline) < 1000
        assert payload.segment is None
        [part] = [part for part in payload.parts if part.place == Place.THERE]
        names.add(part.digest)
        assert payload.size < 1000
    assert len(names) == 2
    assert ref.get()["array"].sum() == 1 << 20


def test_what_is_put_inside_another_is_a_part_of_it() -> None:
    """As at the client."""
    inner = put_here([1, 2], data=False)
    assert {"inner": [1, 2]} == put_here({"inner": inner}, data=False).get()


def test_events_and_arguments_hold_no_refs_of_a_node() -> None:
    """They go where no Ref can be made of one."""
    with pytest.raises(RefError):
        dump(put_here(1, data=True), data=True)


@pytest.mark.parametrize(("free", "fits"), [(None, True), (1 << 40, True), (65 << 20, False)])
def test_memory_that_is_not_free_is_not_taken(free: int | None, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node is left some for itself."""
    monkeypatch.setattr(put_in_task, "free_memory", lambda: free)
    if fits:
        assert put_here(bytes(2 << 20), data=True).nbytes > 2 << 20
    else:
        with pytest.raises(RefError, match="65 MiB are free"):
            put_here(bytes(2 << 20), data=True)


def test_what_cannot_be_pickled_is_named() -> None:
    """As for a result."""
    with pytest.raises(SerializationError, match="generator"):
        put_here({"steps": (step for step in ())}, data=True)


def test_a_node_keeps_it_until_the_client_drops_it() -> None:
    """It gives way to nothing, because it is nowhere else."""
    told: list[bytes] = []
    free: list[int] = [0]
    store = NodeStore(told.append, lambda: free[0])
    name, segment = b"n" * 32, write_segment([[b"x" * 64]])
    store.keep_put({name: segment})
    assert not store.make_room(b"o" * 32, 1 << 30)
    assert store.blob(name) is segment
    assert told == [encode(Kind.DROP, b"o" * 32)]
    store.drop(name)
    found: Any = store.blob(name)
    assert found is None
