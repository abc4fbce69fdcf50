"""What a call that failed leaves in memory: its frames, with all that their variables name."""

from __future__ import annotations

__all__ = ["clear_frames"]


def clear_frames(error: BaseException) -> None:
    """
    Clear the frames of an exception and of its chain, once the failure has been described.

    A frame that names its own exception is a cycle, which Python collects at some later time, and without regard to
    memory that is not Python's: the tensors of a failed call would stay on the GPU beside those of the next one.

    Args:
        error: What the call ended with.

    >>> def fails():
    ...     large = bytes(10)
    ...     raise ValueError("no")
    >>> try:
    ...     fails()
    ... except ValueError as error:
    ...     clear_frames(error)
    ...     error.__traceback__.tb_next.tb_frame.f_locals
    {}
    """
    import traceback  # Not what a worker needs to start.

    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        # Those that still run are left as they are.
        traceback.clear_frames(one.__traceback__)
        waiting += [linked for linked in (one.__cause__, one.__context__) if linked is not None]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
