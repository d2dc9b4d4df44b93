"""The recipe that a look proposes for conversations. See also `proposal.py`: for other rows.

Source: `docs/formats/reasoning.md#a-look`, `docs/formats/chat.md#recipes`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.look.columns import MESSAGES, SPEAKERS, TEXT, message_keys
from gristmill.look.proposal import Part, Proposal, toml, value_at
from gristmill.look.roles import CHAT, TREE
from gristmill.look.splits import literal, says_split
from gristmill.reasoning.raw.chat.built_in import SYNTH
from gristmill.reasoning.raw.chat.messages import Messages, Trees
from gristmill.reasoning.raw.chat.recipe import ALIASES, SPLITS, Chat, chat_of_table
from gristmill.reasoning.raw.flatten import Unfit
from gristmill.synth.raw.files import SHARDS, TEXTS

INBOX: Final = "chat"
_IDS: Final = ("message_id", "id")
_UNIQUE: Final = ("prompt_id", "conversation_hash", "conversation_id", "uuid", "id")
_PARENTS: Final = ("parent_id", "parent")
_MOST_LEFT: Final = 100
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking", "thought")
_SYSTEMS: Final = ("system", "system_prompt", "system_message")


def chat_proposal(
    name: str,
    parts: Sequence[Part],
    files: Mapping[str, Sequence[str]],
    licence: tuple[str, str],
    left: Sequence[str] = (),
) -> Proposal | None:
    """The recipe for the parts of a folder, None where not all of them are conversations.

    Arguments as of `proposal.proposal`. It may read no row, and says why.
    """
    values = [_values(part) for part in parts]
    if not values or any(each is None or each != values[0] for each in values):
        return None
    first = values[0] or {}
    head: dict[str, Any] = {"schema": 1, "kind": "chat", "name": name}
    notes = ['# The template is Harmony: [render] template = "chatml" or a file of your own.']
    if licence[0]:
        head["licence"] = {"id": licence[0]}
        notes.append(f"# The licence is what {licence[1]} says: read its terms.")
    known = {split: list(globs) for split, globs in files.items() if split in SPLITS}
    others = [glob for split, globs in files.items() if split not in SPLITS for glob in globs]
    if not known and not any(says_split(name) for part in parts for name in part.files):
        others = []  # all are `train`
    if others:
        notes.append("# `leave` has files of other splits: name in `files` what is to be read.")
    count = sum(len(part.files) for part in parts)
    if first.get("recipe") == SYNTH:
        # The hashes of ids divide the rows of files that name no other split.
        known = known if len(known) > 1 else {}
        head |= {"shards": count} if count < SHARDS else {}
    if known:
        head["files"] = {split: g[0] if len(g) == 1 else g for split, g in known.items()}
    if leave := [*others, *map(literal, left)][:_MOST_LEFT]:
        head["leave"] = leave
    if "messages" in first and (unique := _unique(parts)):
        head["id"] = unique
    made: Proposal | None = None
    # Messages may have what a column or a key of their own has, too.
    for stated in _fewer(_stated(first, parts)):
        table = {**head, **first, **stated}
        trial = _tried(table, notes, parts)
        if any("uses tools" in rule for rule in trial.refused):
            trial = _tried({**table, "tools": "drop"}, notes, parts)
        made = trial if made is None or trial.good > made.good else made
        if made.good == made.rows:
            break
    return made


def _fewer(stated: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What messages state; that without the system prompt, without thoughts, without both."""
    for system, thinking in ((True, True), (False, True), (True, False), (False, False)):
        kept = {key: value for key, value in stated.items() if system or key != "system"}
        keys = kept.pop("keys", {})
        keys = {key: name for key, name in keys.items() if thinking or key != "thinking"}
        yield {**({"keys": keys} if keys else {}), **kept}


def _unique(parts: Sequence[Part]) -> str | None:
    """The column of ids that every row has and no two rows share, of those that were looked at."""
    rows = [row for part in parts for row in part.sample]
    for name in _UNIQUE:
        found = [row.get(name) for row in rows]
        is_there = all(type(each) in (str, int) and each != "" for each in found)
        if is_there and 1 < len(rows) == len({str(each) for each in found}):
            return name
    return None


def _values(part: Part) -> dict[str, Any] | None:
    """What says where the messages of rows are; None for rows that are no conversations."""
    guess, columns = part.guess, part.columns.by_name
    if {*TEXTS, "synth_id"} <= {*columns}:
        return {"recipe": SYNTH}
    if guess.form == CHAT and guess.messages and not (guess.question and guess.answer):
        answers = columns.get("completion")
        if guess.messages == "prompt" and answers is not None and answers.kind in (MESSAGES, TEXT):
            return {"prompt": "prompt", "completion": "completion"}
        return {"messages": guess.messages}
    if guess.form != TREE:
        return None
    found = {
        "id": next((each for each in _IDS if each in columns), None),
        "parent": next((each for each in _PARENTS if each in columns), None),
        "best": "rank" if "rank" in columns else None,
    }
    tree = {key: value for key, value in found.items() if value is not None}
    return {"tree": tree} if {"id", "parent"} <= {*tree} else None


def _stated(where: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    """What messages say besides role and text: thoughts, weights, other roles; and the system."""
    rows = [row for part in parts for row in part.sample]
    names = [where[key] for key in ("messages", "prompt", "completion") if key in where]
    talks = [talk for row in rows for name in names if message_keys(talk := value_at(row, name))]
    messages = [message for talk in talks for message in talk]
    keys = {}
    if thought := next((key for key in _THOUGHTS if _has_text(messages, key)), None):
        keys["thinking"] = thought
    weights = [message["weight"] for message in messages if message.get("weight") is not None]
    if weights and all(weight in (0, 1) for weight in weights):
        keys["weight"] = "weight"
    speakers = {
        str(message[key[0]]) for talk in talks if (key := message_keys(talk)) for message in talk
    }
    roles = {each: SPEAKERS[each.lower()] for each in sorted(speakers - {*ALIASES})}
    system = next((name for name in _SYSTEMS if _has_text(rows, name)), None)
    stated = {"keys": keys, "roles": roles, "system": system if names else None}
    return {key: value for key, value in stated.items() if value}


def _has_text(items: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether a key has a text in some and nothing else but null in the others."""
    found = [item[key] for item in items if item.get(key) is not None]
    return any(found) and all(isinstance(each, str) for each in found)


def _tried(table: Mapping[str, Any], notes: Sequence[str], parts: Sequence[Part]) -> Proposal:
    """The recipe, and what it reads of the rows that were looked at."""
    lines = [*notes, *(f"{key} = {toml(value)}" for key, value in table.items())]
    made = Proposal("\n".join(lines) + "\n", inbox=INBOX)
    rows = [row for part in parts for row in part.sample]
    try:
        made.text.encode()  # a column's name may hold what no file can
        chat = chat_of_table(tomllib.loads(made.text))
        made.rows, made.good, made.refused = _read(chat, rows)
    except ValueError as error:
        made.refused[str(error)] += 1
    return made


def _read(chat: Chat, rows: Sequence[Mapping[str, Any]]) -> tuple[int, int, Counter[str]]:
    reader, refused, good = Messages(chat), Counter[str](), 0
    trees = None if chat.tree is None else Trees(chat)
    for place, row in enumerate(rows, 1):
        try:
            if trees is None:
                _ = reader.read(row).json
            else:
                trees.add(row, (0, place))
            good += 1
        except Unfit as unfit:
            refused[unfit.rule] += 1
    return len(rows), good, refused
