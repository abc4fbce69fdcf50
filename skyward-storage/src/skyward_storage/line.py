"""The only place that calls boto3: one client for a storage, every request repeated where that may help."""

from __future__ import annotations

import http.client
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn, TypeVar

from skyward.errors import CredentialsError, NoCredentialsError, SkywardError
from skyward_storage.failure import Refusal, failure, is_stale, pause
from skyward_storage.keys import RENEW_BEFORE, Keys, Login, Releasing, awaited
from skyward_storage.transfer import Stopped, Transfer

__all__ = ["Line"]

T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
"""Seconds to reach an endpoint."""

RENEWALS = 2
"""How often one request has keys asked for again."""

CONNECTIONS = 50
"""Connections that are kept open; several operations may share them."""

_log = logging.getLogger("skyward.storage")


class Line:
    """
    Send requests to an object store; the client is made at the first one, and again after `close`.

    Args:
        endpoint: Its address.
        region: The region that requests are signed for; None for what AWS's own tools are set to.
        path_style: Whether the bucket stands in the path, and not in the name of the host.
        login: Where the keys come from.
        timeout: Seconds to wait for the next bytes of an answer.
    """

    def __init__(self, endpoint: str, region: str | None, *, path_style: bool, login: Login, timeout: float) -> None:
        self.endpoint = endpoint
        self.timeout = timeout
        self._region = region
        self._path_style = path_style
        self._login = login
        self._lock = threading.Lock()
        self._client: Any = None
        self._keys: Keys | None = None
        self._found: Any = None
        self._secrets: set[str] = set()

    def call(self, transfer: Transfer, operation: str, **parameters: Any) -> Any:
        """
        Send one request, and again where that may help.

        Args:
            transfer: The operation that it is part of.
            operation: The client's name of it, such as `"put_object"`.
            parameters: As S3 calls them.

        Raises:
            SkywardError: As for `attempt`.
        """
        return self.attempt(transfer, operation, parameters, lambda client: getattr(client, operation)(**parameters))

    def attempt(self, transfer: Transfer, operation: str, parameters: Mapping[str, Any], do: Callable[[Any], T]) -> T:
        """
        Do something with a client that sends one request, and again where that may help.

        Args:
            transfer: The operation that it is part of.
            operation: The client's name of the request, for errors.
            parameters: Its bucket and key, for errors.
            do: Called with the client.

        Raises:
            CredentialsError: If there are no keys, or they are refused.
            StorageError: If the request is refused, or not answered.
        """
        renewals = attempt = 0
        while True:
            transfer.check()
            client = self.client()
            attempt += 1
            try:
                return do(client)
            except (SkywardError, Stopped):
                raise
            except Exception as error:
                refusal = _refusal(error, operation, self.endpoint, parameters)
                if refusal is None:
                    raise
                if is_stale(refusal) and self._login.renewable and renewals < RENEWALS:
                    renewals, attempt = renewals + 1, 0
                    self._renew(client)
                    continue
                seconds = pause(refusal, attempt, random.random())
                if seconds is None:
                    self._fail(refusal, attempt, error)
                _log.debug("request.again operation=%s status=%d after=%.1f", operation, refusal.status, seconds)
            transfer.pause(seconds)

    def client(self) -> Any:
        """
        Return the client, made again where its keys are about to end.

        Raises:
            CredentialsError: If there are no keys.
        """
        with self._lock:
            ends = None if self._keys is None else self._keys.expires_at
            if self._client is None or (ends is not None and ends - RENEW_BEFORE < time.time()):
                before = self._keys
                self._open()
                self._release(before)
            return self._client

    def keys(self) -> Keys:
        """
        Return the keys that requests are signed with now.

        Raises:
            CredentialsError: If there are none.
        """
        self.client()
        if self._keys is not None:
            return self._keys
        found = self._found.get_frozen_credentials()
        return Keys(access_key=found.access_key, secret_key=found.secret_key, session_token=found.token)

    def close(self) -> None:
        """Close connections, forget the keys, and delete those that were made for this."""
        with self._lock:
            client, keys = self._client, self._keys
            self._client = self._keys = self._found = None
        if client is not None:
            client.close()
        self._release(keys)

    def _renew(self, stale: Any) -> None:
        """Ask for keys again, unless another thread has done that meanwhile."""
        with self._lock:
            if self._client is stale:
                before = self._keys
                self._open()
                _log.info("keys.renewed endpoint=%s", self.endpoint)
                self._release(before)

    def _open(self) -> None:
        """Make a client with the keys of now; the lock is held."""
        import boto3
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        keys = self._login.ask()
        config = Config(
            connect_timeout=min(CONNECT_TIMEOUT, self.timeout),
            read_timeout=self.timeout,
            # What is sent again, and when, is decided in one place.
            retries={"total_max_attempts": 1, "mode": "standard"},
            max_pool_connections=CONNECTIONS,
            signature_version="s3v4",
            s3={"addressing_style": "path" if self._path_style else "auto"},
            # Requests carry a checksum of ours; some servers refuse those that botocore adds by itself.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            user_agent_extra="skyward-storage",
        )
        try:
            settings = botocore.session.Session()
            settings.register_component("data_loader", _descriptions())
            session = boto3.Session(
                botocore_session=settings,
                aws_access_key_id=keys and keys.access_key,
                aws_secret_access_key=keys and keys.secret_key,
                aws_session_token=keys and keys.session_token,
            )
            found = session.get_credentials()
            if found is None:
                raise NoCredentialsError(
                    f"There are no keys for {self.endpoint}. Looked at: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                    "AWS_PROFILE, ~/.aws, the role of this machine.",
                    hint="Give access_key= and secret_key=, or set the variables.",
                )
            region = self._region or session.region_name or "us-east-1"
            self._client = session.client("s3", endpoint_url=self.endpoint, region_name=region, config=config)
        except (BotoCoreError, ValueError) as error:
            raise CredentialsError(
                f"The settings for {self.endpoint} cannot be used: {self._hidden(str(error))}.",
                hint="Look at the variables AWS_... and at ~/.aws.",
            ) from None
        self._keys, self._found = keys, found
        self._secrets.update(keys.texts if keys is not None else ())

    def _release(self, keys: Keys | None) -> None:
        """Delete keys that a source has made; those that it cannot delete are named in a warning."""
        source: object = self._login.source
        if keys is None or not isinstance(source, Releasing):
            return
        try:
            awaited(source.release(keys))
        except Exception as error:
            reason = f"{type(error).__name__}: {self._hidden(str(error))}"
            _log.warning("keys.left endpoint=%s id=%s reason=%s", self.endpoint, keys.id, reason)

    def _fail(self, refusal: Refusal, attempts: int, error: Exception) -> NoReturn:
        """Raise what a refusal means, with no key in it and none in its cause."""
        failed = failure(refusal, attempts)
        failed.message = self._hidden(failed.message)
        failed.args = (failed.message,)
        failed.code = self._hidden(failed.code)
        raise failed from (error if self._hidden(str(error)) == str(error) else None)

    def _hidden(self, text: str) -> str:
        """Return a text without any key that was used."""
        for each in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(each, "***")
        return text


@cache
def _descriptions() -> Any:
    """Return what loads AWS's descriptions of its services, which take longer to read than all else of a client."""
    import botocore.session

    return botocore.session.Session().get_component("data_loader")


def _refusal(error: Exception, operation: str, endpoint: str, parameters: Mapping[str, Any]) -> Refusal | None:
    """Return what came back instead of an answer; None where an error is not the server's nor the network's."""
    from botocore import exceptions
    from botocore.parsers import ResponseParserError

    facts: dict[str, Any] = {
        "operation": "".join(word.capitalize() for word in operation.split("_")),
        "endpoint": endpoint,
        "bucket": parameters.get("Bucket"),
        "key": parameters.get("Key", parameters.get("Prefix")),
    }
    if isinstance(error, exceptions.ClientError):
        said = error.response.get("Error", {})
        meta = error.response.get("ResponseMetadata", {})
        headers = meta.get("HTTPHeaders", {})
        after = str(headers.get("retry-after", ""))
        return Refusal(
            code=str(said.get("Code", "")),
            message=str(said.get("Message", "")),
            status=int(meta.get("HTTPStatusCode", 400)),
            region=said.get("Region") or headers.get("x-amz-bucket-region"),
            retry_after=float(after) if after.isdigit() else None,
            **facts,
        )
    lost: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, http.client.HTTPException)
    lost += (exceptions.HTTPClientError, exceptions.ConnectionError, exceptions.IncompleteReadError)
    if isinstance(error, exceptions.BotoCoreError) and not isinstance(error, lost):
        return Refusal(code=type(error).__name__, message=str(error), status=400, **facts)
    if isinstance(error, ResponseParserError):
        message = "what it answers is not what S3 answers"
        return Refusal(code="", message=message, status=400, **facts)
    if isinstance(error, exceptions.SSLError):
        return Refusal(code="", message=str(error), status=0, hopeless=True, **facts)
    if isinstance(error, lost):
        return Refusal(code="", message=_shortened(error), status=0, **facts)
    return None


def _shortened(error: Exception) -> str:
    """Return what an error says, or its class where it says nothing."""
    return str(error) or type(error).__name__
