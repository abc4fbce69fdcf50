"""
What stands on the left of an operator and is no pending call: the commonest slip, and the sentence for it.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn

from skyward.errors import UsageError
from skyward.pending import short


def refuse(left: object, operator: str, right: str) -> NoReturn:
    """
    Return what is wrong with the left-hand side of an operator whose right-hand side is a pool.

    Args:
        left: What stands there instead of a pending call.
        operator: The operator, as it is written.
        right: The right-hand side, as it is usually written.

    Raises:
        UsageError: Always.

    >>> try:
    ...     refuse(6, ">>", "pool")
    ... except UsageError as error:
    ...     print(error.message)
    The left-hand side of `>>` is an int, 6, and no pending call.
    """
    # A decorated function, or a decorated method of an object.
    decorated: Any = left if hasattr(left, "stream_parameters") else getattr(left, "__func__", None)
    if hasattr(decorated, "stream_parameters"):
        raise UsageError(f"{decorated.name} was not called.", hint=f"Write `{decorated.name}(...) {operator} {right}`.")
    if isinstance(left, FunctionType | MethodType):
        raise UsageError(
            f"{left.__qualname__} is a plain function, and was not called.",
            hint=f"Decorate it with @sky.function, and write `{left.__qualname__}(...) {operator} {right}`.",
        )
    kind = type(left).__name__
    what = "None" if left is None else f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}, {short(left)},"
    raise UsageError(
        f"The left-hand side of `{operator}` is {what} and no pending call.",
        hint="Is the function that returned it decorated with @sky.function?",
    )


class RightOperand:
    """Be the right-hand side of the operators, and refuse on the left what is no pending call."""

    if not TYPE_CHECKING:
        # Type checkers go on refusing these operands, as Python would.
        # Arrays would else apply the operator to each of their items.
        __array_ufunc__ = None

        def __rrshift__(self, left: Any) -> NoReturn:
            refuse(left, ">>", self._written)

        def __rmatmul__(self, left: Any) -> NoReturn:
            refuse(left, "@", self._written)

        def __lt__(self, left: Any) -> NoReturn:
            # What Python makes of `left > pool`.
            refuse(left, ">", self._written)

    _written = "pool"
