"""The line to an API: the only place that calls httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from attrs import evolve

from skyward.errors import ConfigError
from skyward.rest.reply import Reply
from skyward.rest.service import Service

if TYPE_CHECKING:
    import httpx


__all__ = ["AT_ONCE", "HTTPLine"]

AT_ONCE = 16
"""Calls to one API that are under way at the same time in one event loop."""

CONNECT_TIMEOUT = 10.0
"""Seconds to reach it."""

_KEPT = 30.0


class _TooLarge(Exception):
    """Report an answer that is larger than any should be."""


class HTTPLine:
    """
    Send calls and receive replies; every failure on the way is a reply as well.

    Args:
        service: What holds for the API.

    Raises:
        ConfigError: If secrets would travel in the open.
    """

    def __init__(self, service: Service) -> None:
        url = urlsplit(service.base_url)
        if url.scheme != "https" and not (url.scheme == "http" and _is_here(url.hostname or "")):
            raise ConfigError(
                f"The address of {service.title} must begin with https://, not {service.base_url!r}.",
                provider=service.provider,
                hint="Keys are sent there, which others could read.",
            )
        self._service = service
        self._open: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[AsyncGenerator[httpx.AsyncClient, None], httpx.AsyncClient]
        ] = WeakKeyDictionary()

    async def send(self, blank: Reply, json: Any, headers: Mapping[str, str], timeout: float) -> Reply:
        """
        Send one call.

        Args:
            blank: What is asked for; the reply without its answer.
            json: What is sent.
            headers: Its headers.
            timeout: Seconds to wait for the whole answer.
        """
        client = await self._client()
        import httpx

        request = client.build_request(
            blank.method, f"{self._service.base_url}{blank.path}", json=json, headers=dict(headers)
        )
        try:
            async with asyncio.timeout(timeout):
                answer = await client.send(request, stream=True)
                try:
                    body = await self._body(answer)
                finally:
                    await answer.aclose()
        except TimeoutError:
            return evolve(blank, text=f"there was none within {timeout:g} s")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return evolve(blank, text=_described(error), sent=False)
        except (httpx.HTTPError, OSError) as error:
            return evolve(blank, text=_described(error))
        except _TooLarge:
            return evolve(blank, text=f"it is larger than {self._service.largest} bytes")
        except RuntimeError:
            # While the interpreter ends no thread looks hosts up, and forgotten pools are still terminated;
            # blocking the loop does no harm then.
            return self._sent_at_the_end(blank, request, timeout)
        return evolve(blank, status=answer.status_code, headers=dict(answer.headers), text=_text(body))

    def _sent_at_the_end(self, blank: Reply, request: httpx.Request, timeout: float) -> Reply:
        import httpx

        plain = httpx.Request(request.method, request.url, headers=request.headers, content=request.content)
        try:
            with httpx.Client(follow_redirects=False, timeout=timeout) as client:
                answer = client.send(plain)
        except httpx.HTTPError as error:
            return evolve(blank, text=_described(error), sent=not isinstance(error, httpx.ConnectError))
        return evolve(blank, status=answer.status_code, headers=dict(answer.headers), text=_text(answer.content))

    async def _body(self, answer: httpx.Response) -> bytes:
        found = bytearray()
        async for chunk in answer.aiter_bytes(64 * 1024):
            found += chunk
            if len(found) > self._service.largest:
                raise _TooLarge
        return bytes(found)

    async def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        opened = self._open.get(loop)
        if opened is None:
            # A loop that ends in good order closes the generators that were begun in it, and this one its client.
            life = self._life()
            mine = (life, await anext(life))
            opened = self._open.setdefault(loop, mine)
            if opened is not mine:
                await life.aclose()
        return opened[1]

    async def _life(self) -> AsyncGenerator[httpx.AsyncClient, None]:
        try:
            client = await asyncio.to_thread(self._made)
        except RuntimeError:
            # While the interpreter ends it starts no thread any more.
            client = self._made()
        try:
            yield client
        finally:
            await client.aclose()

    def _made(self) -> httpx.AsyncClient:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{self._service.title} needs httpx, which is not installed.",
                provider=self._service.provider,
                hint="Type: pip install httpx",
            ) from error
        return httpx.AsyncClient(
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=AT_ONCE, keepalive_expiry=_KEPT),
            headers={"Accept": "application/json", "User-Agent": "skyward"},
        )


def _is_here(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _described(error: BaseException) -> str:
    """Return what an error says, which may be nothing."""
    return str(error) or type(error).__name__


def _text(body: bytes) -> str:
    """Return what a body says; JSON is UTF-8, whatever a header claims."""
    return body.decode(errors="replace")
