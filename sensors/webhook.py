"""Sending JSON to a webhook: within a time limit, and without redirects.

No error has the address of the webhook, which is a secret.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib import error, request

from gristmill.contract import GristmillError

SECONDS: Final = 15.0
"""For how long one message may take, the look-up of the host's name included."""


class NotSent(GristmillError):
    """A message that the webhook did not take; the text says why."""


class _NoRedirects(request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is: what it names is not the webhook."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def post(address: str, body: Mapping[str, Any], seconds: float = SECONDS) -> None:
    """Send a message. Only the status of the answer is read.

    Raises NotSent unless the answer is 2xx.
    """
    refusals: list[str | None] = []
    # A socket's limit holds for each read: an answer of a byte at a time keeps to it.
    thread = threading.Thread(
        target=lambda: refusals.append(_refusal(address, body, seconds)), daemon=True
    )
    thread.start()
    thread.join(seconds)
    refusal = refusals[0] if refusals else f"no answer in {seconds:g} s"
    if refusal is not None:
        raise NotSent(f"the webhook: {refusal}")


def _refusal(address: str, body: Mapping[str, Any], seconds: float) -> str | None:
    """Send a message, and say why it was not taken; None if it was."""
    asked = request.Request(
        address,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "gristmill"},
        method="POST",
    )
    try:
        with request.build_opener(_NoRedirects).open(asked, timeout=seconds):
            return None
    except error.HTTPError as answer:
        answer.close()
        moved = ": a redirect, which is not followed" if 300 <= answer.code < 400 else ""
        return f"it answered {answer.code}{moved}"
    except error.URLError as problem:
        reason = problem.reason
        said = reason.strerror if isinstance(reason, OSError) else None
        return f"not reached: {said or type(reason).__name__}"
    except (OSError, HTTPException, ValueError) as problem:
        # The text of some of these has the address.
        return f"not reached: {type(problem).__name__}"
