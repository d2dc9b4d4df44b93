"""The recipe that a look proposes for conversations. See also `proposal.py`: for other rows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.corpora.raw.chat.lists import Trees, is_nodes
from gristmill.corpora.raw.chat.messages import (
    BROKEN_CURE,
    CHAT_CURES,
    GUESSED,
    THINK,
    Messages,
    Talk,
)
from gristmill.corpora.raw.chat.recipe import ALIASES, CONTROL, SPLITS, SYNTH, Chat, chat_of_table
from gristmill.corpora.raw.texts import Unfit, is_left_out
from gristmill.look.columns import (
    CHOSEN,
    MESSAGES,
    SPEAKERS,
    TEXT,
    TEXTS,
    message_keys,
    talk_of,
    value_at,
)
from gristmill.look.proposal import Part, Proposal, toml
from gristmill.look.roles import CHAT, PREFERENCE, TREE
from gristmill.look.splits import globs_of, literal, says_split, says_train, splits_of
from gristmill.look.tags import around_of, ends_of, tags_of
from gristmill.look.talks import other_talk
from gristmill.synth.raw import SHARDS
from gristmill.synth.raw import TEXTS as SYNTH_TEXTS

INBOX: Final = "chat"
_IDS: Final = ("message_id", "id")
_UNIQUE: Final = ("prompt_id", "conversation_hash", "conversation_id", "uuid", "id")
_PARENTS: Final = ("parent_id", "parent")
_MOST_LEFT: Final = 100
_LEFT: Final = "leave"
_WHOLE: Final = ("all", "default", "main")
"""Folders of a configuration that has the rows of the others."""
_FEW: Final = 0.05
_ENDS: Final = 0.8
_ASKED: Final = ("prompt", "conversations", "conversation", "context", "messages")
_FACTS: Final = {"type", "id", "uuid", "status", "name", "timestamp", "created_at", "create_time"}
"""Keys of messages that say what a message is, and nothing of its text."""
_TOKEN: Final = re.compile(r"<[|｜][^<>|｜\n]{1,40}[|｜]>")
_WEIGHTS: Final = ("weight", "train", "trainable", "loss", "loss_mask", "loss_weight")
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking", "thought")
SYSTEMS: Final = (
    *("system", "system_prompt", "system_message", "systemInstruction", "system_instruction"),
    "meta_instruction",
)


def chat_proposal(
    name: str,
    parts: Sequence[Part],
    names: Sequence[str],
    licence: tuple[str, str],
    left: Sequence[str] = (),
) -> Proposal | None:
    """The recipe for the parts of a folder, None where not all of them are conversations.

    names: of the data files. Other arguments as of `proposal.proposal`. It may read no row, and
    says why.
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
    known = _files(names, notes)
    others = known.pop(_LEFT, [])
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
    notes += _guesses(first, parts)
    if "messages" in first and (unique := _unique(parts)):
        head["id"] = unique
    made: Proposal | None = None
    # Messages may have what a column or a key of their own has, too.
    for stated in _fewer(_stated(first, parts)):
        table = {**head, **first, **stated}
        trial = _tried(table, notes, parts)
        for said, key in (("uses tools", "tools"), (BROKEN_CURE, "broken")):
            # Of rows that are all so, the recipe is wrong, and no row.
            if trial.good and any(said in rule for rule in trial.refused):
                table[key] = "drop"
                trial = _tried(table, notes, parts)
        made = trial if made is None or trial.good > made.good else made
        if made.good == made.rows:
            break
    return made


def _guesses(first: Mapping[str, Any], parts: Sequence[Part]) -> Iterator[str]:
    """Yield what a person should look at of the values of a recipe."""
    name = first.get("messages", "")
    column = parts[0].columns.by_name.get(name)
    if column is not None and column.kind == TEXTS:
        yield f"# The texts of {name} take turns: the first one is a user's."
    # A template's own tokens are no words.
    if any(" " in text for text in first.get("marks", {}).get(CONTROL, ())):
        yield "# `control` has texts before the first mark, which nothing reads."


def _files(names: Sequence[str], notes: list[str]) -> dict[str, list[str]]:
    """The globs of the splits that a recipe of conversations has, and of files that it leaves."""
    found, every = splits_of(names), names
    if not any(map(says_split, names)):
        chosen = {split: files for split, files in found.items() if split in SPLITS}
        if chosen and (left := sorted(set(names) - {n for each in chosen.values() for n in each})):
            chosen[_LEFT] = left
        return globs_of(chosen)
    if "all" in (folders := {name.partition("/")[0] for name in names if "/" in name}):
        # A folder of all rows has those of the others, where each has files for training.
        trained = {name.partition("/")[0] for name in names if says_train(name)}
        if len(folders) > 1 and folders == trained:
            names = [name for name in names if name.partition("/")[0] == "all"]
            notes.append("# Of several configurations `all` is read: the others are in `leave`.")
            found = splits_of(names)
    unnamed = {split for split, files in found.items() if not any(map(says_split, files))}
    chosen = {each: list(found[each]) for each in SPLITS if each in found}
    if not chosen.get("train"):
        chosen["train"] = _trained(found, notes)
    more = [name for split in unnamed - {"train"} for name in found[split]]
    # Beside a file for training, one that does not say so may be held out.
    if more and not any(map(says_train, names)):
        chosen["train"] = [*chosen["train"], *more]
        notes.append("# Files whose names say no split are `train`: else name them in `leave`.")
    taken = {name for files in chosen.values() for name in files}
    chosen[_LEFT] = sorted(set(every) - taken)
    in_order = (*SPLITS, _LEFT)
    return globs_of({split: sorted(chosen[split]) for split in in_order if chosen.get(split)})


def _trained(found: Mapping[str, Sequence[str]], notes: list[str]) -> list[str]:
    """The files for training where several splits have the word for it; none where none has."""
    named = {
        split: files
        for split, files in found.items()
        if split not in SPLITS and all(map(says_train, files))
    }
    whole = {
        split: files
        for split, files in named.items()
        if any(name.partition("/")[0] in _WHOLE for name in files)
    }
    supervised = {split: files for split, files in named.items() if "sft" in split}
    taken = whole or supervised or named
    if taken:
        notes.append(f"# `train` is a guess, of the splits {', '.join(found)}.")
    return [name for files in taken.values() for name in files]


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
    if {*SYNTH_TEXTS, "synth_id"} <= {*columns}:
        return {"recipe": SYNTH}
    has_pair = guess.question and guess.answer and not _has_more(part)
    if guess.form == CHAT and guess.messages and not has_pair:
        named = ("completion", guess.answer, "preferred_output", "output")
        replies = [n for n in named if n in columns and n != guess.messages]
        if replies and columns[replies[0]].kind in (MESSAGES, TEXT) and _asks(part):
            return {"prompt": guess.messages, "completion": replies[0]}
        if guess.question and _is_reply(part, guess.messages):
            return {"prompt": guess.question, "completion": guess.messages}
        if "current_node" in columns and any(is_nodes(r.get(guess.messages)) for r in part.sample):
            return {"messages": guess.messages, "branch": "current_node"}
        return {"messages": guess.messages}
    chosen = part.columns.first(CHOSEN)
    asked = next((n for n in _ASKED if n in columns and columns[n].kind == MESSAGES), None)
    if guess.form == PREFERENCE and chosen and asked and _is_reply(part, chosen):
        return {"prompt": asked, "completion": chosen}
    if guess.form == PREFERENCE and chosen and columns[chosen].kind == MESSAGES:
        talks = [talk_of(row.get(chosen)) for row in part.sample]
        if any(isinstance(talk, list) and len(talk) > 1 for talk in talks):
            return {"messages": chosen}
        return {"prompt": guess.question, "completion": chosen} if guess.question else None
    if guess.form != TREE:
        return other_talk(part)
    found = {
        "id": part.columns.first(_IDS),
        "parent": part.columns.first(_PARENTS),
        "best": part.columns.first(["rank"]),
    }
    tree = {key: value for key, value in found.items() if value is not None}
    return {"tree": tree} if {"id", "parent"} <= {*tree} else None


def _has_more(part: Part) -> bool:
    """Whether messages have what a question and its answer have not: turns, or a system prompt."""
    talks = [talk_of(value_at(row, part.guess.messages or "")) for row in part.sample]
    roles = [
        [SPEAKERS.get(each[keys[0]].lower()) for each in t]
        for t in talks
        if (keys := message_keys(t))
    ]
    return any(said.count("user") > 1 or "system" in said for said in roles)


def _is_reply(part: Part, chosen: str) -> bool:
    """Whether a column has one message, or a list of an assistant's messages alone."""
    values = [value_at(row, chosen) for row in part.sample]
    talks = [talk if isinstance(talk := talk_of(value), list) else [value] for value in values]
    roles = [each[keys[0]] for talk in talks for each in talk if (keys := message_keys([each]))]
    return bool(roles) and all(SPEAKERS.get(role.lower()) == "assistant" for role in roles)


def _asks(part: Part) -> bool:
    """Whether most lists of messages end with a user's, so that the answer is elsewhere."""
    talks = [talk_of(value_at(row, part.guess.messages or "")) for row in part.sample]
    ends = [talk[-1][keys[0]].lower() for talk in talks if (keys := message_keys(talk))]
    users = sum(SPEAKERS.get(end) == "user" for end in ends)
    return bool(ends) and users >= _ENDS * len(ends)


def _stated(where: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    """What messages say besides role and text: thoughts, weights, other roles; and the system."""
    rows = [row for part in parts for row in part.sample]
    names = [where[key] for key in ("messages", "prompt", "completion") if key in where]
    found = (talk_of(value_at(row, name)) for row in rows for name in names)
    talks = [talk for talk in found if message_keys(talk)]
    messages = [message for talk in talks for message in talk]
    keys = _own_keys(talks)
    if thought := next((key for key in _THOUGHTS if _has_text(messages, key)), None):
        keys["thinking"] = thought
    for name in _WEIGHTS:
        weights = [message[name] for message in messages if message.get(name) is not None]
        if weights and all(weight in (0, 1) for weight in weights):
            keys.setdefault("weight", name)
    speakers = {
        str(message[key[0]]) for talk in talks if (key := message_keys(talk)) for message in talk
    }
    others = sorted(each for each in speakers - {*ALIASES} if each.lower() in SPEAKERS)
    roles = {each: SPEAKERS[each.lower()] for each in others}
    answers = _answers(where, rows, talks)
    tags, around = tags_of(answers), around_of(answers)
    thinking = [*THINK, *around] if around else None
    if tags is not None and tags.share >= _FEW and tags.tags != THINK:
        thinking = [*tags.tags]
    system = _system(rows) if names else None
    stated = {"keys": keys, "roles": roles, "thinking": thinking, "system": system}
    # Tags of thoughts begin answers, too.
    if "messages" in where and thinking is None and (control := ends_of(answers)):
        stated["marks"] = {CONTROL: control}
    return {key: value for key, value in stated.items() if value}


def _own_keys(talks: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """The keys of role and text that a recipe has to name."""
    found = {keys for talk in talks if (keys := message_keys(talk))} - {*GUESSED}
    own: dict[str, str] = {}
    for role, content in sorted(found):
        own |= {"role": role, "content": content}
    return own


def _system(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The value of the system prompts of rows, None where they have none."""
    for name in SYSTEMS:
        if _has_text(rows, name):
            texts = [text for row in rows if (text := row.get(name))]
            begin = f"{texts[0].partition(':')[0]}:"
            is_mark = begin.lower() == "system:" and all(each.startswith(begin) for each in texts)
            return {"column": name, "after": begin} if is_mark else name
        if any(isinstance(value_at(row, f"{name}.parts"), list) for row in rows):
            return name
    return None


def _answers(
    where: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    talks: Sequence[Sequence[Mapping[str, Any]]],
) -> list[str]:
    """The texts of assistants."""
    found = [
        message[keys[1]]
        for talk in talks
        if (keys := message_keys(talk))
        for message in talk
        if SPEAKERS.get(message[keys[0]].lower()) == "assistant"
    ]
    found += [row.get(where["completion"]) for row in rows if "completion" in where]
    return [each for each in found if isinstance(each, str)]


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
        _read(made, chat, rows)
    except ValueError as error:
        made.refused[str(error)] += 1
    return made


def _unread(talk: Talk) -> Iterator[str]:
    """Yield what of a conversation is not read as it may be meant."""
    for key in talk.ignored:
        if key not in _FACTS:
            yield f"messages whose key {key} nothing reads: name it in `keys` if it is one of these"
    for each in talk.messages:
        if token := _TOKEN.search(each.content):
            yield f"{token[0]} in a message, which stays text: `marks` name what is none"
        if each.channel == "final" and any(tag in each.content for tag in THINK):
            yield f"{THINK[0]} or {THINK[1]} inside an answer, which stays text"


def _read(made: Proposal, chat: Chat, rows: Sequence[Mapping[str, Any]]) -> None:
    """Count what becomes of rows: conversations, and why others are refused or left out."""
    reader = Messages(chat)
    made.rows = len(rows)
    trees = None if chat.tree is None else Trees(chat)
    for place, row in enumerate(rows, 1):
        try:
            if trees is None:
                talk = reader.read(row)
                _ = talk.json
                made.unread.update({*_unread(talk)})
            else:
                trees.add(row, (0, place))
            made.good += 1
        except Unfit as unfit:
            cure = CHAT_CURES.get(unfit.reason, "")
            rule = f"{unfit.rule}: {cure}" if cure else unfit.rule
            (made.left_out if is_left_out(unfit.reason) else made.refused)[rule] += 1
