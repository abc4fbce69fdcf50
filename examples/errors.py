"""
Handle what goes wrong: exceptions of the function, time limits, workers that die, arguments that cannot travel.
"""

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import skyward as sky

PRICES = {"apple": 3, "pear": 4}


@sky.function
def price(fruit: str) -> int:
    return PRICES[fruit]


@sky.function
def nap(duration: float) -> None:
    # Many short naps, because a time limit reaches a thread between two steps of Python.
    until = time.monotonic() + duration
    while time.monotonic() < until:
        time.sleep(0.01)


@sky.function
def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@sky.function(retries=3)
def flaky(failures: int, marker: str) -> int:
    # Each attempt leaves a byte behind, so that the next one knows how many there were.
    with Path(marker).open("ab") as file:
        file.write(b".")
        attempts = file.tell()
    if attempts <= failures:
        raise ConnectionError(f"attempt {attempts} failed")
    return attempts


with sky.Compute() as pool:
    # What the function raised is what is raised here, with the node in its notes.
    try:
        price("plum") >> pool
    except KeyError as error:
        print("KeyError:", error, "| notes:", len(error.__notes__) > 0)

    results = pool.map(price, ["apple", "plum", "pear"], return_exceptions=True)
    print("mapped:", [type(result).__name__ if isinstance(result, Exception) else result for result in results])

    try:
        nap(30).with_timeout(0.2) >> pool
    except TimeoutError as error:
        print("timed out:", isinstance(error, sky.TaskTimeoutError))

    try:
        crash() >> pool
    except sky.WorkerDiedError as error:
        print("worker died of", error.signal)

    # The pool goes on: the worker has been replaced.
    print("price after a crash:", price("pear") >> pool)

    # Nothing is sent when an argument cannot be pickled; the message names it.
    try:
        price({"lock": threading.Lock()}) >> pool  # type: ignore[arg-type]
    except sky.SerializationError as error:
        print("cannot travel:", error.argument)

    # What fails now and then can be tried again.
    with tempfile.TemporaryDirectory() as folder:
        print("succeeded at attempt", flaky(2, f"{folder}/attempts") >> pool)
