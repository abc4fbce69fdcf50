"""Keys that end, for rclone: it asks for them at an address of this machine, and again before they end."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
from datetime import UTC, datetime

from skyward.node.volumes.volume_order import VolumeOrder

__all__ = ["KeyServer"]

_ASKED_WITHIN = 10.0
_LONGEST = 8192


class KeyServer:
    """
    Answer as the container service of AWS answers, which AWS's libraries ask: the keys, and when they end.

    It listens at 127.0.0.1, and answers those that know a token, which is in rclone's environment.
    """

    def __init__(self) -> None:
        self._token = secrets.token_hex(32)
        self._orders: dict[str, VolumeOrder] = {}
        self._server: asyncio.Server | None = None

    def renew(self, order: VolumeOrder) -> None:
        """
        Replace the keys of a volume.

        Args:
            order: The volume, with the keys as they are now.
        """
        self._orders[order.mount] = order

    async def variables(self, order: VolumeOrder) -> dict[str, str]:
        """
        Return the variables by which rclone asks for the keys of a volume; the server is started for the first one.

        Args:
            order: The volume.
        """
        if self._server is None:
            self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=_LONGEST)
        self.renew(order)
        port = self._server.sockets[0].getsockname()[1]
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{port}{order.mount}",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": self._token,
        }

    def close(self) -> None:
        """Stop to answer."""
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(_ASKED_WITHIN):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, body = self._said(head)
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        writer.close()

    def _said(self, head: str) -> tuple[str, bytes]:
        first, *lines = head.split("\r\n")
        headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
        if not hmac.compare_digest(headers.get("authorization", "").encode(), self._token.encode()):
            return "403 Forbidden", b"{}"
        order = self._orders.get(first.split(" ")[1]) if first.count(" ") == 2 else None
        if order is None:
            return "404 Not Found", b"{}"
        ends = order.expires_at or 0.0
        said = {
            "AccessKeyId": order.access_key,
            "SecretAccessKey": order.secret_key,
            "Token": order.session_token or "",
            "Expiration": datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return "200 OK", json.dumps(said).encode()
