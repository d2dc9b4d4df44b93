"""The recipes that a look proposes, of records and of conversations, and what they read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

from gristmill.corpora import account
from gristmill.corpora.account import Column, Columns, counted, kind_of, value_at
from gristmill.corpora.raw.chat.marks import (
    SPEAKERS,
    around_of,
    ends_of,
    marks_of,
    message_keys,
    tags_of,
    talk_of,
    turns_of,
)
from gristmill.corpora.raw.chat.messages import BROKEN_CURE, GUESSED, THINK
from gristmill.corpora.raw.chat.recipe import ALIASES, CONTROL, SYNTH
from gristmill.corpora.raw.transforms import letter
from gristmill.corpora.trial import Trial, head_of, literal, recipe, toml, train_and_left
from gristmill.look import roles
from gristmill.look.roles import CHOSEN, Choosing, Guess, said_of
from gristmill.synth.raw import SHARDS
from gristmill.synth.raw import TEXTS as SYNTH_TEXTS

Table = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
_MARKS: Final = ("The answer is:", "####")
_CLOSE = THINK[1]
_MOST: Final = 0.8
_HALF: Final = 0.5
_SEVERAL: Final = 3
_ENDS: Final = 0.9
_LINE: Final = 80
"""Characters of the answer behind a mark."""
_PART_BYTES: Final = 10**9
_NAMED: Final = 3


@dataclass(frozen=True)
class Part:
    """Rows with the same columns, and what these mean. headerless: as of `FileLook`."""

    guess: Guess
    files: Sequence[str]
    columns: Columns
    sample: Sequence[Mapping[str, Any]]
    headerless: Mapping[str, Any] = field(default_factory=dict)

    def values(self, name: str | None) -> list[Any]:
        """The values of a column in the rows that were looked at."""
        return [value_at(row, name) for row in self.sample] if name else []

    def texts(self, name: str | None) -> list[str]:
        """Those of them that are texts."""
        return [value for value in self.values(name) if isinstance(value, str)]

    @cached_property
    def form(self) -> tuple[Table, list[str]]:
        """The values of a form that reads the rows, empty where none does, and notes on it."""
        notes: list[str] = []
        return _form(self, notes), notes


class Whole(NamedTuple):
    """What recipes of a folder have in common. licence: and the file that says so. size: bytes."""

    name: str
    licence: tuple[str, str] = ("", "")
    size: int = 0


def proposal(
    whole: Whole,
    parts: Sequence[Part],
    files: Mapping[str, Sequence[str]],
    left: Sequence[str] = (),
) -> Trial:
    """The recipe for the parts that one reads. files: globs by split. left: files for `leave`."""
    read = [(part, form) for part in parts if (form := part.form[0])]
    if not read:
        return Trial()
    notes = [note for part, _ in read for note in part.form[1]]
    begin = {"schema": 1, "name": whole.name}
    head = head_of(begin, whole.licence, files, map(literal, left), notes)
    if not whole.licence[0]:
        notes.append('The licence is unknown: add licence = { id = "...", train = true }.')
    if whole.size > _PART_BYTES:
        head["part_bytes"] = _PART_BYTES
    if bare := next((part for part in parts if part.headerless), None):
        ending = "*.tsv*" if ".tsv" in bare.files[0].lower() else "*.csv*"
        head["headerless"] = {"files": ending, **bare.headerless}
    forms = [form for _, form in read]
    rows = [row for part in parts for row in part.sample]
    return recipe(head, forms if len(forms) == 1 else _apart(read), notes, rows)


def _form(part: Part, notes: list[str]) -> Table:
    guess, columns = part.guess, part.columns.by_name
    if guess.form == roles.PLAIN and guess.question:
        return {"texts": f"{{{guess.question}}}"}
    if guess.form == roles.PREFERENCE:
        chosen = part.columns.first(CHOSEN)
        is_text = guess.question and chosen and columns[chosen].kind == account.TEXT
        return {"question": guess.question, "answer": chosen} if is_text else {}
    if not guess.question or not guess.answer:
        return {}
    made = {"question": _asked(guess), **_answered(part, notes)}
    if guess.choices and isinstance(made["question"], dict) and _is_lettered(part, made["answer"]):
        template = made["question"]["template"].replace(f"{{{guess.choices}}}", "{lettered}")
        made["question"] = {"template": template}
        made["parts"] = {"lettered": {"join": guess.choices, "item": "{letter}) {text}"}}
    return made


def _is_lettered(part: Part, answer: Any) -> bool:
    """Whether a question shows its choices with letters: objects, or those that answers name."""
    firsts = [str(own[0]) for own in part.values(part.guess.choices) if own and type(own) is list]
    has_own = any(re.match(r"\s*\(?A[).]", first) for first in firsts)
    is_both = isinstance(answer, dict) and answer.get("as") == "both" and not has_own
    kind = part.columns.by_name[part.guess.choices or ""].kind
    return kind == account.OBJECTS or "join" in answer or is_both


def _asked(guess: Guess) -> Any:
    """The question, with its context before it and its choices behind it."""
    # The input of an instruction is what that speaks of, and follows it.
    names = [guess.context, guess.question][:: -1 if guess.form == roles.INSTRUCT else 1]
    lines = [f"{{{name}}}" for name in (*names, guess.choices) if name]
    named = "\n".join(f"{letter(n)}) {{{name}}}" for n, name in enumerate(guess.letters))
    lines += [named] if named else []
    if len(lines) == 1 or {*"{}"}.intersection("".join(guess.columns)):
        return guess.question
    return {"template": "\n\n".join(lines)}


def _answered(part: Part, notes: list[str]) -> Table:
    """The answer and the thought."""
    guess, columns = part.guess, part.columns.by_name
    made: Table = {"answer": (answer := guess.answer or "")}
    kind = columns[answer].kind
    is_list = guess.choices and columns[guess.choices].kind in (account.TEXTS, account.OBJECTS)
    of = guess.choices if is_list else [*guess.letters]
    if of and kind in (account.TEXT, account.NUMBER):
        made["answer"] = {"choice": answer, "of": of, **_way(part, answer, of, notes)}
    elif kind == account.TRUTH:
        made["answer"] = {"column": answer, "map": {"true": "yes", "false": "no"}}
    elif kind == account.TEXTS and (guess.choices or guess.letters):
        made["answer"] = {"join": answer, "by": ", "}
    elif kind == account.TEXTS:
        lists = [found for found in part.values(answer) if isinstance(found, list)]
        several = sum(len({*map(str, found)}) > 1 for found in lists)
        every = f"answer = {toml({'join': answer, 'by': ', '})} reads all"
        said = f", though {several:,} rows have several: {every}" if several else ""
        notes.append(f"The first one of {answer} is read{said}.")
        made["answer"] = f"{answer}.0"
    if guess.cot is not None:
        firsts = {"first": [*guess.firsts]}
        return made | {"cot": firsts if guess.firsts else _thought(part, guess.cot)}
    return made | _cut(part, answer) if made["answer"] == answer else made


def _thought(part: Part, cot: str) -> Any:
    """The thought of a column, without what marks it; of several, the first that is right."""
    column = part.columns.by_name[cot]
    texts = [t for v in part.values(cot) for t in (v if isinstance(v, list) else [v]) if t]
    is_marked = _share(texts, _CLOSE) >= _MOST
    if column.kind == account.TEXT and not is_marked:
        tags = tags_of(part.texts(cot))
        return {"column": cot, "between": list(tags[:2])} if tags else cot
    if column.kind not in (account.TEXT, account.TEXTS) or not is_marked:
        return cot
    every = part.columns.by_name.items()
    verdicts = [n for n, e in every if (e.kind, e.filled) == (account.TRUTHS, column.filled)]
    if column.kind == account.TEXTS and verdicts:
        return {"pick": cot, "where": [verdicts], "think": True}
    return {"think": cot if column.kind == account.TEXT else f"{cot}.0"}


def _way(part: Part, answer: str, of: str | list[str], notes: list[str]) -> Table:
    """How an answer names a choice, by what reads every row, and how the record writes it."""
    rows = [row for row in part.sample if kind_of(value_at(row, answer)) in roles.SHORT]
    said = [(said_of(value_at(row, answer)), value_at(row, part.guess.cot or "")) for row in rows]
    # With its letter it is written where thoughts end in letters.
    both = [(text, end) for text, end in said if re.fullmatch("[A-Z]", text) and type(end) is str]
    ends = [re.search(rf"\b{text}\b[\s.)]*$", thought) is not None for text, thought in both]
    made = {"as": "both" if ends and 2 * sum(ends) >= len(ends) else "text"}
    names = f"{of.rpartition('.')[0]}.label" if isinstance(of, str) else ""
    if names in part.columns.by_name and part.columns.by_name[names].kind == account.TEXTS:
        return made | {"labels": names}
    found = Choosing(rows, answer, [of] if isinstance(of, str) else of)
    ways = found.ways
    good = [name for name, way in ways.items() if rows and found.read(way, is_whole=True)]
    if good[:1] == [""] and "labels" in "".join(good):
        cure = 'From 1: add labels = ["1", "2", ..].'
        notes.append(f"{answer} counts from 0: no row has a 0. {cure}")
    elif len(good) > 1 and good[0]:
        several = f"{', '.join(good[:-1])}, or {good[-1]}"
        notes.append(f"{answer} may be the places or the texts of choices: write {several}.")
    return made | (ways[good[0]] if len(good) == 1 else {})


def _cut(part: Part, answer: str) -> Table:
    """The answer divided at a mark that most rows have."""

    def by(cot: Any = answer, **way: Any) -> Table:
        return {"answer": {"column": answer, **way}, "cot": cot}

    texts = part.texts(answer)
    if tags := tags_of(texts) or (THINK if _share(texts, _CLOSE) >= _MOST else ()):
        # Of an empty thought `think` takes what follows, which is the answer here.
        is_open = _share(texts, tags[0]) >= _MOST
        thought = {"column": answer, "between": [*tags[:2]]} if is_open else {"think": answer}
        end = {"between": [*tags[2:]]} if len(tags) > len(THINK) else {"after": tags[1]}
        return by(thought, **end, which="last")
    for mark in _MARKS:
        # One short line stands behind the last mark.
        ends = [text.rpartition(f"\n{mark}")[2].strip() for text in texts if f"\n{mark}" in text]
        good = [end for end in ends if 0 < len(end) <= _LINE and "\n" not in end]
        if 0 < _ENDS * len(texts) <= len(good):
            return by({"column": answer, "before_line": mark}, after_line=mark)
    if _share(texts, box := "\\boxed{") >= _MOST:
        return by(between=[box, "}"], which="last", braces=True)
    return {}


def _share(texts: Sequence[Any], mark: str) -> float:
    """The share of texts that have a mark."""
    return sum(mark in str(text) for text in texts) / max(len(texts), 1)


def _apart(read: Sequence[tuple[Part, Table]]) -> list[Table]:
    """Each form with the columns by which its rows differ from those of the other forms."""
    forms = []
    for number, (part, form) in enumerate(read, 1):
        own = [name for name in part.columns.by_name if "." not in name]
        others = {n for each, _ in read if each is not part for n in each.columns.by_name}
        used = {str(role).partition(".")[0] for role in vars(part.guess).values()}
        own.sort(key=lambda name: (name in others, name not in used))
        marks: Table = {"name": f"form_{number}", "when": own[:_NAMED]}
        if {*own} <= others:
            marks["unless"] = sorted(name for name in others - {*own} if "." not in name)[:_NAMED]
        forms.append(marks | form)
    return forms


_TOKENS: Final = re.compile(
    r"<[|｜][^<>|｜\s]{1,40}[|｜]>|\[/INST\]|<\w{1,20}_\d{1,3}>(?=User|Assistant|Human|System)"
)
_LABEL: Final = re.compile(r"^[ *#]*[^\W\d_]{1,20}:", re.MULTILINE)
"""Begins a line that may be what somebody says."""
_FEW: Final = 0.1
_ONE: Final = re.compile(r"\W?[0-9A-Za-z]\W?")
_NOTHING: Final = {"nan", "null", "none", "n/a", "<na>"}
_CURES: Final = {
    roles.STEPWISE: "completions with a label each: no recipe reads labels: write a row a question",
    roles.PREFERENCE: "pairs of answers for preferences: a recipe reads one answer a row",
}


def part_notes(part: Part) -> Iterator[str]:
    """Yield notes on the columns of rows, whatever recipe reads these."""
    if part.headerless:
        said = ", ".join(part.headerless["columns"])
        yield f"no line of names: the columns are called {said}: see that they are these"
    for column in part.columns.by_name.values():
        if column.is_written > column.filled / 2:
            yield (
                f"{column.name}: lists or objects written as text, which stay texts: write them "
                "as JSON values, of Python's notation by json.dumps(ast.literal_eval(text))"
            )
        none = {value: n for value, n in column.values.items() if value.lower() in _NOTHING}
        if none and column.name in part.guess.columns and column.kind == account.TEXT:
            said = ", ".join(f"{value} ({count:,})" for value, count in none.items())
            rule = "texts that may stand for nothing, and stay texts"
            yield f"{column.name}: {rule}: {said}: write null"
    if part.guess.form in _CURES:
        yield _CURES[part.guess.form]


def record_notes(part: Part) -> Iterator[str]:
    """Yield notes on what a recipe of a corpus makes of rows: turns, letters, marks as texts."""
    question, answer = part.guess.question, part.guess.answer
    if question is None or part.guess.form not in (roles.PLAIN, roles.QA, roles.INSTRUCT):
        return
    is_pair = part.guess.form != roles.PLAIN and answer is not None
    texts = part.texts(question)
    found = [mark[0] for text in texts if (mark := _TOKENS.search(text))]
    if len(found) < max(_FEW * len(texts), 1):
        labels = Counter(each for text in texts for each in sorted({*_LABEL.findall(text)}))
        both = [each for each, count in labels.most_common(2) if count >= _MOST * len(texts)]
        is_talk = part.guess.form == roles.PLAIN and len(both) == 2 and len(texts) > 2
        found = [" and ".join(both)] if is_talk else []
    if found:
        yield (
            f"{question}: texts with {found[0]}, which stays text: if they are conversations, a "
            'recipe with kind = "chat" and `marks` divides them'
        )
    if is_pair and not part.guess.choices and not part.guess.letters:
        yield from _one_sign(part.columns.by_name[answer or ""])
    if is_pair and (said := _signs_of_steps(part, question, answer or "")):
        yield f"{said}: if they are marks of its steps, no recipe reads these"


def _signs_of_steps(part: Part, question: str, answer: str) -> str:
    """Where answers have a sign for each step: behind each line, or in place of a question's."""
    pairs = zip(part.values(question), part.values(answer), strict=True)
    both = [(Counter(a.split()), Counter(b.split())) for a, b in pairs if type(a) is type(b) is str]
    signs = {word for asked, said in both for word in said - asked}
    # A few signs make even short steps unlike.
    least = _MOST if len(signs) > _SEVERAL else _HALF
    alike = [(a & b).total() >= least * max(a.total(), b.total()) for a, b in both]
    if alike and sum(alike) >= _MOST * len(alike):
        return f"{answer} repeats {question} but for a few words"
    ends = [
        [each.split()[-1] for each in t.splitlines() if each.strip()] for t in part.texts(answer)
    ]
    signs, count = {*chain(*ends)}, sum(map(len, ends))
    # They come again and again, and in other orders.
    is_each = 1 < len(signs) <= _SEVERAL and count >= max(2 * len(ends), len(signs) ** 2 + 1)
    is_each = is_each and len({*map(tuple, ends)}) > 2
    return f"lines of {answer} end in {', '.join(sorted(signs))}" if is_each else ""


def _one_sign(answer: Column) -> Iterator[str]:
    """Yield what answers of a few letters or digits alone may be: places of choices, or words."""
    said, name = sorted(answer.values), toml(answer.name)
    is_few = 3 * len(said) <= answer.filled == answer.values.total()
    if is_few and all(map(_ONE.fullmatch, said)):
        # A person fills it in: as it stands no recipe takes it.
        words = ", ".join(f"{toml(each)} = WORD" for each in said)
        words = f"{{ column = {name}, map = {{ {words} }} }}"
        choice = f"if they name a choice, {{ choice = {name}, of = COLUMN }}"
        rule = f"answers are {', '.join(said)} alone"
        yield f"{rule}: if they stand for words, write answer = {words}; {choice}"


_IDS: Final = ("message_id", "id")
_UNIQUE: Final = ("prompt_id", "conversation_hash", "conversation_id", "uuid", "id")
_PARENTS: Final = ("parent_id", "parent")
_RARE: Final = 0.05
_PROMPTS: Final = ("prompt", "conversations", "conversation", "context", "messages")
_WEIGHTS: Final = ("weight", "train", "trainable", "loss", "loss_mask", "loss_weight")
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking", "thought")
SYSTEMS: Final = (
    *("system", "system_prompt", "system_message", "systemInstruction", "system_instruction"),
    "meta_instruction",
)
_TALK_WORDS: Final = {"conversation", "dialogue", "dialog", "chat", "message", "turn", "utterance"}
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
    has_messages = any(each.kind == account.MESSAGES for each in parts[0].columns.by_name.values())
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
            made = recipe(table, (), notes, rows)
            for cause, key in (("uses tools", "tools"), (BROKEN_CURE, "broken")):
                # Of rows that are all so, the recipe is wrong, and no row.
                if made.good and any(cause in rule for rule in made.refused):
                    table[key] = "drop"
                    made = recipe(table, (), notes, rows)
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
    if column is not None and column.kind == account.TEXTS:
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
    talk = chosen if chosen and columns[chosen].kind != account.TEXT else guess.messages
    turns = [[role for role, _ in turns_of(value)] for value in part.values(talk)]
    # What a question and its answer have not: turns, or a system prompt.
    has_more = any(said.count("user") > 1 or "system" in said for said in turns)
    if talk and (chosen or has_more or not guess.question or not guess.answer):
        yield {"messages": talk}
        if "current_node" in columns:
            yield {"messages": talk, "branch": "current_node"}
        known = {account.MESSAGES, account.TEXT}
        answers = ("completion", guess.answer, "preferred_output", "output")
        answered = [n for n in answers if n in columns and columns[n].kind in known] + [chosen]
        asked: list[str] = [
            n for n in _PROMPTS if n in columns and columns[n].kind == account.MESSAGES
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
    talks = [(talk, pair) for talk in found if (pair := message_keys(talk))]
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
    tags, around = tags_of(answers, _RARE), around_of(answers)
    thinking = [*tags] if tags not in ((), THINK) else [*THINK, *around] if around else None
    system = _system(rows) if names else None
    stated = {"keys": keys, "roles": own, "thinking": thinking, "system": system}
    # Tags of thoughts begin answers, too.
    if "messages" in where and thinking is None and (control := ends_of(answers)):
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
        if before and guess.answer and columns[guess.answer].kind == account.TEXT:
            both = f"{{{guess.question}}}\n\n{{{guess.context}}}"
            asked = both if guess.context else guess.question
            system = {"system": name} if (name := part.columns.first(SYSTEMS[:2])) else {}
            yield {"turns": {**system, "history": before, "user": asked, "assistant": guess.answer}}
        yield from _continued(part)
    elif guess.form in (roles.PLAIN, roles.UNKNOWN, roles.ASKED):
        for name, column in columns.items():
            yield from _listed(part, name, column)
        texts = (name for name, column in columns.items() if column.kind == account.TEXT)
        yield from (made for name in texts for made in _marked(name, part.texts(name)))


def _pairs(part: Part, name: str) -> list[Any]:
    """The pairs of texts that the lists of a column hold; none of other lists."""
    talks = (talk_of(value) for value in part.values(name) if value)
    items = [item for talk in talks for item in (talk if isinstance(talk, list) else [talk])]
    return items if all(kind_of(i) == account.TEXTS and len(i) == 2 for i in items) else []


def _listed(part: Part, name: str, column: Column) -> Iterator[Table]:
    """Yield what a recipe says of a column of lists that are no messages with roles."""
    if pairs := _pairs(part, name):
        own = _roles({item[0] for item in pairs})
        yield {"messages": name, **({"roles": own} if own else {})}
    talks = [talk for value in part.values(name) if isinstance(talk := talk_of(value), list)]
    # Those whose last question has no answer break turns, and are left out.
    even = sum(len(talk) > 1 and len(talk) % 2 == 0 for talk in talks)
    if talks and {*roles.words(name)[-1:]} & {*_TALK_WORDS, "data"}:
        if column.kind == account.TEXTS and 2 * even >= len(talks):
            yield {"messages": name}
        if column.kind in (account.OBJECTS, account.OBJECT):
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
        ends = (ends_of([str(item[keys[role]]) for item in items]) for role in _SIDES)
        control = list(dict.fromkeys(chain(*ends)))
        system = {"system": "system"} if any("system" in item for item in items) else {}
        said = {**system, **{role: keys[role] for role in _SIDES}}
        yield {"messages": name, "keys": said, **({"marks": {CONTROL: control}} if control else {})}


def _continued(part: Part) -> Iterator[Table]:
    """Yield what a recipe says of a text of turns, which ends where that of an answer begins."""
    columns, question = part.columns.by_name, part.guess.question
    chosen = part.columns.first(CHOSEN)
    answer = chosen or part.guess.answer
    if answer is None or columns[answer].kind != account.TEXT:
        return
    if question is None or marks_of(part.texts(question), is_open=True) is None:
        # The answer of a preference may repeat the question.
        yield from _marked(answer, part.texts(answer)) if chosen or question is None else ()
    elif {*"{}"}.isdisjoint(answer + question):
        pairs = zip(part.values(question), part.values(answer), strict=True)
        whole = [asked + said for asked, said in pairs if type(asked) is type(said) is str]
        yield from _marked(f"{{{question}}}{{{answer}}}", whole)


def _marked(messages: str, texts: Sequence[str]) -> Iterator[Table]:
    """Yield what a recipe says of a column, or of a template, whose texts have marks."""
    if found := marks_of(texts):
        yield {"messages": messages, "marks": found}
