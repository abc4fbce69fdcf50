"""Calls of an API that speaks JSON over HTTP: paced, tried again where that may help, and their answers checked."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from json import dumps as json_text
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary

from attrs import evolve, field, frozen

from skyward.errors import CredentialsError, ProvisionError, QuotaError, SkywardError
from skyward.plan.instances.clocks import ahead_of_reply
from skyward.rest.checked_answer import Misread
from skyward.rest.line import AT_ONCE, HTTPLine
from skyward.rest.rate_limit import RateLimit
from skyward.rest.reply import Meaning, Reply, hidden, shortened
from skyward.rest.retry_decision import LONGEST_PAUSE, Accept, RetryLater, decide, held
from skyward.rest.service import Service

__all__ = ["Api", "Login", "Params", "Service"]

PAGES = 500
"""Pages after which a list counts as one without an end."""

Params = Mapping[str, str | int | Sequence[str | int]]
"""What is asked of a path; a key with several values is repeated."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


def _headers(value: Mapping[str, str]) -> dict[str, str]:
    """Return headers, as a copy."""
    return dict(value)


@frozen(kw_only=True)
class Login:
    """
    Hold what makes a call ours.

    Args:
        headers: The headers that say so.
        account: Tells accounts apart, such as the key; all logins of one account share its limits.
        secrets: What must be read in no error and no log.

    >>> Login.bearer("dop_v1_secret")
    Login()
    """

    headers: Mapping[str, str] = field(factory=dict, converter=_headers, repr=False)
    account: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def bearer(cls, token: str) -> Login:
        """
        Return the login of one who bears a token.

        Args:
            token: The token; spaces around it are left out.

        Raises:
            CredentialsError: If no header can hold it.
        """
        token = token.strip()
        if not token or not all("!" <= character <= "~" for character in token):
            raise CredentialsError("The key is empty, or has characters in it that no key has.")
        return cls(headers={"Authorization": f"Bearer {token}"}, account=token, secrets=(token,))


class Api:
    """
    Call an API.

    A value of this class may be used in any event loop; each has connections of its own.

    Args:
        service: What holds for the API.
        login: Returns, or awaits, what makes a call ours. It is given the login that was refused, if one was, and may
            then return a fresh one.

    Raises:
        ConfigError: If secrets would travel in the open.

    Example: `await Api(service, lambda stale: Login.bearer(token)).get("/v2/account", read=lambda a: text(a, "id"))`
    """

    def __init__(self, service: Service, login: Callable[[Login | None], Login | Awaitable[Login]]) -> None:
        self.service = service
        self._login = login
        self._line = HTTPLine(service)
        self._pace: RateLimit | None = None
        self._secrets: set[str] = set()
        self.ahead: float | None = None
        """Seconds by which the server's clock is ahead of ours, by its last reply; None before one."""
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @overload
    async def get(self, path: str, *, read: Callable[[Any], T], **how: Any) -> T: ...
    @overload
    async def get(self, path: str, **how: Any) -> Any: ...
    async def get(self, path: str, **how: Any) -> Any:
        """
        Read something; arguments are those of `call`.

        Args:
            path: Of what.
            how: All else.

        Raises:
            SkywardError: As for `call`.
        """
        return await self.call("GET", path, **how)

    @overload
    async def post(self, path: str, *, read: Callable[[Any], T], **how: Any) -> T: ...
    @overload
    async def post(self, path: str, **how: Any) -> Any: ...
    async def post(self, path: str, **how: Any) -> Any:
        """
        Make or do something, and never twice unless called with `once=False`; arguments are those of `call`.

        Args:
            path: Of what.
            how: All else.

        Raises:
            SkywardError: As for `call`.
        """
        return await self.call("POST", path, **{"once": True, **how})

    async def put(self, path: str, **how: Any) -> Any:
        """
        Write something; arguments are those of `call`.

        Args:
            path: Of what.
            how: All else; `once=True` if it makes something.

        Raises:
            SkywardError: As for `call`.
        """
        return await self.call("PUT", path, **how)

    async def patch(self, path: str, **how: Any) -> Any:
        """
        Change something; arguments are those of `call`.

        Args:
            path: Of what.
            how: All else.

        Raises:
            SkywardError: As for `call`.
        """
        return await self.call("PATCH", path, **how)

    async def delete(self, path: str, **how: Any) -> Any:
        """
        Take something away; arguments are those of `call`.

        Args:
            path: Of what.
            how: All else; `also=(404,)` where it may be gone already.

        Raises:
            SkywardError: As for `call`.
        """
        return await self.call("DELETE", path, **how)

    async def pages(
        self,
        path: str,
        read: Callable[[Any], Sequence[T]],
        more: Callable[[Any], Params | None],
        *,
        params: Params | None = None,
        most: int = PAGES,
        **how: Any,
    ) -> list[T]:
        """
        Read a list that comes in pages, all of it; other arguments are those of `call`.

        Args:
            path: Of what.
            read: Reads the rows of a page.
            more: Reads the parameters that ask for the next page, such as a cursor or a page's number; None where
                there is none.
            params: What is asked, to which those of the next page are added.
            most: Pages after which the list counts as one without an end.
            how: All else.

        Raises:
            SkywardError: As for `call`, and where a list has no end: what was read of it is no list.
        """
        found: list[T] = []
        asked: dict[str, Any] = dict(params or {})

        def page(answer: Any) -> tuple[Sequence[T], Params | None]:
            rows, after = read(answer), more(answer)
            if after is not None and (not rows or after.items() <= asked.items()):
                raise Misread("an empty page leads to another" if not rows else "a page leads to itself")
            return rows, after

        for _ in range(most):
            rows, after = await self.get(path, params=asked, read=page, **how)
            found += rows
            if after is None:
                return found
            asked |= after
        raise self._error(
            ProvisionError,
            f"{self.service.title} lists {path} in more than {most} pages.",
            Reply(method="GET", path=path, status=200),
        )

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        read: Callable[[Any], T] | None = None,
        plain: bool = False,
        also: Sequence[int] = (),
        once: bool = False,
        lane: str = "",
        subject: str = "",
        timeout: float | None = None,
    ) -> Any:
        """
        Make one call, and again where that may help.

        Args:
            method: What to do.
            path: With what; begins with a slash.
            params: What is asked, added to the path; a key whose value is a list is repeated.
            json: What is sent.
            headers: Sent besides those of the login.
            read: Reads the answer with what `skyward.rest` has for it, such as `text`, and may raise `Misread`.
            plain: Whether the answer is text and no JSON.
            also: Statuses that are fine besides those of success; the answer is None then.
            once: Whether it makes something; then it is sent again only if nothing can have come of it.
            lane: The kind of call, for its limits.
            subject: What it is about, for the error, such as an instance type.
            timeout: Seconds to wait for the whole answer; None for what the service says.

        Returns:
            What `read` makes of the answer; without it the parsed JSON, or None if there is no body.

        Raises:
            CredentialsError: If the account cannot be used.
            SkywardError: If it is refused, or the answer cannot be read; `reply_of` gives the reply.
            ProvisionError: If no answer came, and it is unknown whether anything was done.
        """
        blank = Reply(method=method, path=_with(path, params), status=0, once=once, subject=subject)
        login = await self._logged_in(None)
        renewed, attempt = False, 0
        while True:
            attempt += 1
            reply = await self._sent(blank, login, json, headers or {}, lane, timeout or self.service.timeout)
            if reply.status in also:
                return None
            if reply.status == 401 and not renewed:
                renewed, stale = True, login
                login = await self._logged_in(stale)
                if login != stale:
                    continue
            decision = decide(reply, attempt, self.service.meaning(reply), dice=random.random(), now=time.time())
            if isinstance(decision, Accept):
                return self._read(reply, read, plain=plain)
            if not isinstance(decision, RetryLater):
                raise self._refused(reply, decision.meaning)
            _log.debug("call.again method=%s path=%s status=%d after=%.1f", method, path, reply.status, decision.after)
            await asyncio.sleep(decision.after)

    async def _logged_in(self, stale: Login | None) -> Login:
        given = self._login(stale)
        login = await given if inspect.isawaitable(given) else given
        # What was a secret once stays one.
        self._secrets |= set(login.secrets)
        return login

    async def _sent(
        self, blank: Reply, login: Login, json: Any, headers: Mapping[str, str], lane: str, timeout: float
    ) -> Reply:
        # Kept, because a pace lasts as long as something refers to it.
        pace = self._pace = RateLimit.of(f"{self.service.base_url} {login.account}", self.service.limits)
        await pace.wait(lane)
        slot = self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
        async with slot:
            sent = time.time()
            reply = await self._line.send(blank, json, {**headers, **login.headers}, timeout)
        if 200 <= reply.status < 300:
            # A refusal may come from a proxy on the way.
            ahead = ahead_of_reply(reply.headers, sent=sent, heard=time.time())
            self.ahead = self.ahead if ahead is None else ahead
        away = held(reply, time.time())
        if away is not None and away <= LONGEST_PAUSE:
            pace.close(time.monotonic() + away)
        return reply

    def understood(self, answer: Any, read: Callable[[Any], T], asked: str) -> T:
        """
        Read an answer, or a part of one, that was had before.

        Args:
            answer: What is read.
            read: As for `call`.
            asked: What it is the answer to, for the error.

        Raises:
            ProvisionError: If it cannot be read.
        """
        try:
            return read(answer)
        except Misread as error:
            shown = json_text(answer, default=str)
            raise self._misread(asked, error, Reply(method="", path=asked, status=200, text=shown)) from None

    def _read(self, reply: Reply, read: Callable[[Any], T] | None, *, plain: bool) -> Any:
        try:
            if plain:
                return read(reply.text) if read is not None else reply.text
            if not reply.text.strip():
                return read(None) if read is not None else None
            value = reply.value
            if value is None:
                raise Misread("it is no JSON")
            return read(value) if read is not None else value
        except Misread as error:
            raise self._misread(_asked(reply), error, reply) from None

    def _misread(self, asked: str, error: Misread, reply: Reply) -> SkywardError:
        said = shortened(reply.text) or "nothing"
        text = f"{self.service.title} answered {asked} with what cannot be read: {error}. The answer: {said}"
        return self._error(ProvisionError, text, reply, hint="See whether there is a newer release of Skyward.")

    def _refused(self, reply: Reply, meaning: Meaning) -> SkywardError:
        title, asked, words = self.service.title, _asked(reply), reply.words.rstrip(". ")
        if not reply.status:
            text = f"{title} gave no answer to {asked}: {words}."
        elif 200 <= reply.status < 300:
            text = f"{title} refused {asked}: {words}."
        else:
            text = f"{title} refused {asked}: {reply.status}{f': {words}' if words else ''}."
        away = held(reply, time.time())
        if away is not None and away > LONGEST_PAUSE:
            text += f" It is to be asked again in {away:.0f} s."
        facts = {"of": meaning.of} if meaning.of is not None and issubclass(meaning.kind, QuotaError) else {}
        return self._error(meaning.kind, text, reply, hint=meaning.hint, **facts)

    def _error(self, kind: type[SkywardError], text: str, reply: Reply, **facts: Any) -> SkywardError:
        secrets = self._secrets
        error = kind(hidden(text, secrets), provider=self.service.provider, **facts)
        shown = {name: hidden(value, secrets) for name, value in reply.headers.items() if name != "set-cookie"}
        clean = evolve(reply, path=hidden(reply.path, secrets), text=hidden(reply.text, secrets), headers=shown)
        error.reply = clean  # type: ignore[attr-defined]
        return error


def _with(path: str, params: Params | None) -> str:
    """
    Return a path with a question.

    >>> _with("/v1/machines", {"label": ["pool=1", "node=0"], "limit": 50})
    '/v1/machines?label=pool%3D1&label=node%3D0&limit=50'
    """
    from urllib.parse import urlencode

    return f"{path}?{urlencode(params, doseq=True)}" if params else path


def _asked(reply: Reply) -> str:
    """Name what was asked for."""
    subject = f" ({reply.subject})" if reply.subject else ""
    return f"{reply.method} {reply.path}{subject}"
