"""
Runs to its end what must not be left half done when its call is cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["undisturbed"]


def undisturbed(work: Callable[[], None]) -> None:
    """
    Run something in a thread of its own, which no cancellation reaches, and wait for it.

    Args:
        work: What to run; what it raises is raised here.

    Raises:
        BaseException: What interrupts the wait, once the work is done.

    >>> undisturbed(lambda: print("done"))
    done
    """
    raised: list[BaseException] = []
    to_do = [work]
    # A thread that is joined passes for ended once the wait was interrupted; an event does not.
    done = threading.Event()

    def run() -> None:
        try:
            mine = to_do.pop()
        except IndexError:
            return
        try:
            mine()
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=run, name="skyward-undisturbed", daemon=True).start()
        done.wait()
    except BaseException:
        # The thread may not have begun, and then has nothing to do.
        run()
        done.wait()
        raise
    if raised:
        raise raised[0]
