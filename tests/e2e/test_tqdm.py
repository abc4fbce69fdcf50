"""Bars of tqdm in tasks, as bars at the client."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import skyward as sky
from tests.waiting import until

Heard = tuple[sky.Pool, list[sky.SkywardEvent]]


@sky.function
def trains(epochs: int) -> int:
    from tqdm import tqdm

    done = 0
    for _ in tqdm(range(epochs), desc="epochs"):
        time.sleep(0.01)
        done += 1
    return done


@sky.function
def steps_by_hand() -> None:
    from tqdm.auto import tqdm

    with tqdm(total=100) as bar:
        for _ in range(4):
            bar.update(25)
            bar.set_description(f"loss {bar.n}")


@sky.function
def nests() -> None:
    from tqdm import tqdm

    for _ in tqdm(range(2)):
        for _ in tqdm(range(3), leave=False):
            time.sleep(0.12)


@sky.function
def writes_to_a_file() -> str:
    import io

    from tqdm import tqdm

    kept = io.StringIO()
    for _ in tqdm(range(3), file=kept):
        pass
    return kept.getvalue()


@sky.function
def prints_beside() -> None:
    from tqdm import tqdm

    for _ in tqdm(range(2), desc="beside"):
        tqdm.write("a line of its own")


@sky.function
def fails() -> None:
    from tqdm import tqdm

    for number in tqdm(range(9), desc="failing"):
        if number == 4:
            raise ValueError("enough")


@sky.function
def stays_quiet() -> int:
    from tqdm import tqdm

    return sum(tqdm(range(4), desc="quiet", disable=True))


@sky.function
def loaded() -> bool:
    import sys

    return "tqdm" in sys.modules


@pytest.fixture(scope="module")
def heard() -> Iterator[Heard]:
    """Open a pool, and keep what is reported and printed."""
    events: list[sky.SkywardEvent] = []
    with sky.Compute(console="silent", logging=False).on(sky.SkywardEvent, events.append) as pool:
        assert not (loaded() >> pool)
        yield pool, events


def bars(heard: Heard, label: str) -> list[tuple[int, int | None]]:
    return [(one.done, one.total) for one in list(heard[1]) if isinstance(one, sky.Progress) and one.label == label]


def printed(heard: Heard) -> list[str]:
    return [one.line for one in list(heard[1]) if isinstance(one, sky.Log)]


def test_a_bar_is_reported_and_not_printed(heard: Heard) -> None:
    """From its beginning to its end, now and then, under its description."""
    assert trains(60) >> heard[0] == 60
    until(lambda: (60, 60) in bars(heard, "epochs"))
    seen = bars(heard, "epochs")
    assert seen[0] == (0, 60)
    assert 3 <= len(seen) <= 14
    assert seen == sorted(seen)
    assert not [line for line in printed(heard) if "epochs" in line or "it/s" in line]


def test_a_bar_without_a_description_has_the_functions_name(heard: Heard) -> None:
    """Also if it is described later: it stays one bar."""
    _ = steps_by_hand() >> heard[0]
    until(lambda: (100, 100) in bars(heard, "steps_by_hand"))
    assert not [one for one in heard[1] if isinstance(one, sky.Progress) and "loss" in one.label]


def test_a_bar_within_a_bar_is_another(heard: Heard) -> None:
    """One that does not stay is reported as well."""
    _ = nests() >> heard[0]
    until(lambda: (2, 2) in bars(heard, "nests"))
    assert (3, 3) in bars(heard, "nests #2")


def test_a_bar_on_a_file_stays_one_of_text(heard: Heard) -> None:
    """It was not to be seen at the client."""
    assert "3/3" in writes_to_a_file() >> heard[0]
    assert [] == bars(heard, "writes_to_a_file")


def test_lines_beside_a_bar_are_lines(heard: Heard) -> None:
    """Written by tqdm."""
    _ = prints_beside() >> heard[0]
    until(lambda: 2 == printed(heard).count("a line of its own"))


def test_a_bar_that_is_left_says_how_far_it_came(heard: Heard) -> None:
    """By an exception."""
    with pytest.raises(ValueError, match="enough"):
        _ = fails() >> heard[0]
    until(lambda: bars(heard, "failing") and bars(heard, "failing")[-1] == (4, 9))


def test_a_bar_that_is_disabled_is_none(heard: Heard) -> None:
    """It counts nothing."""
    assert stays_quiet() >> heard[0] == 6
    assert [] == bars(heard, "quiet")
