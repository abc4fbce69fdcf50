"""
Data over a line: text and tables over a narrow one, the same for eight nodes, and a line that loses its rate.

usage: python -m measure.wire text KIND MB
       python -m measure.wire broadcast WAY MIB
       python -m measure.wire falling
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from measure.data import MIB, some_array
from measure.harness import Job, Results, answer, module, number, worst_of
from measure.proxy import Proxy
from measure.ssh import addresses, pool_of, provider, site
from measure.table import Criterion, Number, Row, seconds

BITS_PER_S = 20e6
ROUND_TRIP_S = 0.05
NODES = 8
MB = 1_000_000
FALLING_MB, FAST, SLOW = 10, 100e6, 10e6
KINDS = {"json": "JSON as text", "records": "a list of dicts", "table": "a DataFrame"}
TEXTS = {"json": KINDS["json"], "table": KINDS["table"]}
BROADCAST = {"call": "a call to all", "ref": "`pool.put` and a call to all"}


def length(content: Any, i: int) -> int:
    return len(content) + i


def records(count: int) -> list[dict[str, Any]]:
    """
    Make records as a service would log them.
    """
    chosen = random.Random(0)
    words = [f"{chosen.choice('bdfgklmnprst')}{chosen.choice('aeiou')}{i % 97:02d}" for i in range(500)]
    return [
        {
            "id": i,
            "user": f"user-{chosen.randrange(5000)}",
            "at": f"2026-11-{1 + i % 28:02d}T{chosen.randrange(24):02d}:{chosen.randrange(60):02d}:00Z",
            "level": chosen.choice(["info", "info", "info", "warning", "error"]),
            "text": " ".join(chosen.choices(words, k=8)),
            "took_ms": round(chosen.expovariate(0.02), 2),
        }
        for i in range(count)
    ]


def content(kind: str, mb: int) -> Any:
    """
    Make so many megabytes of a kind, as far as a pickle is concerned.
    """
    if kind == "random":
        return random.Random(0).randbytes(mb * MB)
    # Bytes of one in a pickle.
    made = records(mb * MB // {"json": 152, "records": 107, "table": 98}[kind])
    if kind == "json":
        return json.dumps(made)
    if kind == "records":
        return made
    import pandas as pd

    return pd.DataFrame(made)


def text(kind: str, mb: int) -> dict[str, float]:
    """
    Send a thing twice over 20 Mbit/s, and then an equal one.
    """
    import skyward as sky

    sent, remote = content(kind, mb), sky.function(length)
    raw = len(pickle.dumps(sent, protocol=5))
    found = {"mb": raw / MB, "raw_s": raw * 8 / BITS_PER_S}
    with (
        site() as (made, key),
        Proxy(addresses(made)) as proxy,
        pool_of(provider(made, key, proxy.ports)) as pool,
    ):
        remote([1], 1) >> pool
        remote(sent[:10], 1) >> pool
        proxy.change(ROUND_TRIP_S, BITS_PER_S)
        # The rate is known from what came before, as that of any pool is: a megabyte that nothing makes smaller.
        remote(random.Random(1).randbytes(MB), 1) >> pool
        for turn in ("first", "again", "equal") if kind != "random" else ("first",):
            if turn == "equal":
                sent = pickle.loads(pickle.dumps(sent))
            before, _ = proxy.passed()
            began = time.perf_counter()
            remote(sent, 1) >> pool
            found[f"{turn}_s"] = time.perf_counter() - began
            found[f"{turn}_mb"] = (proxy.passed()[0] - before) / MB
    return found


def broadcast(way: str, mib: int) -> dict[str, float]:
    """
    Give eight nodes the same array twice, and count what goes up the client's line.
    """
    import skyward as sky

    array, remote = some_array(mib), sky.function(length)
    found: dict[str, float] = {"mib": float(mib)}
    with (
        site(NODES) as (made, key),
        Proxy(addresses(made)) as proxy,
        pool_of(provider(made, key, proxy.ports), nodes=NODES) as pool,
    ):
        remote(array[:1], 0) @ pool
        if way == "ref" and not hasattr(pool, "put"):
            return {}
        began, before = time.perf_counter(), proxy.passed()[0]
        given = pool.put(array) if way == "ref" else array
        for turn in range(2):
            assert (remote(given, turn) @ pool) == [len(array) + turn] * NODES
            found[f"times_{turn}"] = (proxy.passed()[0] - before) / (mib * MIB)
            found[f"s_{turn}"] = time.perf_counter() - began
            began, before = time.perf_counter(), proxy.passed()[0]
    return found


def falling() -> dict[str, float]:
    """
    Send 10 MB that nothing makes smaller, over a line that falls to a tenth of its rate in the middle.
    """
    import skyward as sky

    sent, remote = content("random", FALLING_MB), sky.function(length)
    with (
        site() as (made, key),
        Proxy(addresses(made)) as proxy,
        pool_of(provider(made, key, proxy.ports)) as pool,
    ):
        remote(b"x", 1) >> pool
        proxy.change(ROUND_TRIP_S, FAST)
        began, fell = time.perf_counter(), []
        start, _ = proxy.passed()

        def watch() -> None:
            while proxy.passed()[0] - start < FALLING_MB * MB / 2:
                time.sleep(0.002)
            proxy.change(ROUND_TRIP_S, SLOW)
            fell.append(time.perf_counter() - began)

        watching = threading.Thread(target=watch)
        watching.start()
        remote(sent, 1) >> pool
        took = time.perf_counter() - began
        watching.join()
        # As long as until then, and the second half at the lower rate.
        return {"seconds": took, "ideal_s": fell[0] + FALLING_MB * MB * 8 / 2 / SLOW + ROUND_TRIP_S}


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    mb, mib = ("3", "96") if quick else ("25", "256")
    listed = {f"wire text {kind}": module("measure.wire", "text", kind, mb) for kind in (*KINDS, "random")}
    listed.update({f"wire broadcast {way}": module("measure.wire", "broadcast", way, mib) for way in BROADCAST})
    listed["wire falling"] = module("measure.wire", "falling", "")
    return listed


def rows(results: Results) -> list[Row]:
    """
    Judge what goes over a line.
    """

    def of(name: str, field: str) -> Number:
        return number(results, f"wire {name}", field)

    def share(kind: str, field: str) -> Number:
        value = of(f"text {kind}", field)
        return Number(value.over(of(f"text {kind}", "raw_s")), note=value.note)

    def sent_again(what: str, turn: str, bounded_by: str) -> Row:
        took = worst_of({meaning: of(f"text {kind}", f"{turn}_s") for kind, meaning in KINDS.items()}, max)
        more = worst_of({meaning: of(f"text {kind}", f"{turn}_mb") for kind, meaning in KINDS.items()}, max)
        return Row(
            what=what,
            ours=seconds(took),
            criteria=(Criterion("sent", more.value, at_most=0.1, unit="MB"),),
            bounded_by=bounded_by,
        )

    def row(what: str, kinds: dict[str, str], at_most: float, bounded_by: str) -> Row:
        worst = worst_of({meaning: share(kind, "first_s") for kind, meaning in kinds.items()}, max)
        kind = next((kind for kind, meaning in kinds.items() if worst.note == f"worst with {meaning}"), "json")
        note = worst.note if len(kinds) > 1 else None
        return Row(
            what=what,
            limit=seconds(of(f"text {kind}", "raw_s")),
            ours=seconds(Number(of(f"text {kind}", "first_s").value, note=note)),
            criteria=(Criterion("the raw time", worst.value, at_most=at_most),),
            bounded_by=bounded_by,
        )

    def sent_once(way: str, meaning: str) -> Row:
        first, again = of(f"broadcast {way}", "times_0"), of(f"broadcast {way}", "times_1")
        mib = of("broadcast call", "mib").value or 0
        return Row(
            what=f"{mib:.0f} MiB for {NODES} nodes over SSH with {meaning}: what goes up the client's line",
            limit="1.00",
            ours=first.note or f"{first.value:.2f}, then {again.value:.2f} ({seconds(of(f'broadcast {way}', 's_0'))})",
            criteria=(
                Criterion("once", first.value, at_most=1.2),
                Criterion("the second time", again.value, at_most=0.01),
            ),
            bounded_by="one copy over that line, where nodes reach each other",
        )

    raw, random_s = of("text random", "raw_s"), of("text random", "first_s")
    ideal, fell = of("falling", "ideal_s"), of("falling", "seconds")
    line = "20 Mbit/s, 50 ms away"
    random_mb = of("text random", "mb").value
    sent = f"{random_mb:.0f} MB" if random_mb else "some MB"
    return [
        row(f"text and tables of {sent} over {line} (limit: as they are)", TEXTS, 0.35, "compression"),
        row(
            f"records, a list of dicts of {sent}, over it",
            {"records": KINDS["records"]},
            0.5,
            "the pickle: zlib leaves a third; it is whole before the first byte goes, and opened after the last",
        ),
        sent_again("the same object again", "again", "a round trip or two"),
        sent_again("one that is equal to it", "equal", "a digest of its pickle, and a round trip or two"),
        Row(
            what=f"{sent} that nothing makes smaller over {line}",
            limit=seconds(raw),
            ours=seconds(random_s),
            criteria=(Criterion("the raw time", random_s.over(raw), at_most=1.05),),
            bounded_by="the line, and some per cent that SSH adds",
        ),
        Row(
            what="10 MB over a line that falls from 100 to 10 Mbit/s in the middle (limit: the line's own time)",
            limit=seconds(ideal),
            ours=seconds(fell),
            criteria=(Criterion("that time", fell.over(ideal), at_most=1.2),),
            bounded_by="the line",
        ),
        *(sent_once(way, meaning) for way, meaning in BROADCAST.items()),
    ]


if __name__ == "__main__":
    what, which, *size = sys.argv[1:]
    modes: dict[str, Callable[..., dict[str, float]]] = {"text": text, "broadcast": broadcast}
    answer(falling() if what == "falling" else modes[what](which, int(size[0])))
