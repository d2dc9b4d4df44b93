"""Any JSON value to a text; two stories to a record, the transform `trip`.

Source: `docs/formats/reasoning.md#flattening`, `docs/formats/reasoning.md#forms-of-trip`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

from gristmill.corpora.records import Record, Scalar

BETWEEN: Final = "\n"
"""Joins the items of a list."""
_JSON: Final = 'read its JSON by {{ json = "{}" }}'
_SHOWN: Final = 80
_TEXT_KEYS: Final = ("text", "step", "content", "sentence")
_MARK: Final = "\ufeff"
_TRUTHS: Final = {"True": True, "TRUE": True, "False": False, "FALSE": False}

REASONS: Final = (
    *("json", "object", "columns", "utf8", "shape", "number", "generations", "story"),
    *("answer_id", "step", "step_idx", "question", "answer", "evidence", "surrogate"),
    *("white_space", "value", "group", "python", "unknown_keys", "id"),
    *("messages", "role", "tools", "thinking", "weight", "turns"),
)
"""Why a record may be refused: `docs/formats/reasoning.md#refused-records`."""
_LEFT_OUT: Final = ("evidence", "keep", "split", "dedup", "sample", "cap", "drop", "tree", "leak")
"""Those of records that are whole, and that a rule of their corpus or a setting leaves out."""

CURES: Final[Mapping[str, str]] = {
    "json": "write an object a line with no comma behind it, or one array of objects; a file that "
    "ends in the middle of one was cut: get it again",
    "object": 'write an object a line, as {"messages": [..]} of a list of messages, or '
    '{"text": ".."} of a text',
    "number": "write null where there is no number",
}
"""What helps against a reason, where its rule does not say it."""


def is_left_out(reason: str) -> bool:
    """Whether a reason is a rule of a corpus, as `evidence` or `keep:language`, and no damage."""
    return reason.partition(":")[0] in _LEFT_OUT


def is_reason(reason: object) -> bool:
    """Whether a text is the reason of a refused record."""
    return reason in REASONS or (isinstance(reason, str) and is_left_out(reason))


class ClassName(int):
    """The number of a class, with its name; None for one that has none, as -1 without a label.

    Texts have the name; places of choices, and what a recipe compares with a number, the number.
    """

    name: str | None

    def __new__(cls, number: int, name: str | None) -> Self:
        """Make it of a number and the name of the class."""
        made = super().__new__(cls, number)
        made.name = name
        return made


class Unfit(Exception):
    """A raw record that cannot be normalised.

    reason: one of `REASONS`.
    rule: that the record breaks, a sentence.
    """

    def __init__(self, reason: str, rule: str) -> None:
        super().__init__(reason, rule)
        self.reason, self.rule = reason, rule


def canonical(text: str) -> str:
    """A text with LF for CRLF and CR, and without byte order marks at its beginning."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.lstrip(_MARK) if text.startswith(_MARK) else text


def flattened(value: Any, of: str | None = None) -> str | None:
    """A JSON value as a text, None for null and for lists that hold nothing.

    of: name of what must be a text, where the JSON of an object is none, nor a list in a list;
        default None: each value has a text.

    Raises Unfit for a number that is not finite, and as `of` says.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return canonical(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return value.name if isinstance(value, ClassName) else str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return BETWEEN.join(items(value, of)) or None
    return _object(value, of)


def truth(value: Any) -> Any:
    """The truth value of a word as Python or Excel writes it into a table; else the value."""
    return _TRUTHS.get(value, value) if isinstance(value, str) else value


def items(values: list[Any], of: str | None = None) -> list[str]:
    """The items of a list as texts: flattened, stripped, without those that are empty.

    of, and what is raised: as of `flattened`.
    """
    if of is not None and any(isinstance(value, list) for value in values):
        raise Unfit("value", f"its {of} holds lists in a list, and no text: {_JSON.format(of)}")
    texts = [(flattened(value, of) or "").strip() for value in values]
    return [text for text in texts if text]


def text(value: Any, of: str | None = None) -> str:
    """A JSON value as a text; null is empty. of, and what is raised: as of `flattened`."""
    if type(value) is str and "\r" not in value and value[:1] != _MARK:
        return value
    return flattened(value, of) or ""


def chain(value: Any, of: str | None = None) -> tuple[str | None, list[str] | None]:
    """A chain of thought: its text or None, and its steps if it is a list.

    of, and what is raised: as of `flattened`.
    """
    if isinstance(value, list):
        steps = items(value, of)
        return (BETWEEN.join(steps), steps) if steps else (None, None)
    return flattened(value, of), None


def extra(value: Any) -> Scalar:
    """The value of an extra column: scalars as they are, lists and objects as texts.

    Raises Unfit as `flattened`.
    """
    if isinstance(value, str | list | dict | ClassName):
        return flattened(value)
    if isinstance(value, float):
        _number(value)
    scalar: Scalar = value
    return scalar


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Unfit("number", f"{value} is no finite number")
    return str(int(value)) if value.is_integer() else repr(value)


def _object(value: dict[str, Any], of: str | None) -> str | None:
    """The first known key of an object, or its JSON, which is no text of something."""
    for key in _TEXT_KEYS:
        if key in value:
            return flattened(value[key], of)
    if not value:
        return None
    if of is not None:
        named = ", ".join(value)[:_SHOWN]
        rule = f"its {of} is an object with the keys {named}, and no text: {_JSON.format(of)}"
        raise Unfit("value", f"{rule}, or a place in it by its name, as {of}.{next(iter(value))}")
    return json_of(value)


def json_of(value: Any) -> str:
    """The JSON of a value, with sorted keys. Raises Unfit for a number that is not finite."""
    try:
        return canonical(
            json.dumps(
                value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
            )
        )
    except ValueError as error:
        raise Unfit("number", "an object holds a number that is not finite") from error


CONFLICT: Final = "Conflict"
EFFECT: Final = "Effect"
PRECONDITION: Final = "Precondition"
"""First words of the lines of a program."""
ATTRIBUTES: Final = (
    *("h_location", "conscious", "wearing", "h_wet", "hygiene", "location", "exist", "clean"),
    *("power", "functional", "pieces", "wet", "open", "temperature", "solid", "contain"),
    *("running", "moveable", "mixed", "edible"),
)
"""Attributes of an entity in the order of its states."""
_CODED: Final = ("h_location", "location")
_VALUES: Final = {1: "negative", 2: "positive"}
_LETTERS: Final = "AB"
COLUMNS: Final = (
    *("stories", "program", "location", "objects", "pair_confl_pairs", "confl_pairs"),
    *("confl_sents", "breakpoint", "pair_states", "pair_entities", "pair_plausible_story", "label"),
)
"""Columns that are read of a row."""


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise Unfit("story", f"its {what} are no list")
    return value


def _index(value: Any, count: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise Unfit("story", f"{what} {str(value)[:40]!r} is no number from 0 to {count - 1}")
    return value


def _sentences(story: Any) -> list[str]:
    if isinstance(story, dict):
        story = story.get("sentences")
    sentences = items(_list(story, "sentences"))
    if not sentences:
        raise Unfit("story", "a story has no sentences")
    return sentences


def _numbered(sentences: Sequence[str]) -> str:
    return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))


def _plausible(row: Mapping[str, Any], stories: Sequence[Any]) -> int:
    """Which of both stories is plausible."""
    for column in ("pair_plausible_story", "label"):
        if row.get(column) is not None:
            return _index(row[column], 2, column)
    said = [story.get("plausible") if isinstance(story, dict) else None for story in stories]
    if said in ([True, False], [False, True]):
        return said.index(True)
    raise Unfit("story", "it does not say which story is plausible")


def _pairs(row: Mapping[str, Any], story: Any, count: int) -> list[tuple[int, int]]:
    """The pairs of sentences that conflict in a story, as indices from 0."""
    places = [row, story] if isinstance(story, dict) else [row]
    for place in places:
        for column in ("pair_confl_pairs", "confl_pairs"):
            pairs = [_pair(pair, count) for pair in _list(place.get(column) or [], column)]
            if pairs:
                return pairs
    for place in places:
        sentences, breakpoint_ = place.get("confl_sents"), place.get("breakpoint")
        if isinstance(sentences, list) and isinstance(breakpoint_, int) and breakpoint_ >= 0:
            return [_pair([sentence, breakpoint_], count) for sentence in sentences]
    return []


def _pair(pair: Any, count: int) -> tuple[int, int]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise Unfit("story", "a conflict is no pair of sentences")
    return _index(pair[0], count, "sentence"), _index(pair[1], count, "sentence")


def _states(row: Mapping[str, Any], story: Any) -> list[tuple[str, Any]]:
    """Entities of a story in order, each with its states by sentence."""
    own = story if isinstance(story, dict) else {}
    for place, prefix in ((own, ""), (row, "pair_")):
        states = place.get(f"{prefix}states")
        names = place.get(f"{prefix}entities")
        if not states:
            continue
        if isinstance(states, dict):
            order = names if isinstance(names, list) else list(states)
            return [(text(name), states[name]) for name in order if name in states]
        if isinstance(states, list) and isinstance(names, list) and len(states) == len(names):
            return [(text(name), state) for name, state in zip(names, states, strict=True)]
        raise Unfit("story", "its states are neither an object nor a list with the entities")
    return []


def _facts(states: Any, sentence: int, which: int) -> Iterator[str]:
    """The facts that an entity has before (0) or after (1) a sentence: attribute and value."""
    if isinstance(states, list) and sentence >= len(states):
        return  # an entity that is not named to the end of its story
    try:
        values = states[sentence][which]
        numbers = [int(value) for value in values]
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise Unfit("story", f"sentence {sentence + 1} has no states: {error}") from error
    if len(numbers) != len(ATTRIBUTES):
        rule = f"sentence {sentence + 1} has {len(numbers)} attributes, not {len(ATTRIBUTES)}"
        raise Unfit("story", rule)
    for attribute, number in zip(ATTRIBUTES, numbers, strict=True):
        if number:
            coded = attribute in _CODED
            yield f"{attribute} = {number if coded else _VALUES.get(number, number)}"


def program(
    pairs: Sequence[tuple[int, int]], states: Sequence[tuple[str, Any]], letter: str
) -> str:
    """The program of a story that is not plausible: one fact a line, each line once.

    pairs: of sentences that conflict, as indices from 0.
    states: entities in order, each with [sentence][before, after][attribute].

    Sentences are numbered from 1, as in the question. Raises Unfit for states of another form.
    """
    lines: list[str] = []
    for first, second in pairs:
        lines.append(f"{CONFLICT}: story {letter}, sentences {first + 1} and {second + 1}")
        for name, of_entity in states:
            entity = " ".join(name.split())
            for kind, sentence, which in ((EFFECT, first, 1), (PRECONDITION, second, 0)):
                lines += [
                    f"{kind}: sentence {sentence + 1}, {entity}, {fact}"
                    for fact in _facts(of_entity, sentence, which)
                ]
    return "\n".join(dict.fromkeys(lines))


def _context(row: Mapping[str, Any]) -> str | None:
    lines = []
    for key, label in (("location", "Location"), ("objects", "Objects")):
        value = row.get(key)
        found = ", ".join(items(value)) if isinstance(value, list) else flattened(value)
        if found:
            lines.append(f"{label}: {found}")
    return "\n".join(lines) or None


def record(row: Mapping[str, Any], shape: str) -> Record:
    """The record of a row with two stories. shape: of the record. Raises Unfit."""
    stories = _list(row["stories"], "stories")
    if len(stories) != 2:
        raise Unfit("story", f"it has {len(stories)} stories, not 2")
    sentences_of = [_sentences(story) for story in stories]
    blocks = [
        f"Story {letter}:\n{_numbered(sentences)}"
        for letter, sentences in zip(_LETTERS, sentences_of, strict=True)
    ]
    question = "\n\n".join([*blocks, "Which story is plausible?"])
    plausible = _plausible(row, stories)
    wrong = 1 - plausible
    if row.get("program") is not None:
        cot, steps = chain(row["program"])
    else:
        pairs = _pairs(row, stories[wrong], len(sentences_of[wrong]))
        cot, steps = program(pairs, _states(row, stories[wrong]), _LETTERS[wrong]) or None, None
    return Record(question, _LETTERS[plausible], cot, (_context(row),), steps, shape)
