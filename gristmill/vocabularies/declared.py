"""`tokenizer.toml`, by which a person adds a tokenizer: `drops/tokenizers/<name>/`.

form = "tokenizer.json"
file = "tokenizer.json"
sha256 = "..."
eod = "<|endoftext|>"

Source: `docs/formats/vocabularies.md#tokenizer-file`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from gristmill import keys
from gristmill.contract import BadInput
from gristmill.settings.fields import did_you_mean, shown
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file
from gristmill.untrusted.toml import read_toml
from gristmill.vocabularies.engine import PATTERNS
from gristmill.vocabularies.pinned import VOCABULARIES
from gristmill.vocabularies.tokenizer_file import Form, TokenizerFile

FILE: Final = "tokenizer.toml"
MOST_BYTES: Final = 256 << 20
"""Bytes of a tokenizer's file at most."""
_KNOWN: Final = ("form", "file", "sha256", "eod", "bos", "pattern", "special", "licence")
_NEEDED: Final = ("form", "file", "sha256", "eod")
_MOST_SPECIALS: Final = 10_000
_MOST_ID: Final = 1 << 24


@dataclass(frozen=True)
class Declared:
    """What a `tokenizer.toml` says. The fields are its keys.

    name: of its folder. form: of `Form`. file: beside it. sha256: hex, of the file.
    """

    name: str
    form: Form
    file: str
    sha256: str
    eod: str
    bos: str = ""
    pattern: str = ""
    special: Mapping[str, int] = field(default_factory=dict)
    licence: str = ""

    def tokenizer(self, path: Path) -> TokenizerFile:
        """The tokenizer, of which size and ids are not yet known. path: of its file."""
        specials = tuple(sorted(self.special.items(), key=lambda each: each[1]))
        size = max(self.special.values(), default=-1) + 1
        eod = self.special.get(self.eod, -1)
        return TokenizerFile(
            self.name, self.form, path, self.sha256, size, eod, specials, None, self.pattern
        )


def read_declared(folder: Path, links: LinkRule = REFUSE_LINKS) -> Declared:
    """Read and check the `tokenizer.toml` of a drop.

    folder: the drop, whose name is that of the tokenizer. links: what happens to links in it.

    Raises BadInput, naming file, key and rule.
    """
    path = folder / FILE
    try:
        raw = read_toml(path, root=folder, links=links)
    except FileNotFoundError as error:
        raise BadInput(path, "is missing: `gristmill tokenizers FILE` writes it") from error
    if unknown := sorted(set(raw) - set(_KNOWN)):
        known = f"the known keys are {', '.join(_KNOWN)}"
        raise BadInput(
            path, f"unknown key {shown(unknown[0])}{did_you_mean(unknown[0], _KNOWN)}; {known}"
        )
    for key in _NEEDED:
        if key not in raw:
            raise BadInput(path, f"`{key}` is missing: write {_AS[key]}")
    for key, value in raw.items():
        if key != "special" and not (isinstance(value, str) and 0 < len(value) <= 500):
            raise BadInput(path, f"{key} = {shown(value)}: must be a text of 1 to 500 characters")
    _check_name(path, folder.name)
    _check_values(path, raw)
    return Declared(folder.name, **raw)


_AS: Final = {
    "form": 'form = "tokenizer.json"',
    "file": 'file = "tokenizer.json"',
    "sha256": 'sha256 = "<64 hexadecimal digits>", which `sha256sum FILE` prints',
    "eod": 'eod = "<|endoftext|>", the text of the token that ends a document',
}


def _check_name(path: Path, name: str) -> None:
    reason = keys.refusal(name)
    if reason is None and name in {*(each.name for each in VOCABULARIES), "provenance"}:
        reason = f"{name} is the name of a built-in tokenizer: rename the folder"
    if reason is not None:
        raise BadInput(path, reason)


def _check_values(path: Path, raw: Mapping[str, Any]) -> None:
    """Raise BadInput for values that do not fit each other."""
    form, special = raw["form"], raw.get("special", {})
    if form not in get_args(Form):
        raise BadInput(path, f"form = {shown(form)}: must be one of {', '.join(get_args(Form))}")
    if "/" in raw["file"] or keys.refusal(raw["file"]) or raw["file"] == FILE:
        raise BadInput(path, f"file = {shown(raw['file'])}: must be the name of a file beside it")
    if not re.fullmatch("[0-9a-f]{64}", raw["sha256"]):
        raise BadInput(path, f"sha256 = {shown(raw['sha256'])}: must have 64 hexadecimal digits")
    if form != "tiktoken":
        for key in ("pattern", "special"):
            if key in raw:
                raise BadInput(path, f"{key}: the file of the form {form} says it: leave it out")
        return
    if raw.get("pattern") not in PATTERNS:
        raise BadInput(
            path,
            f"pattern = {shown(raw.get('pattern'))}: ranks need the rule that cuts a text: must be "
            f"one of {', '.join(PATTERNS)}",
        )
    if (
        not isinstance(special, dict)
        or not 0 < len(special) <= _MOST_SPECIALS
        or not all(type(token) is int and 0 <= token < _MOST_ID for token in special.values())
        or len(set(special.values())) != len(special)
    ):
        raise BadInput(path, 'special: must give each control token its id, as { "<|x|>" = 5 }')
    for key in ("eod", "bos"):
        if key in raw and raw[key] not in special:
            raise BadInput(path, f"{key} = {shown(raw[key])}: must be one of `special`")


def declared_file(folder: Path, declared: Declared, links: LinkRule = REFUSE_LINKS) -> bytes:
    """The bytes of the file that a `tokenizer.toml` names."""
    path = folder / declared.file
    try:
        data = read_file(path, root=folder, most=MOST_BYTES, links=links)
    except FileNotFoundError as error:
        raise BadInput(path, f"is missing, and {FILE} names it: put it there") from error
    found = hashlib.sha256(data).hexdigest()
    if found != declared.sha256:
        raise BadInput(
            path,
            f"has the sha256 {found}, {FILE} has {declared.sha256}: bring the right file, or "
            "write its sha256 there",
        )
    return data
