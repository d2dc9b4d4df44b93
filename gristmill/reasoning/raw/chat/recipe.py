"""`corpus.toml` with `kind = "chat"`. Source: `docs/formats/chat.md#recipes`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.inbox.division import contiguous_run
from gristmill.reasoning.format.conversations import KEPT
from gristmill.reasoning.format.corpora import Corpus, Value, corpus_of_table
from gristmill.reasoning.raw.chat.built_in import SYNTH, check_built_in, expanded
from gristmill.reasoning.raw.chat.transcripts import CONTROL, listed
from gristmill.reasoning.raw.forms.corpus_file import (
    KEYS_OF_ALL,
    check_common,
    check_known,
    read_recipe,
)
from gristmill.settings.fields import shown
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

SPLITS: Final = ("train", "validation")
ROLES: Final = ("system", "developer", "user", "assistant", "tool")
"""What a role of a message may mean."""
ALIASES: Final[Mapping[str, str]] = {
    **{role: role for role in ROLES},
    **{"human": "user", "prompter": "user", "gpt": "assistant"},
}
"""The roles that need no entry in `roles`."""
MOST_SHARDS: Final = 100
_TABLE, _TEXT, _COUNT = "a table", "a text", "a whole number from 1"
_KEYS: Final[dict[str, str]] = {
    "kind": _TEXT,
    "recipe": _TEXT,
    "messages": _TEXT,
    "branch": _TEXT,
    "turns": _TABLE,
    "marks": _TABLE,
    "keys": _TABLE,
    "roles": _TABLE,
    "tools": _TEXT,
    "broken": _TEXT,
    "train": _TEXT,
    "unknown_keys": _TEXT,
    "tree": _TABLE,
    "shards": _COUNT,
    "render": _TABLE,
}
_VALUES: Final = ("prompt", "completion", "system", "thinking")
"""Keys that hold a value: the name of a column, or a table; or words or a list of texts."""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "tools": ("refuse", "drop"),
    "broken": ("refuse", "drop"),
    "train": ("assistant", "last", "all"),
    "unknown_keys": ("count", "refuse"),
}
"""The words that a key may have, its default first."""
TURNS: Final = ("system", "developer", "user", "thinking", "assistant")
HISTORY: Final = "history"
"""The key of `turns` with the turns before."""
KEYS: Final = ("role", "content", "weight", *TURNS)
"""What the keys of a message may mean."""
_TREE: Final = ("id", "parent", "text", "best")
_FORMS: Final = ("messages", "prompt", "turns", "tree")
_EXAMPLE: Final = 'write messages = "name of the column that has the list of messages"'


@dataclass(frozen=True)
class Chat:
    """A recipe of conversations.

    prompt, completion: values of what is asked and of what is answered, texts or lists of
        messages; or
    turns: values of the texts of one turn, by `TURNS`, and the turns before it, `HISTORY`; or
    tree: columns of rows that are messages of trees: id, parent, text, and best, by which the
        least of several answers is taken.
    branch: column with the id of the last message, where `messages` has an object of nodes; None
        where it has none.
    marks: texts that begin the messages of a conversation in one text, by role, and `CONTROL`;
        none where `messages` has a list.
    keys: names of the keys of a message by `KEYS`; role and content are guessed where it lacks
        them.
    thinking: "tags", "none", or the tags around a thought, and around the answer behind it.
    shards: how many artifacts the conversations are divided into, 1 to `MOST_SHARDS`.
    """

    corpus: Corpus
    recipe: str = ""
    messages: str | None = None
    branch: str | None = None
    prompt: Value | None = None
    completion: Value | None = None
    turns: Mapping[str, Value] = field(default_factory=dict)
    marks: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    system: Value | None = None
    thinking: str | Sequence[str] = "tags"
    tools: str = "refuse"
    broken: str = "refuse"
    train: str = "assistant"
    unknown_keys: str = "count"
    tree: Mapping[str, str] | None = None
    shards: int = 1
    table: str = ""

    @property
    def partitions(self) -> list[str]:
        """Keys of its artifacts: `<name>__00` and so on."""
        return [f"{self.corpus.name}__{number:02d}" for number in range(self.shards)]

    @property
    def is_synth(self) -> bool:
        """Whether texts, ids, shards and splits are those of SYNTH."""
        return self.recipe == SYNTH

    @property
    def kept(self) -> Sequence[str]:
        """Columns of its rows that conversations have, too."""
        return KEPT if self.is_synth else ()

    def read_by(self, shard: int, paths: Sequence[Path]) -> Sequence[Path]:
        """The files that hold the rows of a shard. shard: its number. paths: of the drop."""
        return contiguous_run(paths, shard, self.shards) if self.is_synth else paths


def read_chat_file(path: Path, name: str, links: LinkRule = REFUSE_LINKS) -> Chat:
    """Read and check the recipe of a drop of conversations.

    path: its `corpus.toml`. name: of the drop, which must be that of the recipe.
    """
    raw = read_recipe(path, links)
    try:
        check_built_in(raw)
        _check(expanded(raw), name)
    except ValueError as error:
        raise BadInput(path, str(error)) from error
    return chat_of_table(raw)


def chat_of_table(raw: Mapping[str, Any]) -> Chat:
    """The recipe of a file that was checked. raw: its table."""
    raw = expanded(raw)
    corpus = corpus_of_table(raw)
    splits = tuple(corpus.files) or SPLITS
    kept = {key: value for key, value in raw.items() if key not in ("render", "notes")}
    given = {key: raw[key] for key in (*_KEYS, *_VALUES) if key in raw}
    given.pop("kind", None)
    given.pop("render", None)
    table = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return Chat(replace(corpus, splits=splits), **given, table=table)


def _check(raw: Mapping[str, Any], name: str) -> None:
    kinds = KEYS_OF_ALL | _KEYS
    if raw.get("kind") != "chat":
        raise ValueError('kind = "chat" is missing: a drop of drops/chat/ needs it')
    check_known(raw, (*kinds, *_VALUES), "")
    check_common(raw, name, kinds)
    if other := [split for split in (*raw.get("files", {}), *_shares(raw)) if split not in SPLITS]:
        rule = f"a recipe of conversations has the splits {' and '.join(SPLITS)}"
        raise ValueError(f"{shown(other[0])}: {rule}: name files of other splits in `leave`")
    found = [key for key in _FORMS if key in raw]
    if len(found) != 1:
        what = f"has both `{found[0]}` and `{found[1]}`: leave one" if found else f"{_EXAMPLE}"
        raise ValueError(what if found else f"where the messages are is not said: {what}")
    if ("prompt" in raw) != ("completion" in raw):
        raise ValueError("prompt and completion: each needs the other")
    for key, choices in _CHOICES.items():
        if raw.get(key, choices[0]) not in choices:
            raise ValueError(f"{key} = {shown(raw[key])}: must be {' or '.join(choices)}")
    _check_thinking(raw.get("thinking", "tags"))
    if raw.get("shards", 1) > MOST_SHARDS:
        raise ValueError(f"shards = {raw['shards']}: must be at most {MOST_SHARDS}")
    _check_tables(raw)


def _check_thinking(value: object) -> None:
    """Raise ValueError unless a value says how answers mark their thoughts."""
    if value in ("tags", "none"):
        return
    tags = value if isinstance(value, list) else []
    if len(tags) not in (2, 4) or not all(isinstance(each, str) and each for each in tags):
        raise ValueError(
            f'thinking = {shown(value)}: must be "tags", "none", or two tags as '
            '["<reasoning>", "</reasoning>"], and two more where the answer has some, too'
        )


def _shares(raw: Mapping[str, Any]) -> list[str]:
    return [name for name in ("test",) if name in raw.get("split", {})]


def _check_tables(raw: Mapping[str, Any]) -> None:
    known_of = {
        "keys": KEYS,
        "tree": _TREE,
        "turns": (*TURNS, HISTORY),
        "marks": (*ROLES, CONTROL),
    }
    for key, known in known_of.items():
        check_known(raw.get(key, {}), known, f"{key}: ")
    for key in ("keys", "tree", "roles"):
        for name, value in raw.get(key, {}).items():
            if not isinstance(value, str) or not value:
                raise ValueError(f"{key}.{name} = {shown(value)}: must be a text")
    for name, role in raw.get("roles", {}).items():
        if role not in ROLES:
            raise ValueError(f"roles.{name} = {shown(role)}: must be {' or '.join(ROLES)}")
    _check_marks(raw)
    speakers = ("user", "assistant")
    divides = {*raw.get("marks", {})} != {CONTROL}
    needed = {"tree": ("id", "parent"), "turns": speakers, "marks": speakers if divides else ()}
    for key, names in needed.items():
        if key in raw and (missing := [name for name in names if name not in raw[key]]):
            raise ValueError(f"{key}: lacks {missing[0]}")


def _check_marks(raw: Mapping[str, Any]) -> None:
    for name, value in raw.get("marks", {}).items():
        marks = listed(value) if isinstance(value, str | list) else []
        if not marks or not all(isinstance(each, str) and each.strip() for each in marks):
            rule = "must be a text, or a list of texts, that begin messages"
            raise ValueError(f"marks.{name} = {shown(value)}: {rule}")
    every = [each for value in raw.get("marks", {}).values() for each in listed(value)]
    if twice := [each for each in every if every.count(each) > 1]:
        raise ValueError(f"marks: {shown(twice[0])} is there twice: nobody knows which is meant")
    if not {*raw.get("marks", {})} - {CONTROL} and "{" in raw.get("messages", ""):
        raise ValueError(f"messages = {shown(raw['messages'])}: a template needs `marks`")
    if "marks" in raw and "messages" not in raw:
        raise ValueError('marks: stand in texts of a column: name it, as messages = "text"')
    if "branch" in raw and ("messages" not in raw or "marks" in raw):
        raise ValueError('branch: stands beside messages = "the column of nodes", without `marks`')
    turn = ({*TURNS} - {"thinking"}) & {*raw.get("keys", {})}
    if turn and not {"user", "assistant"} <= turn:
        raise ValueError(f"keys.{min(turn)}: names a whole turn: name user and assistant, both")
