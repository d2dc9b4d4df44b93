"""Compare the ids of every tokenizer of a data root with those of its own library.

    python -m tests.vocabularies.mixed_texts DATA [--texts 50000]

DATA is a data root where tokenizers are placed: `gristmill tokenizers FILE --data-root DATA`, then
`gristmill materialize tokenizers/placed --data-root DATA`. Half of the texts are random, as
`random_texts.py` has them, and half are text files and code of the installed packages. Besides, all
that looks like a control token or a byte is compared. A line says for each tokenizer which engine
gave the ids; status 1 where one differs.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from bench.distinct_text import Text
from gristmill.vocabularies.engine import AUTO, REFERENCE
from gristmill.vocabularies.pinned import FACTS, PLACE
from gristmill.vocabularies.references import reference_of
from gristmill.vocabularies.tokenizer import Tokenizer, open_tokenizer
from tests.vocabularies import random_texts

_AT_ONCE = 1000


def mixed(count: int) -> Iterator[str]:
    """Yield so many texts, the same in every run on one machine."""
    dice, natural = random.Random(34), Text(34)
    for number, text in enumerate(random_texts.texts(dice, count)):
        yield text if number % 2 else natural.body(dice.randrange(20, 1200))


def differing(tokenizer: Tokenizer, texts: list[str]) -> list[str]:
    """The texts whose ids are other ones by the fast engine."""
    found: list[str] = []
    for begin in range(0, len(texts), _AT_ONCE):
        some = texts[begin : begin + _AT_ONCE]
        fast, reference = (tokenizer.encode(some, engine).ids for engine in (AUTO, REFERENCE))
        found += [
            text for text, a, b in zip(some, fast, reference, strict=True) if bytes(a) != bytes(b)
        ]
    return found


def main() -> None:
    """All of it; see the module's head."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--texts", type=int, default=50_000)
    arguments = parser.parse_args()
    texts, failed = list(mixed(arguments.texts)), False
    for path in sorted((arguments.data / PLACE).glob(f"*/{FACTS}")):
        tokenizer = open_tokenizer(path.parent)
        marked = [f"x{mark} y{mark}" for mark in reference_of(tokenizer).marks()]
        wrong = differing(tokenizer, texts + marked)
        failed |= bool(wrong)
        proof = tokenizer.proof
        engine = proof.why_not if proof and proof.why_not else "gigatoken"
        line = f"{tokenizer.name}: {len(wrong)} of {len(texts):,} texts differ; {engine}"
        print(line, *map(repr, wrong[:3]), sep="\n  ")  # noqa: T201
    if failed:
        raise SystemExit("ids differ")


if __name__ == "__main__":
    main()
