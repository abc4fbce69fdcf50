"""What a call is from attempt to attempt."""

from __future__ import annotations

from skyward.link.messages import task_of
from tests.simulated.plan import returns
from tests.simulated.stage import Stage


def test_attempts_share_a_task_and_have_ids_of_their_own() -> None:
    """What is still on its way for one attempt is not taken for the next one's."""
    with Stage() as stage:
        call = stage.call(returns(1))
        ids = [call.id]
        for _ in range(3):
            call.begin_again()
            ids.append(call.id)
    assert 4 == len(set(ids))
    assert {ids[0]} == {task_of(one) for one in ids}
    assert (4, None, 0) == (call.attempt, call.on, call.members)
