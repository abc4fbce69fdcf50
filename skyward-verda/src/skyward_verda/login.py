"""Who we are to Verda: where the credentials are found, and the one token that all calls share."""

from __future__ import annotations

import configparser
import json
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from skyward.provider import (
    Api,
    ConfigError,
    Login,
    Misread,
    NoCredentialsError,
    ProvisionError,
    Service,
    Token,
    TokenLogin,
    number,
    optional,
    text,
)

__all__ = ["BASE_URL", "Credentials", "Wish", "find_credentials", "find_profile", "token_login"]

BASE_URL = "https://api.verda.com/v1"

_LIFETIME = 3600.0
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


@frozen(kw_only=True)
class Wish:
    """
    Say as whom the account is used; what is None is looked for where Verda's own command looks.

    Args:
        client_id: Id of the API's client.
        client_secret: Its secret.
        profile: A profile of Verda's own command; None for what `VERDA_PROFILE` says.
    """

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    profile: str | None = None

    def identity(self, environment: Mapping[str, str]) -> str:
        """
        Return what tells accounts apart without a request.

        Args:
            environment: The variables that Verda's own command looks at.

        >>> Wish().identity({"VERDA_CLIENT_ID": "me"})
        'me  '
        """
        name = self.client_id or environment.get("VERDA_CLIENT_ID", "")
        profile = self.profile or environment.get("VERDA_PROFILE", "")
        return " ".join((name, profile, environment.get("VERDA_HOME", "")))


def find_credentials(wish: Wish, environment: Mapping[str, str]) -> Credentials:
    """
    Find the credentials where Verda's own command looks as well: given, variables, the file of profiles.

    Args:
        wish: What the user gives.
        environment: The variables.

    Raises:
        NoCredentialsError: If there are none.
        ConfigError: If the file cannot be read.

    >>> found = find_credentials(Wish(), {"VERDA_CLIENT_ID": "me", "VERDA_CLIENT_SECRET": "hidden"})
    >>> found.client_id, found.base_url
    ('me', 'https://api.verda.com/v1')
    """
    kept, place = find_profile(wish, environment)
    named = {} if wish.profile is not None else environment
    base_url = (kept.get("verda_base_url") or BASE_URL).rstrip("/")
    for found_id, secret in (
        (wish.client_id, wish.client_secret),
        (named.get("VERDA_CLIENT_ID"), named.get("VERDA_CLIENT_SECRET")),
        (kept.get("verda_client_id"), kept.get("verda_client_secret")),
    ):
        if found_id and secret:
            return Credentials(client_id=found_id, client_secret=secret, base_url=base_url)
    places = [place]
    if wish.profile is None:
        places.insert(0, "VERDA_CLIENT_ID and VERDA_CLIENT_SECRET")
    raise NoCredentialsError(
        f"There are no credentials for Verda. Looked at: {', '.join(places)}.{_noticed(named)}",
        provider="verda",
        hint='Make some under "Keys" in Verda\'s console, and set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET.',
    )


def find_profile(wish: Wish, environment: Mapping[str, str]) -> tuple[Mapping[str, str], str]:
    """
    Return what Verda's own command keeps for a profile, and what errors call that place.

    Args:
        wish: What the user gives.
        environment: The variables.

    Raises:
        ConfigError: If the file cannot be read.
    """
    home = environment.get("VERDA_HOME")
    path = Path(home or "~/.verda").expanduser() / "credentials"
    shown = f"{'$VERDA_HOME' if home else '~/.verda'}/credentials"
    name = wish.profile or environment.get("VERDA_PROFILE") or "default"
    return _profile(path, name, shown), f"profile {name!r} of {shown}"


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


def token_login(own: Credentials, service: Service) -> TokenLogin:
    """
    Return the one token of an account, whichever of this process's pools asks for it.

    Args:
        own: Whose.
        service: The API.
    """

    async def ask(refresh: str | None) -> Token:
        secrets = (own.client_secret, *((refresh,) if refresh else ()))
        api = Api(service, lambda _stale: Login(account=own.client_id, secrets=secrets))
        grant = {"grant_type": "client_credentials", "client_id": own.client_id, "client_secret": own.client_secret}
        question = grant if refresh is None else {"grant_type": "refresh_token", "refresh_token": refresh}
        answer = await api.post("/oauth2/token", json=question, plain=True, once=False)
        wrong = "it is no JSON"
        try:
            return _token(json.loads(answer), own)
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

    return TokenLogin.of(f"{own.base_url} {own.client_id} {own.client_secret}", ask)


def _token(answer: object, own: Credentials) -> Token:
    access, refresh = text(answer, "access_token"), optional(answer, "refresh_token", text)
    lifetime = optional(answer, "expires_in", number)
    secrets = tuple(each for each in (access, refresh, own.client_secret) if each)
    login = Login(headers={"Authorization": f"Bearer {access}"}, account=own.client_id, secrets=secrets)
    return Token(login=login, lifetime=_LIFETIME if lifetime is None else lifetime, refresh=refresh)
