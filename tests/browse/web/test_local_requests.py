"""Which requests reach the web server, by Host, Origin, form and what the browser says."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.routing import compile_path

from gristmill.browse.web.local_requests import LocalRequests

JSON = {"content-type": "application/json"}
HOST = "127.0.0.1:3000"
FRAMES = {"x-frame-options": "DENY", "content-security-policy": "frame-ancestors 'none'"}


def ask(
    method: str = "GET",
    address: str = "/",
    headers: Mapping[str, str] | list[tuple[str, str]] = {},  # noqa: B006
    host: str | None = HOST,
    kind: str = "http",
) -> list[dict[str, Any]]:
    """What `LocalRequests` sends, in front of an application that answers 200 or accepts."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"own", b"1")]})
        await send({"type": "http.response.body", "body": b"answered"})

    path, _, query = address.partition("?")
    pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
    if host is not None:
        pairs = [("Host", host), *pairs]
    scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
        **({"method": method} if kind == "http" else {}),
    }
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    asyncio.run(LocalRequests(answer)(scope, None, send))  # type: ignore[arg-type]
    return sent


def status(*arguments: Any, **named: Any) -> int:
    return int(ask(*arguments, **named)[0]["status"])


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:3000", "localhost:3000", "LOCALHOST:8080", "[::1]", "[::1]:3000"],
)
def test_names_of_this_machine_are_answered_at_any_port(host):
    assert status(host=host) == 200
    assert (
        status("POST", "/graphql", {**JSON, "Origin": f"http://{host.lower()}"}, host=host) == 200
    )


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:3000", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("127.0.0.1:3000.evil.example", "127.0.0.1:x", "127.0.0.2", "127x0x0x1", "::1", "[::2]"),
        *("localhost:", "localhost@evil.example", "evil.example@localhost", "", "0.0.0.0:3000"),
    ],
)
def test_any_other_host_is_refused(host):
    assert status(host=host) == 400
    assert status("POST", "/graphql", JSON, host=host) == 400


def test_requests_of_own_pages_are_served_and_hosts_named_once():
    assert status(host=None) == 400
    assert status(headers=[("host", "localhost")]) == 400
    (closed,) = ask(kind="websocket", address="/graphql", host="evil.example")
    assert closed["type"] == "websocket.close"
    start, body = ask(host="evil.example")
    assert b"127.0.0.1" in body["body"]
    assert (b"content-length", str(len(body["body"])).encode()) in start["headers"]
    for headers in ({}, {"Origin": f"http://{HOST}"}, {"Origin": f"https://{HOST}"}):
        assert status("GET", "/runs", headers) == 200
        assert status("POST", "/graphql?op=RunsQuery", {**JSON, **headers}) == 200
        (accepted,) = ask(kind="websocket", address="/graphql", headers=headers)
        assert accepted == {"type": "websocket.accept"}
    assert status("POST", "/graphql") == 415
    assert status("POST", "/graphql", {"Content-Type": "application/graphql"}) == 415
    assert status("POST", "/graphql", {"Content-Type": "application/json; charset=utf-8"}) == 200
    assert status("POST", "/report_asset_materialization/a") == 200
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(LocalRequests(application)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "http://127.0.0.1:3001", "http://127.0.0.1", "null", ""),
        *("http://localhost:3000", "http://127.0.0.1:3000.evil.example", "ftp://127.0.0.1:3000"),
    ],
)
def test_what_another_origin_sends_is_refused(origin):
    for method, address in (("GET", "/"), ("POST", "/graphql"), ("POST", "/report_asset_check/a")):
        assert status(method, address, {**JSON, "Origin": origin}) == 403
    (closed,) = ask(kind="websocket", address="/graphql", headers={"Origin": origin})
    assert closed["type"] == "websocket.close"
    both = [("Origin", f"http://{HOST}"), ("Origin", origin), *JSON.items()]
    assert status("POST", "/graphql", both) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_what_a_page_of_another_site_causes_is_refused_but_a_link(site):
    """Another port of this machine is of the same site."""
    said = {"Sec-Fetch-Site": site}
    link = {**said, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert status("GET", "/logs/run/step", said) == 403
    assert status("POST", "/graphql", {**JSON, **said}) == 403
    assert status("GET", "/runs", link) == 200
    assert status("POST", "/graphql", {**JSON, **link}) == 403
    assert status("GET", "/runs", {**link, "Sec-Fetch-Dest": "iframe"}) == 403
    assert status("GET", "/runs", {**link, "Sec-Fetch-Mode": "no-cors"}) == 403
    assert status("GET", "/graphql?query={version}", link) == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_what_a_person_or_an_own_page_asks_is_served(site):
    assert status("GET", "/runs", {"Sec-Fetch-Site": site}) == 200
    assert status("POST", "/graphql", {**JSON, "Sec-Fetch-Site": site}) == 200


@pytest.mark.parametrize("path", ["/graphql", "/graphql/", "/prefix/graphql"])
def test_no_address_executes_graphql(path):
    query = "query=mutation{reloadWorkspace{__typename}}"
    for method in ("GET", "HEAD"):
        assert status(method, f"{path}?{query}") == 403
        assert status(method, f"{path}?{query}", {"Accept": "text/html"}) == 403
    assert status("POST", f"{path}?{query}") == 415
    assert status("GET", path, {"Accept": "text/html"}) == 200
    assert status("GET", f"/runs?{query}") == 200


@pytest.mark.parametrize("end", ["\n", "/\n", "\r", "\t", "\x00", "\x7f", "\x85", "\u2028"])
def test_a_path_with_a_control_character_is_refused(end):
    # Starlette takes "/graphql\n" for "/graphql": a route's pattern ends in `$`.
    assert re.match(compile_path("/graphql")[0].pattern, "/graphql\n")
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    for headers in ({}, {**link, "Sec-Fetch-Dest": "document"}):
        assert status("GET", f"/graphql{end}?query=mutation{{version}}", headers) == 400
        assert status("POST", f"/graphql{end}", {**JSON, **headers}) == 400
    (closed,) = ask(kind="websocket", address=f"/graphql{end}")
    assert closed["type"] == "websocket.close"
    assert status("GET", "/assets/a b/\N{LATIN SMALL LETTER E WITH ACUTE}") == 200


@pytest.mark.parametrize(
    "kind",
    [
        *("text/plain", "text/plain; a=application/json", "application/x-www-form-urlencoded"),
        *("multipart/form-data; boundary=x", "TEXT/PLAIN"),
    ],
)
def test_what_a_form_can_send_is_refused(kind):
    for path in ("/graphql", "/report_asset_materialization/a"):
        for method in ("POST", "PUT", "DELETE"):
            assert status(method, path, {"Content-Type": kind}) == 415
    both = [("Content-Type", "application/json"), ("Content-Type", kind)]
    assert status("POST", "/graphql", both) == 415


@pytest.mark.parametrize("host", [HOST, "evil.example"])
def test_every_answer_forbids_frames(host):
    headers = {name.decode(): value.decode() for name, value in ask(host=host)[0]["headers"]}
    assert FRAMES.items() <= headers.items()
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert ("own" in headers) == (host == HOST)
