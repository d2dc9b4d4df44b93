"""What divides texts into messages, by the texts themselves: marks of roles, tags, tokens.

A mark is the name of a speaker in the same signs in most texts, where a user speaks first and an
assistant answers; a tag is what a text begins with and a tag like it closes; a token of a template
stands around messages. Source: `docs/formats/chat.md#transcripts`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.corpora.raw.chat import lists
from gristmill.corpora.raw.chat.lists import is_nodes
from gristmill.corpora.raw.chat.messages import GUESSED
from gristmill.corpora.raw.chat.recipe import ALIASES, CONTROL, Transcripts, listed
from gristmill.corpora.raw.texts import Unfit, canonical

SPEAKERS: Final = {
    **ALIASES,
    **dict.fromkeys(("client", "customer"), "user"),
    **dict.fromkeys(("bot", "model", "chatgpt", "ai", "bing", "bard", "moss"), "assistant"),
    **dict.fromkeys(("function", "observation", "ipython", "function_call"), "tool"),
    **dict.fromkeys(("function_response", "tool_call", "tool_response"), "tool"),
}
"""What speakers of messages mean, by their names in lower case."""
Marks = dict[str, Any]
MOST: Final = 0.8
_IN_TEXTS: Final = {
    **{name.replace("_", " "): role for name, role in SPEAKERS.items()},
    **{"instruction": "user", "response": "assistant", "q": "user", "a": "assistant"},
}
_NAME: Final = "([A-Za-z]{1,20})"
_WORD: Final = re.compile(
    r"(?:^|(?<=\n)|(?=#)|(?<=[ >])(?=[A-Z]{4}))(?:#{2,4} ?|<|\*\*)?"
    r"([A-Za-z]{1,20}(?: [A-Za-z]{1,20})?)(?:>|\*\*)?:(?:\*\*)?"
)
_FORMS: Final = (
    # A speaker behind a token, or between two, as `<|im_start|>user`.
    re.compile(r"<\|?(?!(?:user|prompter|human)\b)\w{1,30}\|?>([a-z]{1,20})\b(?:<\|\w{1,30}\|>)?"),
    # One in brackets, as `[|Human|]`, `<|prompter|>` or `[Human]:`.
    re.compile(rf"(?:\[\||<[|｜]){_NAME}(?:\|\]|[|｜]>):?|\[{_NAME}\]:"),
    _WORD,
)
_LLAMA: Final = {
    **{"system": "[INST] <<SYS>>", "user": ["[INST]", "<</SYS>>"], "assistant": "[/INST]"}
}
_FEW: Final = 4
_ROLES: Final = ("system", "user", "assistant", "tool")
_TOKEN: Final = r"(?:<[|｜][^<>|｜\s]{1,30}[|｜]>:?|</?s>|<(?:eo[a-z]{1,6}|bos|end_of_turn)>)"
_AROUND: Final = tuple(re.compile(form) for form in (rf"^(?:{_TOKEN}\s*)+", rf"(?:{_TOKEN}\s*)+$"))
_OPENS: Final = re.compile(
    r"\s*((?P<left><\||<|\[)(?P<begin>begin_of_|start_of_)?(?P<word>\w{1,40})(?P<right>\|>|>|\]))"
)
_THOUGHT: Final = {
    *("think", "thinking", "thought", "thoughts", "reasoning", "reason", "rationale"),
    *("scratchpad", "cot", "reflection", "analysis"),
}
_ANSWERS: Final = {"answer", "solution", "response", "output", "final"}


def marks_of(texts: Sequence[str], *, is_open: bool = False) -> Marks | None:
    """The marks by which eight of ten texts are conversations, as a recipe has them; else None.

    texts: of a column. Few texts before the first mark, which come again and again, are `control`.
    is_open: whether the last answer must be empty, as where another column has it; default False.
    """
    texts = [canonical(text) for text in texts]
    for marks in (_LLAMA, *(_named(texts, form) for form in _FORMS)):
        both = [all(_has(marks.get(r), t) for r in ("user", "assistant")) for t in texts]
        if texts and sum(both) >= MOST * len(texts) and (found := _fitting(marks, texts, is_open)):
            return found
    return None


def _fitting(marks: Marks, texts: Sequence[str], is_open: bool) -> Marks | None:
    """The marks that texts have, with the texts around messages; None where too few fit."""
    used = {role: own for role, own in marks.items() if any(_has(own, text) for text in texts)}
    mark = "|".join(re.escape(each) for own in used.values() for each in listed(own))
    own = ends_of([piece for text in texts for piece in re.split(mark, text)], 0.0)
    reader = Transcripts({**used, CONTROL: own})
    heads = (reader.head(text) for text in texts)
    before = Counter(said for head in heads if head and (said := reader.bare(head)))
    is_few = len(before) <= _FEW and all(count > 1 for count in before.values())
    control = [*own, *(before if is_few else ())]
    made = {**used, **({CONTROL: control} if control else {})}
    good = sum(_asks(Transcripts(made), text, is_open) for text in texts)
    return made if good >= MOST * len(texts) else None


def _asks(reader: Transcripts, text: str, is_open: bool) -> bool:
    """Whether a user is the first of a text, behind a system, and an assistant answers."""
    try:
        messages = [*reader.divided(text)]
    except Unfit:
        return False
    roles = [role for role, _ in messages if role != "system"]
    return roles[:2] == ["user", "assistant"] and is_open == (messages[-1] == ("assistant", ""))


def _has(mark: Any, text: str) -> bool:
    return any(each in f"\n\n{text}" for each in listed(mark))


def _named(texts: Sequence[str], form: re.Pattern[str]) -> Marks:
    """The marks that are the names of speakers, as `### Human:`; by role."""
    found: dict[str, Counter[str]] = {}
    signs: dict[str, str] = {}
    for match in (match for text in texts for match in form.finditer(text)):
        said = next(filter(None, match.groups()))
        if role := _IN_TEXTS.get(said.lower()):
            found.setdefault(role, Counter())[match[0]] += 1
            signs[match[0]] = match[0].replace(said, "")
    made: Marks = {role: found[role].most_common(1)[0][0] for role in _ROLES if role in found}
    if form is _WORD:
        return {role: _spelled(found[role], texts) for role in made}
    # Other signs around a speaker say more of a message, as its channel.
    is_one = form is not _FORMS[0] or len({signs[mark] for mark in made.values()}) == 1
    return made if is_one else {}


def _spelled(found: Counter[str], texts: Sequence[str]) -> str | list[str]:
    """The mark that is there most often, and those that begin lines and have other capitals."""
    first, *others = [each for each, _ in found.most_common()]
    alike = [each for each in others if each.lower() == first.lower()]
    begun = [each for each in alike if any(f"\n{each}" in f"\n{text}" for text in texts)]
    marks = [_begun(each, texts) for each in (first, *begun)]
    return marks if begun else marks[0]


def _begun(mark: str, texts: Sequence[str]) -> str:
    """A mark with the line feeds that are always before it, so that none in a line counts."""
    begun = sum(text.startswith(mark) for text in texts)
    is_inner = mark.isupper() and sum(text.count(mark) for text in texts) > begun
    count = sum(text.count(f"\n{mark}") for text in texts)
    far = sum(text.count(f"\n\n{mark}") for text in texts)
    if mark.startswith("#") or (is_inner and not count):
        return mark
    return f"\n\n{mark}" if far == count > 0 else f"\n{mark}"


def tags_of(texts: Sequence[str], least: float = MOST) -> tuple[str, ...]:
    """The tags of thoughts with which most of some texts begin: two, or four with the answer's.

    least: the share of texts that have them; where fewer do, there are none. Default: eight of ten.
    """
    found = Counter(tags for text in texts if (tags := tuple(_tags_in(text))))
    tags, count = found.most_common(1)[0] if found else ((), 0)
    return tags if count >= least * len(texts) else ()


def _tags_in(text: str) -> Iterator[str]:
    """Yield the tags of a text that begins with a thought; none for another."""
    opens, closes, words = _pair(text)
    _, closed, rest = text.partition(closes)
    if closed and _THOUGHT & words:
        yield from (opens, closes)
        if (second := _pair(rest))[2] and rest.rstrip().endswith(second[1]):
            yield from second[:2]


def around_of(texts: Sequence[str]) -> tuple[str, str] | None:
    """The two tags around eight of ten answers without a thought, as `<answer>`; else None."""
    pairs = [(text, _pair(text)) for text in texts]
    found = Counter(
        pair[:2] for text, pair in pairs if _ANSWERS & pair[2] and text.rstrip().endswith(pair[1])
    )
    tags, count = found.most_common(1)[0] if found else (("", ""), 0)
    return tags if count and count >= MOST * len(texts) else None


def _pair(text: str) -> tuple[str, str, set[str]]:
    """The tag that a text begins with, the one that closes it, and its words; none of them."""
    if (match := _OPENS.match(text)) is None:
        return "", "\0", set()
    end = "end_of_" if match["begin"] else "/"
    closes = f"{match['left']}{end}{match['word']}{match['right']}"
    return match[1], closes, {*match["word"].lower().split("_")}


def ends_of(texts: Sequence[str], least: float = MOST) -> list[str]:
    """The tokens of a template that texts begin or end with, as `</s>`; the most frequent first.

    least: the share of texts that have one of them so; default: eight of ten.
    """
    runs = (run for text in texts for form in _AROUND if (run := form.search(text.strip())))
    found = Counter(token for run in runs for token in re.findall(_TOKEN, run[0]))
    return [each for each, count in found.most_common() if count >= least * len(texts)]


ROLE_KEYS: Final = ("role", "from", "speaker", "author", "sender")
TEXT_KEYS: Final = ("content", "value", "text", "message", "parts")


def talk_of(value: Any) -> Any:
    """The list of messages that a text in JSON, a list or an object holds, as a recipe reads it.

    Thoughts are messages in it; calls of tools without a role are left out. Of an object of nodes
    the messages of all. Returns any other value as it is.
    """
    is_text = isinstance(value, str) and value.lstrip()[:1] in ("[", "{")
    if not is_text and not isinstance(value, dict | list):
        return value
    try:
        is_tree = is_nodes(value)
        found = lists.messages_of(value.values(), "") if is_tree else lists.message_list(value)
        if not isinstance(found, list):
            return found
        kept = [each for each in found if not lists.call_of(each) or each.get("role")]
        return lists.with_thoughts(kept)
    except (GristmillError, Unfit, TypeError):
        return value


def message_keys(value: object) -> tuple[str, str] | None:
    """The keys of the speaker and of the text in a list of messages; None: it is no such list.

    One of the speakers is known, or the keys are usual; what the others are, a recipe says.
    """
    if not isinstance(value, list) or not value:
        return None
    for role, text in ((role, text) for role in ROLE_KEYS for text in TEXT_KEYS):
        if all(
            isinstance(each, dict) and text in each and isinstance(each.get(role), str)
            for each in value
        ) and ((role, text) in GUESSED or any(each[role].lower() in SPEAKERS for each in value)):
            return role, text
    return None


def turns_of(value: Any) -> list[tuple[str | None, Any]]:
    """What each message of a value is, as a role of a recipe, and its text; none of no messages.

    The role is None for a speaker that nobody knows.
    """
    talk = talk_of(value)
    keys = message_keys(talk)
    return [(SPEAKERS.get(each[keys[0]].lower()), each[keys[1]]) for each in talk] if keys else []
