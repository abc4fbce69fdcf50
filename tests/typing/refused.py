"""What a type checker refuses in users' code: each line names the error that mypy has to report there."""

from __future__ import annotations

import skyward as sky


@sky.function
def whole(x: int) -> int:
    return x


whole("one")  # type: ignore[arg-type]
whole(1, 2)  # type: ignore[call-arg]
1 >> sky.Compute()  # type: ignore[operator]
whole >> sky.Compute()  # type: ignore[operator]
sky.Compute(node=2)  # type: ignore[call-arg]
sky.Compute(console="loud")  # type: ignore[arg-type]
