"""
What is written on a machine.
"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from skyward.model.instances.tags import Tags

WORDS = st.text(max_size=8)


@given(
    st.builds(
        Tags,
        pool_id=st.text(min_size=1, max_size=8),
        pool_name=WORDS,
        node=st.none() | st.integers(0, 10_000),
        owner=WORDS,
        client=WORDS,
        token=WORDS,
        expires_at=st.none() | st.integers(0, 2**40).map(float),
    )
)
def test_what_is_written_is_read(tags: Tags) -> None:
    """Among the tags of others."""
    assert Tags.from_strings({"Name": "web", **tags.to_strings()}) == tags


@pytest.mark.parametrize("wrong", ["", "soon", "-1", "1.5", "²"])
def test_what_others_wrote_over_ours_is_not_known(wrong: str) -> None:
    """Rather than an error that hides the machine."""
    tags = Tags.from_strings({"skyward:pool": "a1", "skyward:node": wrong, "skyward:expires": wrong})
    assert tags == Tags(pool_id="a1")


@pytest.mark.parametrize("others", [{}, {"pool": "a1"}, {"skyward:pool": ""}, {"skyward:node": "1"}])
def test_a_machine_without_a_pool_is_not_ours(others: dict[str, str]) -> None:
    """Whatever else is written on it."""
    assert Tags.from_strings(others) is None
