"""Compare gigatoken with tiktoken on every code point, and print those for which they differ.

    python -m tests.vocabularies.prove

The output goes into `gristmill/vocabularies/engine.py`; status 1 says that it is not there.
It takes some minutes, and wants the versions that `engine.PROVEN_VERSIONS` names.
"""

import random
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from gristmill.vocabularies import engine
from gristmill.vocabularies.engine import Gigatoken, tiktoken_encoding
from gristmill.vocabularies.pinned import VOCABULARIES, Vocabulary
from gristmill.vocabularies.tokenizer import of_pinned
from tests.kept_vocabularies import kept_vocabularies
from tests.vocabularies.places import drop

CONTEXTS = (
    # Between letters, digits, spaces and ends of lines.
    *("a{c}b", " {c}", "1{c}2345", "12{c}3", "a   {c}b", "\n{c}\n", "{c}{c}{c}", " {c}{c}Ab{c}"),
    # Contractions: whether it is a letter, and whether it equals one without regard to case.
    *("A{c}'s", "{c}'Ll", "'{c}", "n'{c}e", "n'l{c}", "N'{c}L", "x'{c}{c}"),
    # Runs of punctuation, marks, ideographs, and upper case before and after.
    *(".{c}'s", "{c}.\n\n", "../{c}//\n", "\u0301{c}\u0301a", "\u4e2d{c}\u6587"),
    *("AB{c}Cd", "{c}THe"),
)
"""Where a code point is compared: a difference shows where it moves the end of a piece of text."""

_WORDS_AT_ONCE = 50_000
ALL = range(sys.maxunicode + 1)


def is_text(code: int) -> bool:
    """Whether a code point has UTF-8, as a lone surrogate has not."""
    return 0 <= code <= sys.maxunicode and not 0xD800 <= code <= 0xDFFF


def in_contexts(code: int) -> list[str]:
    """Two texts: the character alone, and in all contexts."""
    character = chr(code)
    return [character, "\nx ".join(context.format(c=character) for context in CONTEXTS)]


def differing(
    vocabulary: Vocabulary,
    path: Path,
    codes: Iterable[int],
    texts: Callable[[int], list[str]] = in_contexts,
) -> list[int]:
    """The code points of `codes` for which the engines differ on any of their texts."""
    fast, reference = Gigatoken(of_pinned(vocabulary, path)), tiktoken_encoding(vocabulary, path)
    encode, found = fast.encoder(0), []
    for number, code in enumerate(filter(is_text, codes), start=1):
        if number % _WORDS_AT_ONCE == 0:
            fast.forget()
            encode = fast.encoder(0)
        for text in texts(code):
            expected = reference.encode_to_numpy(text, disallowed_special=())
            if encode(text).tobytes() != expected.tobytes():
                found.append(code)
                break
    return found


def beside_neighbours(unproven: Collection[int]) -> Callable[[int], list[str]]:
    """A function from a code point to a text of it and its neighbours, without the unproven."""

    def texts(code: int) -> list[str]:
        near = [code - 1, code, code + 1, code]
        return ["".join(chr(c) for c in near if is_text(c) and c not in unproven)]

    return texts


def measured(vocabulary: Vocabulary, path: Path) -> str:
    """The table of a vocabulary, from a comparison of every code point."""
    own = set(differing(vocabulary, path, ALL))
    return engine.text_of(own | set(differing(vocabulary, path, ALL, beside_neighbours(own))))


def sampled_codes(vocabulary: Vocabulary, seed: str, count: int) -> list[int]:
    """The ends of all ranges with what lies beside them, and `count` other code points."""
    ends = {
        code + step
        for both in engine.ranges(engine.UNPROVEN[vocabulary.name])
        for code in both
        for step in (-1, 0, 1)
    }
    return sorted(ends | set(random.Random(seed).sample(ALL, count)))


def main() -> None:
    if reason := engine.why_reference_alone():
        raise SystemExit(f"{reason}: install the proven versions, or change PROVEN_VERSIONS first")
    root = kept_vocabularies()
    tables = {each.name: measured(each, drop(root, each)) for each in VOCABULARIES}
    for name, text in tables.items():
        print(name, *textwrap.wrap(text, 90), sep="\n  ")  # noqa: T201
    if tables != engine.UNPROVEN:
        raise SystemExit("gristmill/vocabularies/engine.py has other tables")


if __name__ == "__main__":
    main()
