"""
Give calls a limit of their own.
"""

import time

import skyward as sky


@sky.function(timeout=600)
def patient(seconds: float) -> str:
    time.sleep(seconds)
    return "in time"


assert (sky.time.minutes(10), sky.time.hours(2), sky.time.days(1)) == (600, 7200, 86400)

with sky.Compute(provider=sky.Local()) as pool:
    good = patient(0).with_timeout(sky.time.minutes(10)) >> pool
    try:
        patient(30).with_timeout(0.1) >> pool
    except TimeoutError as error:
        late = type(error).__name__

print(f"{good} | {late}")
