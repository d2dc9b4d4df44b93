"""Untrusted TOML: settings in a drop, pool files, settings of the data root."""

from __future__ import annotations

import codecs
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file
from gristmill.untrusted.limits import LIMITS, Limits

TOML_LIMITS: Final = replace(LIMITS, bytes=1 << 20, depth=32, digits=100)
"""Limits of a TOML file: 1 MiB, 32 levels, numbers of 100 digits."""

_KEY_PARTS = 32
_KEY_LENGTH = 1000
_DIGITS = "+-_0123456789"
# Comments and strings, which count for nothing; brackets; runs of bare keys and numbers.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
    r"|[\[\]{}.,=\n]"
    r"|[A-Za-z0-9_+-]++",
    re.DOTALL,
)


def read_toml(
    path: Path, *, root: Path, links: LinkRule = REFUSE_LINKS, limits: Limits = TOML_LIMITS
) -> dict[str, Any]:
    """Read a TOML file.

    Raises BadInput for a file that is not TOML, begins with a byte order mark or breaks a limit,
    and as `open_file`.
    """
    octets = read_file(path, root=root, most=limits.bytes, links=links)
    if octets.startswith(codecs.BOM_UTF8):
        raise BadInput(path, "begins with a byte order mark: save it as UTF-8 without one")
    try:
        text = octets.decode("utf-8")
        _check(text, path, limits)
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Besides its own error, tomllib lets those of int() and of dates through.
        raise BadInput(path, f"not TOML: {error}") from error


def _check(text: str, path: Path, limits: Limits) -> None:
    """Refuse what takes tomllib much time or stack: deep nesting, long keys, long numbers."""
    depth = parts = 0
    most = {True: limits.digits, False: _KEY_LENGTH}
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
        elif token == ".":
            parts += 1
        elif token in ("\n", ",", "="):
            parts = 0
        elif token[0] not in "\"'#" and len(token) > most[token.strip(_DIGITS) == ""]:
            line = text.count("\n", 0, match.start()) + 1
            raise BadInput(path, f"a number or key of {len(token)} characters", line)
        if depth > limits.depth or parts >= _KEY_PARTS:
            rule = (
                f"nested deeper than {limits.depth} levels"
                if depth > limits.depth
                else f"a key of more than {_KEY_PARTS} parts"
            )
            raise BadInput(path, rule, text.count("\n", 0, match.start()) + 1)
