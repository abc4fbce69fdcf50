"""Editors and `help` show each keyword of a pool, with its default."""

from __future__ import annotations

import inspect
import pydoc
import re

from attrs import evolve

import skyward as sky
from skyward.model.fields.keywords import PoolKeywords
from skyward.plan.config.signature import LEFT_OUT


def test_a_pool_shows_each_of_its_keywords() -> None:
    """In the order of their table, after specs, name and options."""
    shown = inspect.signature(sky.Compute).parameters
    assert [*PoolKeywords.__annotations__] == [*shown][3:]
    assert {parameter.kind for parameter in shown.values()} == {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
    }


def settings(pool: sky.Compute) -> tuple[object, object]:
    """Return what a pool was given, whether its workers were described by themselves or not."""
    made = pool._request
    return made.specs, evolve(made.options, worker=made.options.workers)


def test_defaults_are_those_that_hold() -> None:
    """A pool that is given one is the one that is given none."""
    shown = inspect.signature(sky.Compute).parameters
    assert (shown["nodes"].default, shown["allocation"].default) == (1, "spot-if-available")
    given = {name: one.default for name, one in shown.items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
    for name, default in given.items():
        if default is not LEFT_OUT:
            assert settings(sky.Compute(**{name: default})) == settings(sky.Compute())


def test_help_begins_with_what_most_pools_need() -> None:
    """The signature, and then the keywords that come first in use."""
    text = pydoc.plain(pydoc.render_doc(sky.Compute))
    # Pythons differ in the quotes around the type.
    signature = re.search(r"nodes: \S+ = 1\b", text)
    assert signature
    assert signature.start() < text.index("Those that most pools need") < text.index("max_hourly_cost` and")
