"""Which requests the web server takes: those of its own pages and of programs on this machine."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

GRAPHQL = "/graphql"
# Any port: a tunnel may listen on another one than the server.
_THIS_MACHINE = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")
# What a page may send to another site without asking it first.
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_READS = ("GET", "HEAD", "OPTIONS")
_POLICY_VIOLATION = 1008
_HEADERS = (
    (b"x-frame-options", b"DENY"),
    # A second policy beside Dagster's own: a browser obeys both.
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Refusal(NamedTuple):
    """Why a request is refused: the HTTP status, and a sentence for the person who sent it."""

    status: HTTPStatus
    reason: str


class LocalRequests:
    """ASGI middleware that answers refused requests itself, and forbids frames in every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with the reason why it is refused."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        refused = refusal(scope)
        if refused is None:
            await self._app(scope, receive, send_with_headers)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        else:
            answer = PlainTextResponse(f"{refused.reason}\n", refused.status)
            await answer(scope, receive, send_with_headers)


def refusal(scope: Scope) -> Refusal | None:
    """Returns why a request is refused, or None.

    scope: the ASGI connection scope of a request or a websocket.
    """
    if not scope["path"].isprintable():
        # Routes are patterns that end in `$`, which also matches before a line feed at the end.
        return Refusal(HTTPStatus.BAD_REQUEST, "The path has a control character.")
    headers = Headers(raw=[(name.lower(), value.lower()) for name, value in scope["headers"]])
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _THIS_MACHINE.fullmatch(hosts[0]):
        return Refusal(
            HTTPStatus.BAD_REQUEST,
            "This server answers to 127.0.0.1, localhost and [::1] alone: use one of these names.",
        )
    own_pages = (f"http://{hosts[0]}", f"https://{hosts[0]}")
    if any(origin not in own_pages for origin in headers.getlist("origin")):
        return Refusal(HTTPStatus.FORBIDDEN, "A page of another site sent this request.")
    if _is_sent_by_another_site(scope, headers):
        return Refusal(HTTPStatus.FORBIDDEN, "A page of another site caused this request.")
    return _refused_form(scope, headers) if scope["type"] == "http" else None


def _is_sent_by_another_site(scope: Scope, headers: Headers) -> bool:
    """Whether the browser says so; a person may follow a link from another site to a page here."""
    if all(site in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
        return False
    is_link = headers.getlist("sec-fetch-mode") == ["navigate"]
    is_whole_page = headers.getlist("sec-fetch-dest") == ["document"]
    return not (is_link and is_whole_page and scope.get("method") in ("GET", "HEAD"))


def _refused_form(scope: Scope, headers: Headers) -> Refusal | None:
    """Returns why the form of a request is refused: a page could send it unasked, or None."""
    # The server may be started with a prefix before its paths.
    is_graphql = scope["path"].rstrip("/").endswith(GRAPHQL)
    if scope["method"] in _READS:
        # Dagster executes a mutation from the address; a POST of JSON only from its body.
        if is_graphql and scope["query_string"]:
            return Refusal(HTTPStatus.FORBIDDEN, "Send GraphQL by POST, in the body.")
        return None
    kinds = [kind.partition(";")[0].strip() for kind in headers.getlist("content-type")]
    if any(kind in _FORMS for kind in kinds) or (is_graphql and kinds != ["application/json"]):
        return Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON: application/json.")
    return None
