"""Objects of decorated classes in a worker: made once, made again where the first attempt failed, missed when lost."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cloudpickle
import pytest

import skyward as sky
from skyward.node.task import task_context
from skyward.node.worker import objects
from skyward.node.worker.objects import ObjectRecipe, call

made: list[str] = []
fails: list[BaseException] = []


@sky.cls
class Model:
    """Say how often it was made."""

    def __init__(self, name: str = "one") -> None:
        if fails:
            raise fails.pop()
        made.append(name)

    def count(self) -> int:
        return len(made)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    made.clear()
    fails.clear()
    monkeypatch.setattr(objects, "_places", {})


def recipe(*, lasts: bool = False, key: str = "k") -> ObjectRecipe:
    """Say how a model is made."""
    return ObjectRecipe(key, "Model", (cloudpickle.dumps((Model, (), {})),), lasts)


def in_task(recipe: ObjectRecipe, *, held: bool) -> Any:
    """Call a method in a task."""
    token = task_context.set_context(task_context.TaskContext(call_id=1, facts={"node": 3}, membership={}, held=held))
    try:
        return call(recipe, "count", (), {})
    finally:
        task_context.reset_context(token)


def test_threads_share_one_object() -> None:
    """Those that come while it is made wait for it."""
    ready, go_on = threading.Event(), threading.Event()

    @sky.cls
    class Slow:
        def __init__(self) -> None:
            ready.set()
            assert go_on.wait(10)

        def me(self) -> int:
            return id(self)

    slow: Any = Slow
    place = ObjectRecipe("slow", "Slow", (b"",), lasts=False)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as threads:
        # A lock does not travel: the pickle is what this test does without.
        patch.setattr(objects.pickle, "loads", lambda *_, **__: (slow, (), {}))
        found = [threads.submit(call, place, "me", (), {}) for _ in range(4)]
        assert ready.wait(10)
        go_on.set()
        assert 1 == len({each.result(10) for each in found})


def test_each_handle_has_an_object_of_its_own() -> None:
    """Also where they are made alike."""
    assert [1, 2, 2] == [call(recipe(key=key), "count", (), {}) for key in ("a", "b", "a")]


def test_a_constructor_that_fails_is_tried_again() -> None:
    """It raises as itself, with a note that names class and node."""
    fails.append(KeyError("weights"))
    with pytest.raises(KeyError) as raised:
        in_task(recipe(lasts=True), held=False)
    assert ["raised while Model(...) was made on node 3; the next call tries again"] == raised.value.__notes__
    # The client believes that something was kept here: this process knows better.
    assert 1 == in_task(recipe(lasts=True), held=True)


def test_a_lost_object_is_missed_where_that_was_asked_for() -> None:
    """Each call says so, until another object is made; otherwise it is made again."""
    for _ in range(2):
        with pytest.raises(sky.StateLostError, match=r"The Model of this worker is gone.*Make a new Model\(\.\.\.\)"):
            in_task(recipe(lasts=True), held=True)
    assert [] == made
    assert 1 == in_task(recipe(lasts=True, key="new"), held=False)
    assert 2 == in_task(recipe(), held=True)


def test_a_module_that_is_not_there_is_named() -> None:
    """With what to do."""
    stream = b"\x80\x05cnowhere_at_all\nModel\n."
    with pytest.raises(sky.SerializationError, match=r"Model cannot be made: the node has no module 'nowhere_at_all'"):
        call(ObjectRecipe("k", "Model", (stream,), lasts=False), "count", (), {})


def test_methods_bring_one_recipe_along() -> None:
    """However many of them there are, its bytes are kept once, and its large ones outside the pickle."""
    data = pickle.dumps(ObjectRecipe("shared", "Model", (bytes(100_000),), lasts=False), protocol=5)
    assert pickle.loads(data) is pickle.loads(data)


def test_what_it_is_made_with_is_its_own() -> None:
    """Also what is large may be written to."""

    @sky.cls
    class Holder:
        def __init__(self, data: bytearray) -> None:
            self.data = data

        def set(self) -> int:
            self.data[0] = 7
            return self.data[0] + len(self.data)

    made: Any = Holder
    given = bytearray(200_000)
    assert 200_007 == made(given).set.local()
    assert 0 == given[0]
