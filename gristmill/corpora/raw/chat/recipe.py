"""`corpus.toml` with `kind = "chat"`: its keys, the built-in recipe, and transcripts.

Source: `docs/formats/chat.md#recipes`, `docs/formats/chat.md#synth`,
`docs/formats/chat.md#transcripts`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput
from gristmill.corpora.corpus import Corpus, Value, corpus_of_table
from gristmill.corpora.raw.corpus_file import KEYS_OF_ALL, check_common, check_known, read_recipe
from gristmill.corpora.raw.texts import Unfit
from gristmill.inbox.division import contiguous_run
from gristmill.settings.fields import did_you_mean, shown
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

CONTROL: Final = "control"
"""The key of texts around messages that are part of none."""
_SHOWN: Final = 40


def listed(value: Any) -> list[str]:
    """A text or a list of texts, as a recipe has it; none for None."""
    return [] if value is None else [value] if isinstance(value, str) else [*value]


class Transcripts:
    """Divides texts by the marks of a recipe.

    marks: texts of each role, as a text or a list; and those of `CONTROL`.
    """

    def __init__(self, marks: Mapping[str, Any]) -> None:
        self._control = listed(marks.get(CONTROL))
        self._roles = {
            mark: role for role in marks if role != CONTROL for mark in listed(marks[role])
        }
        # At one place the longest mark counts, as `[INST] <<SYS>>` before `[INST]`.
        in_order = sorted(self._roles, key=len, reverse=True)
        self._mark = re.compile("|".join(map(re.escape, in_order)))
        self._begin = "\n" * max(len(mark) - len(mark.lstrip("\n")) for mark in in_order)

    def divided(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield role and text of each message, without blanks and `control` around it.

        text: with LF alone. Line feeds that a mark begins with may lack before the first one.

        Raises Unfit where there is no mark, or a text before the first one.
        """
        whole = self._begin + text
        found = [*self._mark.finditer(whole)]
        if not found:
            rule = f"has none of the marks {_shown([*self._roles])}"
            raise Unfit("messages", f"{rule}: write in `marks` what begins its messages")
        if before := self.bare(whole[: found[0].start()]):
            rule = f"has a text before the first mark, {before[:_SHOWN]!r}"
            raise Unfit("messages", f"{rule}: name it in `marks.{CONTROL}` if it is part of none")
        ends = [each.start() for each in found[1:]] + [len(whole)]
        for mark, end in zip(found, ends, strict=True):
            role, said = self._roles[mark[0]], self.bare(whole[mark.end() : end])
            # An empty last text of a user is not a question; empty rules are not a message.
            is_none = role in ("system", "developer") or (role == "user" and end == len(whole))
            if said or not is_none:
                yield role, said

    def head(self, text: str) -> str | None:
        """What stands before the first mark of a text; None where there is no mark."""
        found = self._mark.search(whole := self._begin + text)
        return None if found is None else whole[: found.start()]

    def bare(self, text: str) -> str:
        """A text without blanks and `control` around it. text: any."""
        return bare(text, self._control)


def bare(text: str, control: Sequence[str]) -> str:
    """A text without some texts around it, and without the blanks around it and these.

    text: any. control: those texts; without one the text stays as it is but for blanks around it.
    """
    text, before = text.strip(), None
    while text != before:
        before = text
        for each in control:
            text = text.removeprefix(each).removesuffix(each).strip()
    return text


def _shown(marks: Sequence[str]) -> str:
    return ", ".join(repr(mark[:_SHOWN]) for mark in marks)


KEPT: Final = ("language", "exercise")
"""Columns of SYNTH that its conversations have, too; each may be null."""
SYNTH: Final = "synth"
"""The columns of SYNTH. Its texts, ids, shards and splits are those of the family `synth`."""
_FILES: Final = {SYNTH: Path(__file__).parents[2] / "chats/synth.toml"}
_OWN: Final = (
    *("messages", "prompt", "completion", "tree", "marks", "keys", "roles", "system"),
    *("thinking", "tools", "broken", "branch", "weights", "unknown_keys", "dedup", "sample"),
)
"""Keys that a recipe does not have beside the name of a built-in one."""


@cache
def _built_in(name: str) -> Mapping[str, Any]:
    return tomllib.loads(_FILES[name].read_text("utf-8"))


def check_built_in(raw: Mapping[str, Any]) -> None:
    """Check what a recipe has beside the name of a built-in one, if it names one."""
    if (name := raw.get("recipe")) is None:
        return
    if name not in [*_FILES]:
        known = " or ".join(_FILES)
        hint = did_you_mean(name, _FILES) if isinstance(name, str) else ""
        raise ValueError(f"recipe = {shown(name)}{hint}: must be {known}")
    said = f'recipe = "{name}"'
    if other := [key for key in _OWN if key in raw]:
        raise ValueError(f"{other[0]}: {said} says how rows are read: leave one of both out")
    split = raw.get("split")
    if isinstance(split, Mapping) and (other := [key for key in ("by", "seed") if key in split]):
        rule = "divides conversations by the hash of their ids: leave it out"
        raise ValueError(f"split.{other[0]}: {said} {rule}")


def expanded(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recipe with the keys of the built-in one that it names; its own take their place.

    raw: a table that was checked. Of `turns` each value stands for itself. Files that name their
    splits need no rule for splits.
    """
    if "recipe" not in raw:
        return raw
    built_in = _built_in(raw["recipe"])
    made = {**built_in, **raw}
    if isinstance(raw.get("turns"), Mapping):
        made["turns"] = {**built_in["turns"], **raw["turns"]}
    if "files" in raw and "split" not in raw:
        del made["split"]
    return made


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
    "weights": _TEXT,
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
    "part_bytes": _COUNT,
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
    weights: column with a list of 0 and 1, one for each item of `messages`; None for none.
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
    weights: str | None = None
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

    path: its `corpus.toml`. name: of the drop, which the recipe has, or none.
    """
    raw = {"name": name, **read_recipe(path, links)}
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
    for key in ("kind", "render", "part_bytes"):
        given.pop(key, None)
    table = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return Chat(replace(corpus, splits=splits), **given, table=table)


def _check(raw: Mapping[str, Any], name: str) -> None:
    kinds = KEYS_OF_ALL | _KEYS
    if raw.get("kind") != "chat":
        raise ValueError('kind = "chat" is missing: a drop of drops/chat/ needs it')
    check_known(raw, (*kinds, *_VALUES), "")
    check_common(raw, name, kinds)
    named = (*raw.get("files", {}), *({"test"} & {*raw.get("split", {})}))
    if other := [split for split in named if split not in SPLITS]:
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


def _check_tables(raw: Mapping[str, Any]) -> None:
    known_of = {"keys": KEYS, "tree": _TREE, "turns": (*TURNS, HISTORY), "marks": (*ROLES, CONTROL)}
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
    if "weights" in raw and ("messages" not in raw or {*raw.get("marks", {})} - {CONTROL}):
        raise ValueError('weights: stand beside messages = "the column of a list", without `marks`')
    if "weights" in raw and ("weight" in raw.get("keys", {}) or raw.get("train") == "all"):
        key = "train" if raw.get("train") == "all" else "keys.weight"
        raise ValueError(f"{key}: `weights` say what is trained on: leave one of both out")
    turn = ({*TURNS} - {"thinking"}) & {*raw.get("keys", {})}
    if turn and not {"user", "assistant"} <= turn:
        raise ValueError(f"keys.{min(turn)}: names a whole turn: name user and assistant, both")
