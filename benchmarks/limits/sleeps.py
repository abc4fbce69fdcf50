"""Slots that do nothing but sleep: four processes, each a bare loop. Prints the per cent of their time that is asked for, by ms."""
import json
import multiprocessing
import time

SLOTS, SECONDS = 4, 1.0


def share(ms):
    count, began = round(SECONDS / (ms / 1e3)), time.perf_counter()
    for _ in range(count):
        time.sleep(ms / 1e3)
    return 100 * count * ms / 1e3 / (time.perf_counter() - began)


with multiprocessing.Pool(SLOTS) as pool:
    print(json.dumps({f"busy_{ms}": round(min(pool.map(share, [ms] * SLOTS, 1)), 2) for ms in (2, 10, 100)}))
