"""
Several pools at once open and close together, or as their session says.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import pytest

import skyward as sky


@sky.function
def double(x: int) -> int:
    return 2 * x


def test_multi_pool_takes_pools() -> None:
    """Anything else is refused before one is opened."""
    with pytest.raises(sky.UsageError, match="MultiPool takes pools, not a int"):
        sky.MultiPool(sky.Compute(), 3)  # type: ignore[arg-type]


@pytest.mark.slow
def test_session_closes_what_is_left_open() -> None:
    """Pools end in any order, and the rest with the session."""
    with sky.Session() as session:
        first = session.compute(console="silent", logging=False)
        second = session.compute(console="silent", logging=False)
        assert 2 == double(1) >> first
        session.close(first)
        assert (False, True) == (first.is_active, second.is_active)
        with pytest.raises(sky.ConfigError, match="is not an open pool of this session"):
            session.close(first)
        assert 4 == double(2) >> second
    assert not second.is_active


@pytest.mark.slow
def test_every_pool_that_could_not_be_left_is_told() -> None:
    """One error is raised and bears the others as notes."""

    def sour(words: str) -> sky.Plugin:
        @contextlib.contextmanager
        def around(pool: sky.Pool, cluster: object) -> Iterator[None]:
            yield
            raise ValueError(words)

        return sky.Plugin.create(words).with_around_client(around)

    pools = [sky.Compute(console="silent", plugins=[sour(words)]) for words in ("first", "second")]
    with pytest.raises(Exception, match=r"first|second") as caught, sky.MultiPool(*pools):
        pass
    told = "\n".join((str(caught.value), *caught.value.__notes__))
    assert "first" in told
    assert "second" in told


def test_session_pools_are_no_target_of_the_context() -> None:
    """Their lifetimes do not nest, so `sky` names none of them."""
    with sky.Session() as session:
        session.compute(console="silent", logging=False)
        with pytest.raises(sky.NoPoolError, match="none is open in this context"):
            double(1) >> sky


@pytest.mark.slow
def test_handler_of_sigterm_is_shared_and_put_back() -> None:
    """Pools that end before others leave it to them, and the last puts the default back."""
    before = signal.getsignal(signal.SIGTERM)
    with sky.Session() as session:
        first = session.compute(console="silent", logging=False)
        session.compute(console="silent", logging=False)
        handler = signal.getsignal(signal.SIGTERM)
        session.close(first)
        assert handler == signal.getsignal(signal.SIGTERM) != before
    assert before == signal.getsignal(signal.SIGTERM)


@pytest.mark.slow
def test_multi_pool_is_left_when_it_is_terminated() -> None:
    """SIGTERM unwinds the block, although its pools were opened in other threads."""
    pools = (sky.Compute(console="silent", logging=False), sky.Compute(console="silent", logging=False))
    with pytest.raises(SystemExit, match="143"), sky.MultiPool(*pools):
        signal.raise_signal(signal.SIGTERM)
    assert [False, False] == [pool.is_active for pool in pools]
    assert signal.SIG_DFL == signal.getsignal(signal.SIGTERM)
