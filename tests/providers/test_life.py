"""What a cloud's word for a machine's state means."""

from __future__ import annotations

import pytest

from skyward.model.instances.machine import InstanceState
from skyward.providers.life import life

WORDS = {"active": InstanceState.RUNNING, "gone": InstanceState.ENDED}


@pytest.mark.parametrize(("word", "state"), [("active", InstanceState.RUNNING), ("gone", InstanceState.ENDED)])
def test_a_word_that_is_known_means_its_state(
    word: str, state: InstanceState, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a warning."""
    assert state is life(word, WORDS, provider="x", instance="i-1")
    assert [] == caplog.messages


@pytest.mark.parametrize("word", ["Active", "", "rebalancing", None, 3, True, ["active"], {"active": 1}])
def test_any_other_counts_as_ending(word: object) -> None:
    """It may still be billed, so it never counts as ended; nor is it waited for."""
    assert InstanceState.ENDING is life(word, WORDS, provider="x", instance="i-1")


def test_a_warning_is_given_once_a_machine_and_word(caplog: pytest.LogCaptureFixture) -> None:
    """Lists come every few seconds; what the cloud wrote is shown quoted and short."""
    for instance, word in (("i-7", "odd"), ("i-7", "odd"), ("i-8", "odd"), ("i-7", "\x1b[2J" + "x" * 500)):
        life(word, WORDS, provider="warned", instance=instance)
    assert 3 == len(caplog.messages)
    assert "provider=warned instance='i-7' state='odd' taken_for=ending" in caplog.messages[0]
    assert "\x1b" not in caplog.text
    assert max(map(len, caplog.messages)) < 300
