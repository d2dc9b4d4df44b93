"""The transform `trip` of two stories. Source: `docs/formats/reasoning.md#forms-of-trip`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.corpora.raw.texts import Unfit, chain, flattened, items, text
from gristmill.corpora.records import Record

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
