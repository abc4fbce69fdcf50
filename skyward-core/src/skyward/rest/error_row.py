"""A cloud's refusals as a table: which error of Skyward each is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from skyward.errors import Limited, SkywardError
from skyward.rest.reply import Meaning, Reply

__all__ = ["ErrorRow", "meaning_by"]


@frozen
class ErrorRow:
    """
    Say what one kind of refusal means; whatever is left out fits every reply.

    Args:
        kind: The error, as in `Meaning`.
        hint: What to do next, or what reads that from the reply; empty for none.
        status: HTTP statuses, one of which it has.
        code: Codes, one of which the body has as its `code` or `error`.
        words: Texts in lower case, one of which its message holds.
        call: The call, as `"POST /v2/pods"`, without a query; `*` at its end stands for any rest.
        when: Returns whether it fits, where all this does not say enough.
        again: As in `Meaning`.
        of: As in `Meaning`.

    >>> row = ErrorRow(SkywardError, status=(400,), words=("no capacity",), call="POST /v1/machines")
    >>> row.fits(Reply(method="POST", path="/v1/machines", status=400, text='{"message": "No capacity."}'))
    True
    """

    kind: type[SkywardError]
    hint: str | Callable[[Reply], str] = ""
    status: Sequence[int] = field(default=(), kw_only=True)
    code: Sequence[str] = field(default=(), kw_only=True)
    words: Sequence[str] = field(default=(), kw_only=True)
    call: str = field(default="", kw_only=True)
    when: Callable[[Reply], bool] | None = field(default=None, kw_only=True)
    again: bool | None = field(default=None, kw_only=True)
    of: tuple[Limited, ...] | None = field(default=None, kw_only=True)

    def fits(self, reply: Reply) -> bool:
        """
        Return whether a reply is this refusal.

        Args:
            reply: The reply.
        """
        return (
            (not self.status or reply.status in self.status)
            and (not self.code or not set(self.code).isdisjoint(_codes(reply)))
            and (not self.words or _said(reply, self.words))
            and (not self.call or _is_call(reply, self.call))
            and (self.when is None or self.when(reply))
        )

    def meaning(self, reply: Reply) -> Meaning:
        """
        Return what a reply means that fits.

        Args:
            reply: The reply.
        """
        hint = self.hint if isinstance(self.hint, str) else self.hint(reply)
        return Meaning(kind=self.kind, hint=hint or None, again=self.again, of=self.of)


def meaning_by(
    rows: Sequence[ErrorRow], *, failed: Callable[[Reply], bool] = lambda _reply: False
) -> Callable[[Reply], Meaning | None]:
    """
    Return the `meaning` of a `Service`: that of the first row that fits, or what the status says where none does.

    Args:
        rows: The table, special rows before general ones.
        failed: Tells a success that hides a failure, for which the rows are looked through as well.

    >>> meaning = meaning_by([ErrorRow(SkywardError, "Pay.", status=(402,))])
    >>> meaning(Reply(method="GET", path="/", status=402)).hint
    'Pay.'
    >>> meaning(Reply(method="GET", path="/", status=500)) is None
    True
    """

    def meaning(reply: Reply) -> Meaning | None:
        if reply.status < 400 and not failed(reply):
            return None
        return next((row.meaning(reply) for row in rows if row.fits(reply)), None)

    return meaning


def _codes(reply: Reply) -> set[str]:
    value = reply.value
    return {str(value.get(name)) for name in ("code", "error")} if isinstance(value, Mapping) else set()


def _said(reply: Reply, words: Sequence[str]) -> bool:
    said = f"{reply.words} {reply.text}".lower()
    return any(text in said for text in words)


def _is_call(reply: Reply, call: str) -> bool:
    made = f"{reply.method} {reply.path.partition('?')[0]}"
    return made.startswith(call[:-1]) if call.endswith("*") else made == call
