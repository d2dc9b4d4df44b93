"""The recipe that a look proposes for conversations. See also `proposal.py`: for other rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from gristmill.corpora.account import value_at
from gristmill.corpora.raw.chat import marks
from gristmill.corpora.raw.chat.marks import SPEAKERS, talk_of, turns_of
from gristmill.corpora.raw.chat.messages import BROKEN_CURE, GUESSED, THINK
from gristmill.corpora.raw.chat.recipe import ALIASES, CONTROL, SYNTH
from gristmill.corpora.trial import Trial, head_of, literal, train_and_left
from gristmill.look import roles
from gristmill.look.proposal import Part, Whole, recipe
from gristmill.look.roles import CHOSEN, Column, counted
from gristmill.synth.raw import SHARDS
from gristmill.synth.raw import TEXTS as SYNTH_TEXTS

Table = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
_IDS: Final = ("message_id", "id")
_UNIQUE: Final = ("prompt_id", "conversation_hash", "conversation_id", "uuid", "id")
_PARENTS: Final = ("parent_id", "parent")
_FEW: Final = 0.05
_PROMPTS: Final = ("prompt", "conversations", "conversation", "context", "messages")
_WEIGHTS: Final = ("weight", "train", "trainable", "loss", "loss_mask", "loss_weight")
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking", "thought")
SYSTEMS: Final = (
    *("system", "system_prompt", "system_message", "systemInstruction", "system_instruction"),
    "meta_instruction",
)
_TALKS: Final = {"conversation", "dialogue", "dialog", "chat", "message", "turn", "utterance"}
_HISTORIES: Final = ("history", "chat_history", "conversation_history")
_SIDES: Final = ("user", "assistant")


def chat_offers(
    whole: Whole, parts: Sequence[Part], names: Sequence[str], left: Sequence[str] = ()
) -> Iterator[Trial]:
    """Yield recipes of conversations for the parts of a folder, tried, the likeliest first.

    names: of the data files. None of rows that are no conversations. A recipe of messages may read
    no row, and says why.
    """
    rows = [row for part in parts for row in part.sample]
    has_messages = any(each.kind == roles.MESSAGES for each in parts[0].columns.by_name.values())
    for first, *others in zip(*map(_values, parts), strict=False):
        if any(each != first for each in others):
            return
        head, notes = _head(whole, parts, names, left, first)
        said = _stated(first, rows)
        own: Table = said.pop("keys", {})
        # Messages may have what a column or a key of their own has, too.
        for lost in (set[str](), {"system"}, {"thinking"}, {"system", "thinking"}):
            if not {*lost} <= {*said} & {"system"} | {*own}:
                continue
            keys = {key: name for key, name in own.items() if key not in lost}
            kept = {key: value for key, value in said.items() if {key} & {*lost} != {"system"}}
            table = {**head, **first, **({"keys": keys} if keys else {}), **kept}
            made = recipe(table, (), notes, parts)
            for cause, key in (("uses tools", "tools"), (BROKEN_CURE, "broken")):
                # Of rows that are all so, the recipe is wrong, and no row.
                if made.good and any(cause in rule for rule in made.refused):
                    table[key] = "drop"
                    made = recipe(table, (), notes, parts)
            yield from [made] if made.good or has_messages else []


def _head(
    whole: Whole, parts: Sequence[Part], names: Sequence[str], left: Sequence[str], first: Table
) -> tuple[Table, list[str]]:
    """What a recipe of conversations begins with, and its notes."""
    head: Table = {"schema": 1, "kind": "chat", "name": whole.name}
    notes = ['The template is Harmony: [render] template = "chatml" or a file of your own.']
    known, train = train_and_left(names)
    if train:
        notes.append(f"`train` is a guess: {', '.join(map(literal, train))} and so on.")
    if leave := known.pop("leave", []):
        notes.append("`leave` has files of other splits: name in `files` what is to be read.")
    if first.get("recipe") == SYNTH:
        # The hashes of ids divide the rows of files that name no other split.
        known = known if len(known) > 1 else {}
        count = sum(len(part.files) for part in parts)
        head |= {"shards": count} if count < SHARDS else {}
    head = head_of(head, whole.licence, known, iter([*leave, *map(literal, left)]), notes)
    column = parts[0].columns.by_name.get(first.get("messages", ""))
    if column is not None and column.kind == roles.TEXTS:
        notes.append(f"The texts of {column.name} take turns: the first one is a user's.")
    # A template's own tokens are no words.
    if any(" " in text for text in first.get("marks", {}).get(CONTROL, ())):
        notes.append("`control` has texts before the first mark, which nothing reads.")
    rows = [row for part in parts for row in part.sample]
    return head | ({"id": own} if "messages" in first and (own := _unique(rows)) else {}), notes


def _unique(rows: Rows) -> str | None:
    """The column of ids that every row has and no two rows share, of those that were looked at."""
    every = ((name, [row.get(name) for row in rows]) for name in _UNIQUE)
    full = ((n, own) for n, own in every if all(type(e) in (str, int) and e != "" for e in own))
    return next((n for n, own in full if 1 < len(own) == len({*map(str, own)})), None)


def _values(part: Part) -> Iterator[Table]:
    """Yield what may say where the messages of rows are; nothing for rows that have none."""
    guess, columns = part.guess, part.columns.by_name
    if {*SYNTH_TEXTS, "synth_id"} <= {*columns}:
        yield {"recipe": SYNTH}
        return
    chosen = part.columns.first(CHOSEN) if guess.form == roles.PREFERENCE else None
    talk = chosen if chosen and columns[chosen].kind != roles.TEXT else guess.messages
    turns = [[role for role, _ in turns_of(value)] for value in part.values(talk)]
    # What a question and its answer have not: turns, or a system prompt.
    has_more = any(said.count("user") > 1 or "system" in said for said in turns)
    if talk and (chosen or has_more or not guess.question or not guess.answer):
        yield {"messages": talk}
        if "current_node" in columns:
            yield {"messages": talk, "branch": "current_node"}
        known = {roles.MESSAGES, roles.TEXT}
        answers = ("completion", guess.answer, "preferred_output", "output")
        answered = [n for n in answers if n in columns and columns[n].kind in known] + [chosen]
        asked: list[str] = [
            n for n in _PROMPTS if n in columns and columns[n].kind == roles.MESSAGES
        ]
        asked += [guess.question] if guess.question else []
        pairs = [(talk, n) for n in answered] + [(n, talk) for n in asked]
        yield from ({"prompt": a, "completion": b} for a, b in pairs if b in columns and a != b)
    elif guess.form == roles.TREE:
        names = {"id": _IDS, "parent": _PARENTS, "best": ["rank"]}
        tree = {key: name for key, each in names.items() if (name := part.columns.first(each))}
        yield from [{"tree": tree}] if {"id", "parent"} <= {*tree} else []
    else:
        yield from _other_talk(part)


def _stated(where: Table, rows: Rows) -> Table:
    """What messages say besides role and text: thoughts, weights, other roles; and the system."""
    names = [where[key] for key in ("messages", "prompt", "completion") if key in where]
    found = [talk_of(value_at(row, name)) for row in rows for name in names]
    talks = [(talk, pair) for talk in found if (pair := marks.message_keys(talk))]
    messages = [message for talk, _ in talks for message in talk]
    keys: dict[str, str] = {}
    for role_key, text_key in sorted({each for _, each in talks} - {*GUESSED}):
        keys |= {"role": role_key, "content": text_key}
    if thought := next((key for key in _THOUGHTS if _has_text(messages, key)), None):
        keys["thinking"] = thought
    for name in _WEIGHTS:
        weights = [message[name] for message in messages if message.get(name) is not None]
        if weights and all(weight in (0, 1) for weight in weights):
            keys.setdefault("weight", name)
    own = _roles({str(message[by[0]]) for talk, by in talks for message in talk})
    answers = [text for talk, _ in talks for role, text in turns_of(talk) if role == "assistant"]
    answers += [row.get(where["completion"]) for row in rows if "completion" in where]
    answers = [each for each in answers if isinstance(each, str)]
    tags, around = marks.tags_of(answers, _FEW), marks.around_of(answers)
    thinking = [*tags] if tags not in ((), THINK) else [*THINK, *around] if around else None
    system = _system(rows) if names else None
    stated = {"keys": keys, "roles": own, "thinking": thinking, "system": system}
    # Tags of thoughts begin answers, too.
    if "messages" in where and thinking is None and (control := marks.ends_of(answers)):
        stated["marks"] = {CONTROL: control}
    return {key: value for key, value in stated.items() if value}


def _roles(speakers: set[str]) -> dict[str, str]:
    """The roles of speakers that a recipe has to name."""
    own = sorted(each for each in speakers - {*ALIASES} if each.lower() in SPEAKERS)
    return {each: SPEAKERS[each.lower()] for each in own}


def _system(rows: Rows) -> Any:
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


def _has_text(items: Rows, key: str) -> bool:
    """Whether a key has a text in some and nothing else but null in the others."""
    found = [item[key] for item in items if item.get(key) is not None]
    return any(found) and all(isinstance(each, str) for each in found)


def _other_talk(part: Part) -> Iterator[Table]:
    """Yield what a recipe says of rows that are conversations in another form."""
    guess, columns = part.guess, part.columns.by_name
    if guess.form in (roles.QA, roles.INSTRUCT, roles.PREFERENCE):
        before = next((n for n in _HISTORIES if n in columns and _pairs(part, n)), None)
        if before and guess.answer and columns[guess.answer].kind == roles.TEXT:
            both = f"{{{guess.question}}}\n\n{{{guess.context}}}"
            asked = both if guess.context else guess.question
            system = {"system": name} if (name := part.columns.first(SYSTEMS[:2])) else {}
            yield {"turns": {**system, "history": before, "user": asked, "assistant": guess.answer}}
        yield from _continued(part)
    elif guess.form in (roles.PLAIN, roles.UNKNOWN, roles.ASKED):
        for name, column in columns.items():
            yield from _listed(part, name, column)
        texts = (name for name, column in columns.items() if column.kind == roles.TEXT)
        yield from (made for name in texts for made in _marked(name, part.texts(name)))


def _pairs(part: Part, name: str) -> list[Any]:
    """The pairs of texts that the lists of a column hold; none of other lists."""
    talks = (talk_of(value) for value in part.values(name) if value)
    items = [item for talk in talks for item in (talk if isinstance(talk, list) else [talk])]
    return items if all(roles.kind_of(i) == roles.TEXTS and len(i) == 2 for i in items) else []


def _listed(part: Part, name: str, column: Column) -> Iterator[Table]:
    """Yield what a recipe says of a column of lists that are no messages with roles."""
    if pairs := _pairs(part, name):
        own = _roles({item[0] for item in pairs})
        yield {"messages": name, **({"roles": own} if own else {})}
    talks = [talk for value in part.values(name) if isinstance(talk := talk_of(value), list)]
    # Those whose last question has no answer break turns, and are left out.
    even = sum(len(talk) > 1 and len(talk) % 2 == 0 for talk in talks)
    if talks and {*roles.words(name)[-1:]} & {*_TALKS, "data"}:
        if column.kind == roles.TEXTS and 2 * even >= len(talks):
            yield {"messages": name}
        if column.kind in (roles.OBJECTS, roles.OBJECT):
            yield from _whole_turns(name, [item for talk in talks for item in talk])


def _whole_turns(name: str, items: Sequence[Any]) -> Iterator[Table]:
    """Yield what a recipe says of objects that are a question and its answer."""
    shared = sorted(set[str].intersection(*({*item} for item in items)) if items else ())
    named = {role: key for key in shared if (role := SPEAKERS.get(key.lower())) in _SIDES}
    known = counted({key: item[key] for key in shared} for item in items).by_name
    guess = roles.guess(known, len(items))
    pair = (guess.question, guess.answer) if len(named) < len(_SIDES) else ()
    keys = {role: key for role, key in zip(_SIDES, pair, strict=False) if key} or named
    if len(keys) == len(_SIDES):
        ends = (marks.ends_of([str(item[keys[role]]) for item in items]) for role in _SIDES)
        control = list(dict.fromkeys(chain(*ends)))
        system = {"system": "system"} if any("system" in item for item in items) else {}
        said = {**system, **{role: keys[role] for role in _SIDES}}
        yield {"messages": name, "keys": said, **({"marks": {CONTROL: control}} if control else {})}


def _continued(part: Part) -> Iterator[Table]:
    """Yield what a recipe says of a text of turns, which ends where that of an answer begins."""
    columns, question = part.columns.by_name, part.guess.question
    chosen = part.columns.first(CHOSEN)
    answer = chosen or part.guess.answer
    if answer is None or columns[answer].kind != roles.TEXT:
        return
    if question is None or marks.marks_of(part.texts(question), is_open=True) is None:
        # The answer of a preference may repeat the question.
        yield from _marked(answer, part.texts(answer)) if chosen or question is None else ()
    elif {*"{}"}.isdisjoint(answer + question):
        pairs = zip(part.values(question), part.values(answer), strict=True)
        whole = [asked + said for asked, said in pairs if type(asked) is type(said) is str]
        yield from _marked(f"{{{question}}}{{{answer}}}", whole)


def _marked(messages: str, texts: Sequence[str]) -> Iterator[Table]:
    """Yield what a recipe says of a column, or of a template, whose texts have marks."""
    if found := marks.marks_of(texts):
        yield {"messages": messages, "marks": found}
