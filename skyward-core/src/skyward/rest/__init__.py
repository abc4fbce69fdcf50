"""
What providers of clouds need whose API speaks JSON over HTTP; wants httpx, the extra `rest` of `skyward-core`.

`Api` makes the calls, `Service` says what holds for the API, and `skyward.rest.checked_answer` reads answers.
"""

from __future__ import annotations

from skyward.rest.api import Api, Login
from skyward.rest.checked_answer import (
    Misread,
    field,
    flag,
    listed,
    moment,
    number,
    objects,
    optional,
    readable,
    text,
    whole,
    word,
)
from skyward.rest.error_row import ErrorRow, meaning_by
from skyward.rest.joined import Joined
from skyward.rest.paging import by_cursor, by_link
from skyward.rest.rate_limit import Limit
from skyward.rest.reply import Meaning, Reply, hidden, is_lost, reply_of, shortened
from skyward.rest.service import Service
from skyward.rest.shared import Shared
from skyward.rest.terminate import end_for_good
from skyward.rest.token_login import Token, TokenLogin
from skyward.rest.unless import unless

__all__ = [
    "Api",
    "ErrorRow",
    "Joined",
    "Limit",
    "Login",
    "Meaning",
    "Misread",
    "Reply",
    "Service",
    "Shared",
    "Token",
    "TokenLogin",
    "by_cursor",
    "by_link",
    "end_for_good",
    "field",
    "flag",
    "hidden",
    "is_lost",
    "listed",
    "meaning_by",
    "moment",
    "number",
    "objects",
    "optional",
    "readable",
    "reply_of",
    "shortened",
    "text",
    "unless",
    "whole",
    "word",
]
