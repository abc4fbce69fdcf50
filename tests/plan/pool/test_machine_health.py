"""Machines that fail: replaced, not taken again after the second time, and kept where the check itself is suspected."""

from __future__ import annotations

from skyward.plan.pool.machine_health import MOST_UNPROVEN, MachineHealth, failed


def test_a_machine_that_failed_twice_is_not_taken_again() -> None:
    """Others are."""
    health = MachineHealth()
    for machine in ("a", "b", "a"):
        health, verdict = failed(health, machine, passed=True)
        assert verdict.replace
    assert {"a"} == health.shunned
    assert "twice" in verdict.note


def test_a_check_that_never_passed_anywhere_is_suspected() -> None:
    """Machines are not replaced for ever."""
    health = MachineHealth()
    replaced = []
    for number in range(2 * MOST_UNPROVEN):
        health, verdict = failed(health, f"m{number}", passed=False)
        replaced.append(verdict.replace)
    assert [True] * MOST_UNPROVEN + [False] * MOST_UNPROVEN == replaced
    assert "the check is suspected" in verdict.note


def test_a_machine_that_passed_first_proves_the_check() -> None:
    """It is counted anew."""
    health = MachineHealth(unproven=MOST_UNPROVEN)
    health, verdict = failed(health, "a", passed=True)
    assert (True, 0) == (verdict.replace, health.unproven)
