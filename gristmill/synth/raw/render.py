"""How conversations are rendered: `[render]` in the recipe of their drop."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.settings.fields import did_you_mean, shown
from gristmill.synth.render.chat.pieces import TEMPLATES
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file
from gristmill.untrusted.toml import read_toml

RECIPE: Final = "corpus.toml"
HARMONY: Final = "harmony"
_HARMONY_TOKENS: Final = "o200k_harmony"
_DROP: Final = "drop:"
_MOST_BYTES: Final = 256 << 10
_KEYS: Final = ("template", "tokenizer", "kwargs", "date", "thinking", "expand")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "thinking": ("tags", "field"),
    "expand": ("", "turns"),
}


@dataclass(frozen=True)
class Render:
    """How conversations are rendered.

    template: harmony, one of `TEMPLATES`, or `drop:` and the name of a file beside the recipe.
    path, source: that file and its text; None and empty for the others.
    kwargs: variables that the file sees, as JSON. date: the day that it sees.
    thinking: whether it gets thoughts as tags in the content, or in a field.
    expand: "turns" for a document for each answer; empty for one a conversation.
    """

    template: str = HARMONY
    path: Path | None = None
    source: str = ""
    kwargs: str = "{}"
    date: str = "2026-01-01"
    thinking: str = "tags"
    expand: str = ""
    tokenizer: str = _HARMONY_TOKENS

    @property
    def recorded(self) -> str:
        """All that decides tokens, as JSON; of the file its sha256."""
        values = {**vars(self), "source": hashlib.sha256(self.source.encode()).hexdigest()}
        values.pop("path")
        return json.dumps(values, sort_keys=True)


def read_render(drop: Path, links: LinkRule = REFUSE_LINKS) -> Render:
    """Read `[render]` of a drop's recipe; without it, conversations are rendered in Harmony."""
    path = drop / RECIPE
    raw = read_toml(path, root=drop, links=links).get("render", {})
    try:
        values = _checked(raw)
    except ValueError as error:
        raise BadInput(path, f"render: {error}") from error
    template = values.get("template", HARMONY)
    if not template.startswith(_DROP):
        return Render(**values)
    file = drop / template.removeprefix(_DROP)
    try:
        source = read_file(file, root=drop, most=_MOST_BYTES, links=links).decode()
    except FileNotFoundError as error:
        rule = f"render: template = {shown(template)}: there is no such file beside the recipe"
        raise BadInput(path, rule) from error
    except UnicodeDecodeError as error:
        raise BadInput(file, "is not UTF-8: save it as UTF-8") from error
    return Render(**values, path=file, source=source)


def _checked(raw: object) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError("must be a table")
    for key, value in raw.items():
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            raise ValueError(f"unknown key {shown(key)}{did_you_mean(key, _KEYS)}; known: {known}")
        if not isinstance(value, dict if key == "kwargs" else str | date):
            raise ValueError(f"{key} = {shown(value)}: must be a text")
        choices = _CHOICES.get(key)
        if choices is not None and value not in choices:
            known = " or ".join(each for each in choices if each)
            raise ValueError(f"{key} = {shown(value)}: must be {known}")
    values = dict(raw)
    _check_template(values)
    if "date" in values:
        values["date"] = date.fromisoformat(str(values["date"])).isoformat()
    if "kwargs" in values:
        try:
            values["kwargs"] = json.dumps(values["kwargs"], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError("kwargs: holds a value that JSON has not: write it as text") from error
    return values


def _check_template(values: Mapping[str, Any]) -> None:
    template = values.get("template", HARMONY)
    if template.startswith(_DROP):
        name = template.removeprefix(_DROP)
        if not name or "/" in name or name.startswith("."):
            raise ValueError(f"template = {shown(template)}: must name a file beside the recipe")
        if not name.endswith((".jinja", ".jinja2", ".j2")):
            raise ValueError(f"template = {shown(template)}: name the file with the ending .jinja")
        return
    known = (HARMONY, *TEMPLATES)
    if template not in known:
        raise ValueError(
            f"template = {shown(template)}{did_you_mean(template, known)}: must be "
            f"{', '.join(known)}, or drop: and the name of a file, as drop:chat_template.jinja"
        )
    for key in ("kwargs", "date", "thinking"):
        if key in values:
            raise ValueError(f"{key}: only a template of your own sees it: leave it out")
    if template in (HARMONY, "chatgpt_plain") and values.get("tokenizer", _HARMONY_TOKENS) != (
        _HARMONY_TOKENS
    ):
        raise ValueError(
            f"tokenizer = {shown(values['tokenizer'])}: {template} has the control tokens of "
            f"{_HARMONY_TOKENS}: take another template"
        )
    if template == HARMONY and values.get("expand"):
        raise ValueError("expand: Harmony keeps all thoughts: leave it out")
