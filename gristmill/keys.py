"""The grammar of partition keys: what may become the name of a folder and of a partition."""

from __future__ import annotations

import re

from gristmill.contract import GristmillError

_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST = 100


class BadKey(GristmillError):
    """A name that cannot be a partition key."""


def refusal(key: str) -> str | None:
    """Why `key` cannot be a partition key, None where it can.

    Letters, digits, `_`, `-` and single dots between them, at most 100
    characters: such a name means one thing to a file system, a URL, Dagster's
    partition ranges and a shell.
    """
    if len(key) > _LONGEST:
        return f"the name {key[:20]!r}… has {len(key)} characters, at most {_LONGEST} are allowed"
    if _KEY.fullmatch(key) is None:
        return (
            f"the name {key!r} may hold only ASCII letters, digits, '_', '-' "
            "and single dots between them"
        )
    return None


def checked(key: str) -> str:
    """`key` itself. Raises BadKey where it breaks the grammar."""
    if reason := refusal(key):
        raise BadKey(reason)
    return key
