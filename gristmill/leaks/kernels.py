"""The kernels: words of many texts, hashes of their runs, and which questions stand in them.

Source: `docs/leaks.md#how-it-works`. `words.py` has the same, slowly. Importing this loads numba.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call,assignment"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.leaks.words import ALONE, CODES, DIGIT, END, IDEOGRAPHS, KINDS, SKIPPED
from gristmill.run.kernels import kernel

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_27, _30, _31, _32, _63 = (np.uint64(each) for each in (27, 30, 31, 32, 63))
_0, _1, _6 = np.uint64(0), np.uint64(1), np.uint64(6)


@njit(inline="always")
def _mixed(word):
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@njit(inline="always")
def _is_within(data, at, end):
    """Whether a comma is within a number: three digits follow, and no fourth."""
    if at + 3 >= end:
        return False
    for place in range(at + 1, at + 4):
        if not 48 <= data[place] <= 57:
            return False
    return at + 4 >= end or not 48 <= data[at + 4] <= 57


@njit
def _hash_words(data, begin, end, table, seed, base, runs):
    """Put the hash of the words before each word into `runs`; returns how many, how many alone.

    data: UTF-8; what is none is read somehow, within its bounds.
    """
    count, alone, at = 0, 0, begin
    held, kind = seed, END
    runs[0] = _0
    while at < end:
        octet = np.int64(data[at])
        code, size = octet, 1
        if octet >= 240:
            code, size = octet & 7, 4
        elif octet >= 224:
            code, size = octet & 15, 3
        elif octet >= 128:
            code, size = octet & 31, 2
        for place in range(at + 1, min(at + size, end)):
            code = code << 6 | np.int64(data[place]) & 63
        if code < CODES:
            folded = np.int64(table[code])
        else:
            folded = code * KINDS + ALONE if code < IDEOGRAPHS else END
        its = folded % KINDS
        if its == SKIPPED or (octet == 44 and kind == DIGIT and _is_within(data, at, end)):
            at += size
            continue
        if kind != END and (its != kind or its == ALONE):
            runs[count + 1] = runs[count] * base + _mixed(held)
            count += 1
            alone += kind == ALONE
            held = seed
        if its != END:
            held = (held ^ np.uint64(folded // KINDS)) * _PRIME
        kind = its
        at += size
    if kind != END:
        runs[count + 1] = runs[count] * base + _mixed(held)
        count += 1
        alone += kind == ALONE
    return count, alone


@njit(inline="always")
def _run(runs, at, size, power, mark):
    return _mixed((runs[at + size] - runs[at] * power) ^ np.uint64(size) * mark)


@njit(inline="always")
def _slot(key, bits, slots):
    """The slot of a key; where it is in none, one that holds another."""
    end, bit = np.uint64(len(slots) - 1), (key >> _32) & np.uint64(len(bits) * 64 - 1)
    slot = key & end
    if (bits[bit >> _6] >> (bit & _63)) & _1:
        while slots[slot] != _0 and slots[slot] != key:
            slot = (slot + _1) & end
    return slot


@njit
def _power(base, size):
    found = _1
    for _ in range(size):
        found *= base
    return found


@kernel(nogil=True)
def hashed_runs(data, ends, table, seeds, sizes):
    """Returns the hashes uint64 [G] of all runs of sizes[t] words in text t, and t int64 [G].

    Arguments as for `matched`; sizes: int64 [T], a text with 0 is passed over.
    """
    runs = np.empty(len(data) + 1, np.uint64)
    found, of = np.empty(len(data), np.uint64), np.empty(len(data), np.int64)
    begin = total = 0
    for text in range(len(ends)):
        size = sizes[text]
        if size:
            count, _ = _hash_words(data, begin, ends[text], table, seeds[0], seeds[1], runs)
            power = _power(seeds[1], size)
            for at in range(count - size + 1):
                found[total] = _run(runs, at, size, power, seeds[2])
                of[total] = text
                total += 1
        begin = ends[text]
    return found[:total], of[:total]


@kernel(nogil=True)
def matched(data, ends, table, seeds, sizes, index, needed):
    """Returns the hash of each text uint64 [T], its words int64 [2, T], and hits int64 [H, 3].

    Of words the number, and how many are ideographs.
    data: uint8, the texts one after the other. ends: int64 [T], where each ends.
    table: of `words.table`. seeds: uint64 [3], of `words.seeds_of`.
    sizes: int64, the sizes of the runs that are looked for; none hashes texts alone.
    index: bits uint64 (a filter), slots uint64 (0 is free), first int64 and questions int64: the
        questions of slot s are questions[first[s] : first[s + 1]].
    needed: int64 [Q], the hits by which a question is found.
    A hit is a text, a question that is found in it, and how many of its runs stand there.
    """
    bits, slots, first, questions = index
    runs = np.empty(len(data) + 1, np.uint64)
    found, counts = np.empty(len(ends), np.uint64), np.empty((2, len(ends)), np.int64)
    powers = np.empty(len(sizes), np.uint64)
    for number in range(len(sizes)):
        powers[number] = _power(seeds[1], sizes[number])
    seen, last = np.full(len(slots), -1), np.full(len(needed), -1)
    hits, touched = np.zeros(len(needed), np.int64), np.empty(len(needed), np.int64)
    out, total, begin = np.empty((64, 3), np.int64), 0, 0
    for text in range(len(ends)):
        count, alone = _hash_words(data, begin, ends[text], table, seeds[0], seeds[1], runs)
        counts[0, text], counts[1, text], begin = count, alone, ends[text]
        found[text] = _mixed(runs[count] ^ np.uint64(count) * seeds[2])
        many = 0
        for number in range(len(sizes)):
            size, power = sizes[number], powers[number]
            for at in range(count - size + 1):
                key = _run(runs, at, size, power, seeds[2])
                slot = _slot(key, bits, slots)
                if slots[slot] != key or seen[slot] == text:
                    continue
                seen[slot] = text
                for place in range(first[slot], first[slot + _1]):
                    question = questions[place]
                    if last[question] != text:
                        last[question], hits[question] = text, 0
                        touched[many] = question
                        many += 1
                    hits[question] += 1
        for place in range(many):
            question = touched[place]
            if hits[question] >= needed[question]:
                if total == len(out):
                    grown = np.empty((2 * total, 3), np.int64)
                    grown[:total] = out
                    out = grown
                out[total, 0], out[total, 1], out[total, 2] = text, question, hits[question]
                total += 1
    return found, counts, out[:total]
