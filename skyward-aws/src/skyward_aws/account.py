"""The only place that calls boto3: one session, a client for each service and region, every call in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from attrs import field, frozen

from skyward.provider import CredentialsError, Inventory, NoCredentialsError, Shared, ahead_of_reply, in_thread
from skyward_aws.failure import Refusal, failure, pause
from skyward_aws.preflight import ends_at

__all__ = ["Account", "Keys", "Login", "whose"]

CONNECT_TIMEOUT = 5.0
"""Seconds to reach an endpoint; a region that is not there must not hold up the others."""

READ_TIMEOUT = 30.0
"""Seconds to wait for an answer."""

AT_ONCE = 12
"""Calls that are under way at the same time."""


@frozen(kw_only=True)
class Login:
    """
    Say as whom the account is used; what is None is looked for where AWS's own tools look.

    Args:
        profile: Name of a profile in the shared files.
        access_key: Access key id.
        secret_key: Secret access key.
        session_token: Token of a temporary session.
    """

    profile: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None


@frozen(kw_only=True)
class Keys:
    """
    Hold what calls are signed with.

    Args:
        access_key: Access key id.
        secret_key: Secret access key.
        session_token: Token of a temporary session.
        expires_at: When they end, in seconds since 1970; None if that is not known.
    """

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None


class Account:
    """
    Ask AWS.

    Args:
        login: As whom.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._at_once: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self.answers = Shared()
        """Answers that hold for a while, such as prices."""
        self.inventories: defaultdict[str, Inventory[Mapping[str, Any]]] = defaultdict(lambda: Inventory({}))
        """The machines that were rented here, by region: lists are asked for by tag, and lack them for a while."""
        self.with_disks: set[str] = set()
        """Ids of machines that have had all their disks."""
        self.ahead: float | None = None
        """Seconds by which AWS's clock is ahead of ours, by its last answer; None before one."""

    async def call(self, service: str, region: str, operation: str, subject: str = "", **parameters: Any) -> Any:
        """
        Make one call, and again where that may help.

        Args:
            service: Such as `"ec2"`.
            region: Where.
            operation: As AWS calls it, such as `"RunInstances"`.
            subject: What it is about, for the error.
            parameters: As AWS calls them.

        Raises:
            SkywardError: If it is refused; `code_of` gives AWS's code.
        """
        attempt = 0
        while True:
            attempt += 1
            async with self._slot():
                answer = await in_thread(partial(self._send, service, region, operation, subject, parameters))
            if not isinstance(answer, Refusal):
                return answer
            wait = pause(answer, attempt)
            if wait is None:
                raise failure(answer)
            await asyncio.sleep(wait)

    async def pages(self, service: str, region: str, operation: str, key: str, **parameters: Any) -> list[Any]:
        """
        Make a call that answers page by page, and return what all of them list.

        Args:
            service: As for `call`.
            region: As for `call`.
            operation: As for `call`.
            key: Name of the list in the answer.
            parameters: As for `call`.

        Raises:
            SkywardError: If it is refused.
        """
        found: list[Any] = []
        more: dict[str, Any] = {}
        while True:
            answer = await self.call(service, region, operation, **parameters, **more)
            found += answer.get(key, ())
            if not answer.get("NextToken"):
                return found
            more = {"NextToken": answer["NextToken"]}

    async def region(self) -> str | None:
        """Return the region that the user's own settings name."""
        return await in_thread(lambda: self._opened().region_name)

    async def regions(self) -> tuple[str, ...]:
        """Return the names of all regions that the library knows."""
        return await in_thread(lambda: tuple(self._opened().get_available_regions("ec2")))

    async def endpoint(self, service: str, region: str) -> str:
        """Return the address of a service, as the user's own settings may name it."""
        return await in_thread(lambda: str(self._client(service, region).meta.endpoint_url))

    async def keys(self) -> Keys:
        """
        Return the keys that calls are signed with, renewed if they have to be.

        Raises:
            NoCredentialsError: If there are none.
        """
        found = await in_thread(self._keys)
        if found is None:
            raise self._nobody()
        return found

    def _keys(self) -> Keys | None:
        credentials = self._opened().get_credentials()
        if credentials is None:
            return None
        frozen = credentials.get_frozen_credentials()
        # Only those that are renewed know it by themselves.
        end = getattr(credentials, "_expiry_time", None)
        return Keys(
            access_key=frozen.access_key,
            secret_key=frozen.secret_key,
            session_token=frozen.token,
            expires_at=end.timestamp() if end is not None else self._ends_at(),
        )

    async def ends_at(self) -> float | None:
        """Return when the credentials run out that nothing renews, in seconds since 1970; None if unknown."""
        return await in_thread(self._ends_at)

    def _ends_at(self) -> float | None:
        from botocore.exceptions import BotoCoreError

        session = self._opened()
        try:
            credentials = session.get_credentials()
        except (BotoCoreError, ValueError, RuntimeError):
            # The call that uses them says what is wrong with them.
            return None
        profile = session._session.full_config.get("profiles", {}).get(session.profile_name, {})
        return ends_at(credentials.method, os.environ, profile) if credentials is not None else None

    async def identity(self, region: str) -> str:
        """
        Return who we are to AWS.

        Args:
            region: Where to ask.

        Raises:
            NoCredentialsError: If there are no credentials.
            CredentialsError: If they are refused.
        """
        if await in_thread(lambda: self._opened().get_credentials()) is None:
            raise self._nobody()
        answer = await self.call("sts", region, "GetCallerIdentity")
        return str(answer["Arn"])

    def _nobody(self) -> NoCredentialsError:
        return NoCredentialsError(
            f"There are no credentials for AWS. Looked at: {', '.join(_places(self._login, os.environ))}.",
            provider="aws",
            hint='Type "aws configure", set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile.',
        )

    def _slot(self) -> asyncio.Semaphore:
        return self._at_once.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))

    def _send(self, service: str, region: str, operation: str, subject: str, parameters: dict[str, Any]) -> Any:
        from botocore import exceptions, xform_name
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        refusal = partial(Refusal, service=service, operation=operation, region=region, subject=subject)
        try:
            client = self._client(service, region)
            sent = time.time()
            answer = getattr(client, xform_name(operation))(**parameters)
            headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
            ahead = ahead_of_reply(headers, sent=sent, heard=time.time())
            self.ahead = self.ahead if ahead is None else ahead
            return answer
        except ClientError as error:
            said = error.response.get("Error", {})
            answer = error.response.get("ResponseMetadata", {})
            return refusal(
                code=str(said.get("Code", "")),
                message=str(said.get("Message", "")),
                status=int(answer.get("HTTPStatusCode", 400)),
                retry_after=_seconds(answer.get("HTTPHeaders", {})),
            )
        except exceptions.NoCredentialsError as error:
            raise self._nobody() from error
        except HTTPClientError as error:
            return refusal(code="", message=str(error), status=0)
        except BotoCoreError as error:
            return refusal(code=type(error).__name__, message=str(error), status=400)

    def _client(self, service: str, region: str) -> Any:
        from botocore.config import Config

        session = self._opened()
        with self._lock:
            client = self._clients.get((service, region))
            if client is None:
                config = Config(
                    connect_timeout=CONNECT_TIMEOUT,
                    read_timeout=READ_TIMEOUT,
                    # What tries again has to know why: it is done here, in one place.
                    retries={"total_max_attempts": 1, "mode": "standard"},
                    max_pool_connections=AT_ONCE,
                )
                client = self._clients[service, region] = session.client(service, region_name=region, config=config)
            return client

    def _opened(self) -> Any:
        import boto3
        from botocore.exceptions import BotoCoreError

        with self._lock:
            if self._session is None:
                login = self._login
                try:
                    self._session = boto3.Session(
                        profile_name=login.profile,
                        aws_access_key_id=login.access_key,
                        aws_secret_access_key=login.secret_key,
                        aws_session_token=login.session_token,
                    )
                    parsers = self._session._session.get_component("response_parser_factory")
                    parsers.set_parser_defaults(timestamp_parser=_moment)
                except BotoCoreError as error:
                    raise CredentialsError(
                        f"The settings for AWS cannot be used: {error}. "
                        f"Looked at: {', '.join(_places(login, os.environ))}.",
                        provider="aws",
                    ) from error
            return self._session


def whose(login: Login, environment: Mapping[str, str]) -> str:
    """
    Return one account from another without a request.

    Args:
        login: As whom the account is used.
        environment: The variables that AWS's own tools look at.

    >>> whose(Login(profile="work"), {}) == whose(Login(), {"AWS_PROFILE": "work"})
    True
    """
    key = login.access_key or environment.get("AWS_ACCESS_KEY_ID", "")
    profile = login.profile or environment.get("AWS_PROFILE", "")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION", "")
    return " ".join((key, profile, region, environment.get("AWS_ENDPOINT_URL", "")))


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long AWS asks us to wait."""
    given = str(headers.get("retry-after", ""))
    return float(given) if given.isdigit() else None


def _places(login: Login, environment: Mapping[str, str]) -> list[str]:
    """
    List where credentials were looked for.

    >>> _places(Login(profile="work"), {})[0]
    "profile 'work'"
    """
    profile = login.profile or environment.get("AWS_PROFILE")
    places = [f"profile {profile!r}"] if profile else ["AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"]
    places.append(environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials")
    places.append(environment.get("AWS_CONFIG_FILE") or "~/.aws/config")
    return [*places, "the role of this machine"]


def _moment(written: Any) -> Any:
    """Read a moment; one that cannot be read is none, so that it spoils no other row of its answer."""
    from botocore.utils import parse_timestamp

    try:
        return parse_timestamp(written)
    except ValueError:
        return None
