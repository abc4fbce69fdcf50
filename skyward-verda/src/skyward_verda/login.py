"""Who we are to Verda: where the credentials are found, and the one token that all calls share."""

from __future__ import annotations

import asyncio
import configparser
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakKeyDictionary, WeakValueDictionary

from attrs import Factory, define, field, frozen

from skyward.provider import (
    Api,
    ConfigError,
    Login,
    Misread,
    NoCredentialsError,
    ProvisionError,
    Service,
    SkywardError,
    number,
    optional,
    reply_of,
    text,
)

__all__ = ["BASE_URL", "EARLY", "Credentials", "Tokens", "find_credentials", "used_for"]

BASE_URL = "https://api.verda.com/v1"

EARLY = 30.0
"""Seconds before its end at which a token is renewed."""

_LIFE = 3600.0
_BOTH = ("VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET")
# Names of the single key that other clouds have, and of Verda under its former name.
_NOT_ENOUGH = ("VERDA_API_KEY", "VERDA_API_TOKEN", "VERDA_TOKEN", "DATACRUNCH_CLIENT_ID", "DATACRUNCH_CLIENT_SECRET")


@frozen(kw_only=True)
class Credentials:
    """
    Say who uses the API, and where it is.

    Args:
        client_id: Id of the API's client.
        client_secret: Its secret.
        base_url: Where the API is.
    """

    client_id: str
    client_secret: str = field(repr=False)
    base_url: str = BASE_URL


def find_credentials(
    client_id: str | None, client_secret: str | None, profile: str | None, environment: Mapping[str, str]
) -> Credentials:
    """
    Find the credentials where Verda's own command looks as well: given, variables, the file of profiles.

    Args:
        client_id: What the user gives.
        client_secret: What the user gives.
        profile: The profile to use; None for what `VERDA_PROFILE` says.
        environment: The variables.

    Raises:
        NoCredentialsError: If there are none.
        ConfigError: If the file cannot be read.

    >>> found = find_credentials(None, None, None, {"VERDA_CLIENT_ID": "me", "VERDA_CLIENT_SECRET": "hidden"})
    >>> found.client_id, found.base_url
    ('me', 'https://api.verda.com/v1')
    """
    home = environment.get("VERDA_HOME")
    path, shown = (
        Path(home or "~/.verda").expanduser() / "credentials",
        f"{'$VERDA_HOME' if home else '~/.verda'}/credentials",
    )
    name = profile or environment.get("VERDA_PROFILE") or "default"
    kept = _profile(path, name, shown)
    named = {} if profile is not None else environment
    base_url = (kept.get("verda_base_url") or BASE_URL).rstrip("/")
    for found_id, secret in (
        (client_id, client_secret),
        (named.get("VERDA_CLIENT_ID"), named.get("VERDA_CLIENT_SECRET")),
        (kept.get("verda_client_id"), kept.get("verda_client_secret")),
    ):
        if found_id and secret:
            return Credentials(client_id=found_id, client_secret=secret, base_url=base_url)
    places = [f"profile {name!r} of {shown}"]
    if profile is None:
        places.insert(0, "VERDA_CLIENT_ID and VERDA_CLIENT_SECRET")
    raise NoCredentialsError(
        f"There are no credentials for Verda. Looked at: {', '.join(places)}.{_noticed(named)}",
        provider="verda",
        hint='Make some under "Keys" in Verda\'s console, and set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET.',
    )


def _noticed(environment: Mapping[str, str]) -> str:
    """Return what is set and does not do."""
    alone = [name for name in _NOT_ENOUGH if environment.get(name)]
    if alone:
        return f" {' and '.join(alone)} alone is not enough: Verda's API wants a client's id and its secret."
    half = [name for name in _BOTH if not environment.get(name)]
    return f" {half[0]} is not set." if len(half) == 1 else ""


def _profile(path: Path, name: str, shown: str) -> Mapping[str, str]:
    """Read one profile of the file that Verda's own command writes."""
    parser, wrong = configparser.ConfigParser(interpolation=None), ""
    try:
        with path.open(encoding="utf-8") as file:
            parser.read_file(file)
    except FileNotFoundError:
        return {}
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        # What its lines say must be in no error, nor behind one.
        wrong = type(error).__name__
    if wrong:
        raise ConfigError(f"{shown} cannot be read: {wrong}.", provider="verda")
    return dict(parser[name]) if parser.has_section(name) else {}


def used_for(life: float) -> float:
    """
    Return how long a token is used before it is renewed, in seconds.

    Args:
        life: How long it lives.

    >>> used_for(3600.0), used_for(40.0)
    (3570.0, 20.0)
    """
    return max(life - EARLY, life / 2)


@frozen
class _Token:
    """Hold a token: how calls are made ours with it, how it is renewed, and from when on."""

    login: Login
    refresh: str | None = field(repr=False)
    renew_at: float


_shared: WeakValueDictionary[str, Tokens] = WeakValueDictionary()
_sharing = threading.Lock()


@define(eq=False, slots=True, weakref_slot=True)
class Tokens:
    """
    Keep the one token of an account, whichever of this process's pools asks for it.

    Args:
        credentials: Whose.
        service: The API.
    """

    _credentials: Credentials
    _service: Service = field(repr=False)
    _token: _Token | None = field(default=None, init=False, repr=False)
    _api: Api = field(
        default=Factory(lambda self: Api(self._service, self._nobody), takes_self=True), init=False, repr=False
    )
    _asking: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = field(
        factory=WeakKeyDictionary, init=False, repr=False
    )

    @classmethod
    def of(cls, credentials: Credentials, service: Service) -> Tokens:
        """
        Return the one of an account.

        Args:
            credentials: Whose.
            service: The API.
        """
        words = (credentials.base_url, credentials.client_id, credentials.client_secret)
        key = hashlib.sha256("\0".join(words).encode()).hexdigest()
        with _sharing:
            found = _shared.get(key)
            if found is None:
                found = _shared[key] = cls(credentials, service)
            return found

    async def login(self, stale: Login | None) -> Login:
        """
        Return what makes a call ours; a token that is about to end is renewed first.

        Args:
            stale: What was refused; None if nothing was.

        Raises:
            CredentialsError: If the credentials are refused.
        """
        async with self._asking.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            token = self._token
            refused = token is not None and token.login == stale
            if token is None or refused or time.monotonic() >= token.renew_at:
                token = self._token = await self._renewed(None if refused else token)
            return token.login

    async def _renewed(self, old: _Token | None) -> _Token:
        if old is not None and old.refresh is not None:
            try:
                return await self._asked({"grant_type": "refresh_token", "refresh_token": old.refresh})
            except SkywardError as error:
                reply = reply_of(error)
                if reply is None or reply.status not in (400, 401):
                    raise
        own = self._credentials
        return await self._asked(
            {"grant_type": "client_credentials", "client_id": own.client_id, "client_secret": own.client_secret}
        )

    async def _asked(self, question: Mapping[str, str]) -> _Token:
        began = time.monotonic()
        answer = await self._api.post("/oauth2/token", json=question, plain=True, once=False)
        wrong = "it is no JSON"
        try:
            return self._read(json.loads(answer), began)
        except Misread as error:
            wrong = str(error)
        except ValueError:
            pass
        # There may be a token in it, so it is not shown.
        raise ProvisionError(
            f"Verda answered POST /oauth2/token with what cannot be read: {wrong}.",
            provider="verda",
            hint="Try again later; if it stays so, see whether there is a newer release of Skyward.",
        )

    def _read(self, answer: object, began: float) -> _Token:
        own = self._credentials
        access, refresh = text(answer, "access_token"), optional(answer, "refresh_token", text)
        life = optional(answer, "expires_in", number)
        secrets = tuple(each for each in (access, refresh, own.client_secret) if each)
        login = Login(headers={"Authorization": f"Bearer {access}"}, account=own.client_id, secrets=secrets)
        return _Token(login, refresh, began + used_for(_LIFE if life is None else life))

    def _nobody(self, _stale: Login | None) -> Login:
        """Return what a call is made with that asks for a token."""
        known = () if self._token is None else self._token.login.secrets
        return Login(account=self._credentials.client_id, secrets=(self._credentials.client_secret, *known))
