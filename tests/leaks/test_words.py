"""The words of a text, and that the kernels hash as the slow form does, on any text."""

import random
import re
import sys
from collections import namedtuple

import numpy as np
import pytest

from gristmill.leaks.method import Index, Texts
from gristmill.leaks.words import (
    ALONE,
    BARE,
    CAPITAL,
    DIGIT,
    END,
    KINDS,
    SKIPPED,
    fold,
    seeds_of,
    table,
)

SEEDS = seeds_of(b"k" * 32)
_WITHIN = re.compile(",[0-9]{3}(?![0-9])")


Word = namedtuple("Word", "folded begin end alone bare")


def words(text):
    """Yield the words of a text."""
    held, begin, end, kind, capitals = "", 0, 0, END, [False]
    text = f"{text} "  # which ends the last word
    for at, char in enumerate(text):
        code, its = divmod(fold(char), KINDS)
        is_capital, its = divmod(its, CAPITAL)
        if its == SKIPPED or (its == END and kind == DIGIT and _WITHIN.match(text, at)):
            continue
        if held and (its != kind or its == ALONE):
            is_bare = kind != DIGIT and (capitals[-1] or not capitals[0])
            yield Word(held, begin, end, kind == ALONE, is_bare)
            held = ""
        if its != END:
            begin, capitals = (begin, capitals) if held else (at, [])
            held += chr(code)
            capitals.append(bool(is_capital))
        end, kind = at + 1, its


_MASK = (1 << 64) - 1


def _mixed(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


def run_hash(found, is_bare=False):
    """The hash of a run of words, slowly."""
    total, (seed, base, mark) = 0, SEEDS.tolist()
    for each in found:
        word = seed
        for char in each.folded:
            word = ((word ^ ord(char)) * 0x9E3779B97F4A7C15) & _MASK
        total = (total * base + _mixed(word)) & _MASK
    return _mixed(total ^ (len(found) * mark & _MASK) ^ (BARE if is_bare else 0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Janet's 16 Eggs.", "janet s 16 eggs"),
        ("1,234,567 and 1,2,34", "1234567 and 1 2 34"),
        ("1,2345 12,345x 1,23", "1 2345 12345 x 1 23"),
        ("for i in range(n_2):", "for i in range n 2"),
        ("ＡＢＣ，１２", "abc 12"),
        ("caf\u00e9 cafe\u0301 CAFE\u0301", "cafe cafe cafe"),
        ("Stra\u00dfe \ufb01sh \u01c4", "strase fsh d"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("\u5728abc\u5c31\u662f3", "\u5728 abc \u5c31 \u662f 3"),
        ("\uff76\uff85 \u304b\u30ca", "\u30ab \u30ca \u304b \u30ca"),
        ("\U00020000\U0001f600", "\U00020000"),
        ("\u0661\u0662 x\u00b2", "12 x 2"),
        ("a\ud800b", "a b"),
        ("\n\t .,;", ""),
        ("", ""),
        ("Janet\u0027s A1 of iPhone McDo", "janet- s a 1- of iphone mcdo-"),
        ("IN I asked \u00c9tienne \u01c5 \uff21\uff42", "in i asked etienne- d ab-"),
    ],
)
def test_words_are_folded(text, expected):
    assert [each.folded for each in words(text)] == expected.replace("-", "").split()
    if "-" in expected:  # behind names and numbers, which are no bare words
        bare = [each for each in expected.split() if each[-1] != "-"]
        assert [each.folded for each in words(text) if each.bare] == bare
    for each in words(text):
        assert [inner.folded for inner in words(text[each.begin : each.end])] == [each.folded]


def _random_text(rng):
    pools = [
        "abcXYZ  ,.'",
        "0123456789,,,",
        [chr(code) for code in range(0x20, 0x500)],
        [chr(code) for code in range(0x2E80, 0xA000, 7)],
        [chr(code) for code in range(0xD7FB, 0x10000, 3)],
        [chr(code) for code in range(0x10000, sys.maxunicode + 1, 997)],
        ["\u0e01", "\u0e31", "\u1780", "\u1000", "\u200d", "\u0301", ","],
    ]
    return "".join(
        "".join(rng.choices(rng.choice(pools), k=rng.randint(1, 12)))
        for _ in range(rng.randint(0, 8))
    )


def test_the_kernel_hashes_as_the_slow_form_does():
    from gristmill.leaks.kernels import hashed_runs

    rng = random.Random(5)
    texts = [_random_text(rng) for _ in range(3000)]
    given = Texts.of(texts)
    hashes, counts, hits = Index((), SEEDS).matched(given)
    found = [list(words(text)) for text in texts]
    bare = [[each for each in some if each.bare] for some in found]
    alone = [sum(each.alone for each in some) for some in found]
    lengths = [[*map(len, some)] for some in (found, bare)]
    assert counts.T.tolist() == [lengths[0], alone, lengths[1]]
    assert hashes.tolist() == [run_hash(some) for some in found]
    assert (
        len(hits) == 0 and (counts.max(0) > 20).all() and (counts[:, 2] < counts[:, 0]).sum() > 99
    )
    sizes, begins = np.array([rng.randint(0, 5) for _ in texts]), [0, *given.ends.tolist()]

    def span(number, some):
        """Begin and end of a run in the bytes of all texts."""
        edges = texts[number][: some[0].begin], texts[number][: some[-1].end]
        return [begins[number] + len(each.encode("utf-8", "surrogatepass")) for each in edges]

    for is_bare, its in enumerate((found, bare)):
        runs, of, spans = hashed_runs(*given, table(), SEEDS, sizes, bool(is_bare))
        expected = [
            (
                run_hash(some[at : at + size], bool(is_bare)),
                number,
                *span(number, some[at : at + size]),
            )
            for number, (some, size) in enumerate(zip(its, sizes.tolist(), strict=True))
            for at in range(len(some) - size + 1 if size else 0)
        ]
        made = zip(runs.tolist(), of.tolist(), *spans.T.tolist(), strict=True)
        assert [*made] == expected


def test_keys_give_other_hashes():
    other = seeds_of(b"j" * 32)
    one, two = (Index((), seeds).find(["one two three"])[0][0] for seeds in (SEEDS, other))
    assert one != two
