"""Calls of an API over real HTTP."""

from __future__ import annotations

import asyncio
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from email.utils import formatdate
from typing import Any, TypeVar

import pytest

from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, SkywardError
from skyward.rest import Api, Limit, Login, Meaning, Reply, Service, listed, optional, reply_of, text
from tests.rest.server import Scripted, scripted

T = TypeVar("T")
KEY = "key+0123/456789"


@pytest.fixture
def server() -> Iterator[Scripted]:
    with scripted() as server:
        yield server


def api(server: Scripted | str, **facts: Any) -> Api:
    url = server if isinstance(server, str) else server.url
    service = Service(provider="sample", title="Sample", base_url=url, **facts)
    return Api(service, lambda stale: Login.bearer(KEY))


def ask(call: Callable[[], Awaitable[T]]) -> T:
    async def run() -> T:
        return await call()

    return asyncio.run(run())


def failure(call: Callable[[], Awaitable[object]]) -> SkywardError:
    with pytest.raises(SkywardError, match="Sample") as caught:
        ask(call)
    return caught.value


def test_a_call_says_who_asks_and_what(server: Scripted) -> None:
    """Method, path with its question, body and login arrive; the answer comes back parsed."""
    server.say((201, {"id": 7}))
    assert {"id": 7} == ask(lambda: api(server).post("/v1/machines", params={"a": "b c", "n": 2}, json={"size": "s"}))
    (call,) = server.calls
    assert ("POST", "/v1/machines?a=b+c&n=2", {"size": "s"}) == (call.method, call.path, call.body)
    assert f"Bearer {KEY}" == call.headers["authorization"]


def test_a_key_with_several_values_is_repeated(server: Scripted) -> None:
    """Numbers and text, each with the key before it."""
    ask(lambda: api(server).get("/v1/machines", params={"id": ["a", "b"], "n": 1}))
    assert "/v1/machines?id=a&id=b&n=1" == server.calls[0].path


def machines(server: Scripted, most: int = 5) -> list[Any]:
    """Read all pages of a list with a cursor."""

    def more(answer: Any) -> dict[str, str] | None:
        after = optional(answer, "next", text)
        return None if after is None else {"after": after}

    found: list[Any] = ask(
        lambda: api(server).pages(
            "/v1/machines", lambda answer: listed(answer, "machines"), more, params={"limit": 2}, most=most
        )
    )
    return found


def test_a_list_is_read_page_by_page(server: Scripted) -> None:
    """What asks for the next page is added to what was asked."""
    server.say((200, {"machines": [1, 2], "next": "t"}), (200, {"machines": [3]}))
    assert [1, 2, 3] == machines(server)
    assert ["/v1/machines?limit=2", "/v1/machines?limit=2&after=t"] == [call.path for call in server.calls]


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ([{"machines": [1], "next": "t"}], "a page leads to itself"),
        ([{"machines": [1], "next": "t"}, {"machines": [], "next": "u"}], "an empty page leads to another"),
        ([{"machines": [n], "next": str(n)} for n in range(9)], "in more than 5 pages"),
    ],
)
def test_a_list_without_an_end_is_none(server: Scripted, pages: list[Any], said: str) -> None:
    """A part of a list would hide machines that are billed."""
    server.say(*((200, page) for page in pages))
    with pytest.raises(ProvisionError, match=said):
        machines(server)


def test_an_error_names_the_fields_that_are_wrong(server: Scripted) -> None:
    """A 422 lists them beside its message."""
    server.say((422, {"detail": [{"loc": ["body", "disk_gb"], "msg": "must be at least 10"}]}))
    error = failure(lambda: api(server).post("/v1/machines", json={"disk_gb": 1}))
    assert "422: disk_gb: must be at least 10." in str(error)


def test_an_answer_without_a_body_is_none(server: Scripted) -> None:
    """So is one with a status that the caller is fine with."""
    server.say(204, (404, {"message": "gone"}))
    assert ask(lambda: api(server).delete("/v1/machines/7")) is None
    assert ask(lambda: api(server).delete("/v1/machines/7", also=(404,))) is None


def test_an_answer_may_be_plain_text(server: Scripted) -> None:
    """An id that is no JSON comes as it is."""
    server.say((202, "0b9c-77"))
    assert "0b9c-77" == ask(lambda: api(server).post("/instances", plain=True))


def test_a_login_may_have_to_be_waited_for_and_renewed(server: Scripted) -> None:
    """A token that was refused is renewed once, and the call is made with the new one."""
    server.say((401, {"message": "expired"}), (200, {"ok": 1}))
    given: list[Login | None] = []

    async def login(stale: Login | None) -> Login:
        given.append(stale)
        return Login.bearer("fresh-token" if stale else "stale-token")

    service = Service(provider="sample", title="Sample", base_url=server.url)
    assert {"ok": 1} == ask(lambda: Api(service, login).post("/x"))
    assert ["Bearer stale-token", "Bearer fresh-token"] == [call.headers["authorization"] for call in server.calls]
    assert [None, Login.bearer("stale-token")] == given


def test_a_key_that_is_refused_is_sent_once(server: Scripted) -> None:
    """The same login is not tried again."""
    server.say((401, {"id": "unauthorized", "message": "Unable to authenticate you"}))
    error = failure(lambda: api(server).get("/v2/account"))
    assert CredentialsError is type(error)
    assert "Sample refused GET /v2/account: 401: Unable to authenticate you." == error.message
    assert 1 == len(server.calls)


@pytest.mark.slow
def test_reads_are_tried_again(server: Scripted) -> None:
    """Trouble of theirs, a lost answer and a rate limit are overcome."""
    server.say((503, "<html>busy</html>"), 0, (429, {}, {"Retry-After": "0"}), (200, {"ok": 1}))
    assert {"ok": 1} == ask(lambda: api(server).get("/x"))
    assert 4 == len(server.calls)


@pytest.mark.parametrize("answer", [0, (0, b'{"dro'), 500, 502, 503, 504], ids=str)
def test_what_makes_something_is_sent_once_if_the_answer_is_lost(server: Scripted, answer: Any) -> None:
    """It is unknown what came of it, and the error is the one that has core look."""
    server.say(answer)
    error = failure(lambda: api(server).post("/v2/droplets", json={}))
    assert ProvisionError is type(error)
    assert 1 == len(server.calls)


def test_a_creation_is_sent_again_after_a_rate_limit(server: Scripted) -> None:
    """Who was told to wait has made nothing."""
    server.say((429, "Too many"), (202, {"id": 1}))
    assert {"id": 1} == ask(lambda: api(server).post("/v2/droplets"))


def test_who_is_told_to_come_back_tomorrow_says_so_at_once(server: Scripted) -> None:
    """No call waits for that, and the error tells when."""
    server.say((429, {"error": "search_quota_exceeded"}, {"Retry-After": "7200"}))
    error = failure(lambda: api(server).get("/x"))
    assert "429: search_quota_exceeded. It is to be asked again in 7200 s." in error.message
    assert 1 == len(server.calls)


def test_who_is_not_there_is_called_three_times() -> None:
    """Nothing was sent, so that even what makes something is tried again, and the error says why."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        error = failure(lambda: api(url).post("/v2/droplets"))
    reply = reply_of(error)
    assert reply is not None
    assert (ProvisionError, 0, False) == (type(error), reply.status, reply.sent)
    assert "Sample gave no answer to POST /v2/droplets: " in error.message


def test_an_answer_that_does_not_come_is_given_up(server: Scripted) -> None:
    """The time limit is for the whole answer."""
    server.say(-1)
    error = failure(lambda: api(server).post("/x", timeout=0.2))
    assert "Sample gave no answer to POST /x: there was none within 0.2 s." == error.message


def test_an_answer_that_never_ends_is_cut(server: Scripted) -> None:
    """No more of it is kept than an answer may be long."""
    server.say((200, b"[" + b"1," * 100_000))
    error = failure(lambda: api(server, largest=1000).post("/x"))
    assert "it is larger than 1000 bytes" in error.message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<html><title>Sign in</title></html>", "it is no JSON"),
        ('{"id": "x"', "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ({}, "the field 'id' is missing"),
        ({"id": None}, "'id' is not text but None"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_answer_that_cannot_be_read_is_shown(server: Scripted, body: Any, reason: str) -> None:
    """The error shows what is wrong with it and how it begins."""
    server.say((200, body))
    error = failure(lambda: api(server).get("/x", read=lambda row: text(row, "id")))
    assert ProvisionError is type(error)
    assert f"Sample answered GET /x with what cannot be read: {reason}. The answer: " in error.message
    assert len(error.message) < 600


def test_a_part_of_an_answer_that_cannot_be_read_is_shown(server: Scripted) -> None:
    """What was had before is read with the same care."""
    client = api(server)
    ask(lambda: client.get("/x"))
    assert "a" == client.understood({"id": "a"}, lambda row: text(row, "id"), "GET /x")
    with pytest.raises(ProvisionError, match="Sample answered GET /x with what cannot be read: 'id' is not") as caught:
        client.understood({"id": 7, "echo": KEY}, lambda row: text(row, "id"), "GET /x")
    assert KEY not in f"{caught.value} {caught.value.__dict__}"


def test_no_secret_is_shown(server: Scripted) -> None:
    """What an answer repeats of the key is in no message, and in nothing that travels with the error."""
    quoted = KEY.replace("+", "%2B").replace("/", "%2F")
    server.say((400, f'{{"message": "bad key {KEY} or {quoted}", "echo": "Bearer {KEY}"}}', {"X-Echo": KEY}))
    error = failure(lambda: api(server).get("/x", params={"api_key": KEY}))
    shown = f"{error} {error.__dict__} {reply_of(error)!r} {pickle.dumps(error)!r}"
    assert "Sample refused GET /x?api_key=***: 400: bad key *** or ***." == error.message
    assert KEY not in shown
    assert quoted not in shown


def test_an_error_travels_with_its_reply(server: Scripted) -> None:
    """Who gets it from another process can still ask for the reply."""
    server.say((404, {"message": "no such thing"}))
    error = pickle.loads(pickle.dumps(failure(lambda: api(server).get("/x"))))
    reply = reply_of(error)
    assert reply is not None
    assert (404, "no such thing") == (reply.status, reply.words)


def test_the_provider_says_what_a_reply_means(server: Scripted) -> None:
    """Its table is asked about every reply, a success that hides a failure among them."""

    def meaning(reply: Reply) -> Meaning | None:
        return Meaning(kind=CapacityError, hint="Try another.", again=False) if "no room" in reply.text else None

    server.say((200, {"success": False, "msg": "no room"}))
    error = failure(lambda: api(server, meaning=meaning).put("/asks/1", once=True, subject="RTX 4090"))
    assert CapacityError is type(error)
    assert "Sample refused PUT /asks/1 (RTX 4090): no room. Try another." == str(error)
    server.say((503, "no room"))
    assert CapacityError is type(failure(lambda: api(server, meaning=meaning).get("/x")))


def test_a_redirect_is_not_followed(server: Scripted) -> None:
    """A key goes to no other server."""
    server.say((302, "", {"Location": "http://127.0.0.1:9/other"}))
    assert "302" in failure(lambda: api(server).get("/x")).message
    assert 1 == len(server.calls)


@pytest.mark.parametrize("url", ["http://api.example.com", "ftp://127.0.0.1", "http://10.0.0.1:8080"])
def test_keys_travel_in_no_open_letter(url: str) -> None:
    """Plain HTTP is for this machine only."""
    with pytest.raises(ConfigError, match="must begin with https://"):
        api(url)


def test_all_calls_of_an_account_share_its_limits(server: Scripted) -> None:
    """Two clients with one key are as fast as one."""
    limits = {"": [Limit(5, 0.5)]}
    first, second = api(server, limits=limits), api(server, limits=limits)

    async def both() -> float:
        began = time.monotonic()
        await asyncio.gather(*(client.get("/x") for client in (first, second) * 3))
        return time.monotonic() - began

    # One at once, the other five one every 0.1 s.
    assert 0.5 <= asyncio.run(both())


def test_an_allowance_that_is_used_up_holds_all_calls(server: Scripted) -> None:
    """After an answer that says so, no client calls until there is again."""
    spent = {"RateLimit-Remaining": "0", "RateLimit-Reset": "1"}
    server.say((200, {}, spent), (200, {}))

    async def two() -> float:
        client = api(server, limits={"": [Limit(1000, 1.0)]})
        await client.get("/x")
        began = time.monotonic()
        await client.get("/x")
        return time.monotonic() - began

    assert 0.9 <= asyncio.run(two())


def test_one_value_serves_many_event_loops(server: Scripted) -> None:
    """Each loop has connections of its own, and they end with it."""
    client = api(server)
    assert [{}, {}] == [asyncio.run(client.get("/x")), asyncio.run(client.get("/x"))]


def test_calls_of_one_loop_share_connections(server: Scripted) -> None:
    """A poll costs no handshake."""
    ports: list[int] = []
    accept = server.process_request

    def counted(request: Any, address: Any) -> None:
        ports.append(address[1])
        accept(request, address)

    server.process_request = counted  # type: ignore[method-assign]

    async def many() -> None:
        client = api(server)
        for _ in range(5):
            await client.get("/x")

    asyncio.run(many())
    assert 1 == len(ports)


@pytest.mark.parametrize("token", ["", " ", "two words", "clé", "a\nb"])
def test_what_is_no_key_is_not_sent(token: str) -> None:
    """No header could hold it, and no message shows it."""
    with pytest.raises(CredentialsError, match="characters in it that no key has") as caught:
        Login.bearer(token)
    assert token.strip() == "" or token not in str(caught.value)


def test_a_name_that_cannot_be_looked_up_at_the_end_is_asked_for_without_threads(server: Scripted) -> None:
    """While the interpreter ends a pool that was forgotten is still given back: no thread can be started then."""
    port = server.server_address[1]
    script = (
        "import asyncio, atexit\n"
        "from skyward.rest import Api, Login, Service\n"
        f"service = Service(provider='sample', title='Sample', base_url='http://localhost:{port}')\n"
        "api = Api(service, lambda stale: Login.bearer('key'))\n"
        # As the engine's loop, which is not closed then: closing it would start a thread.
        "loop = asyncio.new_event_loop()\n"
        "atexit.register(lambda: print(loop.run_until_complete(api.get('/x'))))\n"
        "import concurrent.futures.thread\n"
        "print('over')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert "over\n{}\n" == done.stdout


@pytest.mark.parametrize("behind", [0.0, 4500.0, -90.0])
def test_the_other_sides_clock_is_read_from_its_replies(server: Scripted, behind: float) -> None:
    """To about a second; what is no success, and a date that is none, tell nothing."""
    date = formatdate(time.time() + behind, usegmt=True)
    server.say((200, {}, {"Date": date}), (200, {}, {"Date": "soon"}), (404, {}, {"Date": formatdate(0.0)}))
    one = api(server)
    assert one.ahead is None
    for _ in range(2):
        ask(lambda: one.get("/"))
        assert behind == pytest.approx(one.ahead, abs=2.0)
    ask(lambda: one.get("/", also=(404,)))
    assert behind == pytest.approx(one.ahead, abs=2.0)
