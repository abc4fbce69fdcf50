"""What a type checker refuses in users' code: each line names the error that mypy has to report there."""

from __future__ import annotations

import skyward as sky


@sky.function
def whole(x: int) -> int:
    return x


@sky.cls
class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    @sky.function
    def add(self, times: int) -> int:
        return self.count + times

    def plain(self) -> int:
        return self.count


Counter("one")  # type: ignore[arg-type]
Counter(1).add("one")  # type: ignore[arg-type]
# It is sent all the same; only a decorated method is seen to be.
Counter(1).plain() >> sky.Compute()  # type: ignore[operator]
whole("one")  # type: ignore[arg-type]
whole(1, 2)  # type: ignore[call-arg]
1 >> sky.Compute()  # type: ignore[operator]
whole >> sky.Compute()  # type: ignore[operator]
sky.Compute(node=2)  # type: ignore[call-arg]
sky.Compute(console="loud")  # type: ignore[arg-type]
sky.Compute().map(whole, ["one"])  # type: ignore[arg-type]
