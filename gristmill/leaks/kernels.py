"""The kernels: texts of JSON lines, words, hashes of their runs, and which questions they hold.

Source: `docs/leaks.md#how-it-works`. Importing this loads numba.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call,assignment"

from __future__ import annotations

import numpy as np
from numba import njit

from gristmill.leaks.words import (
    ALONE,
    BARE,
    BEGIN,
    CAPITAL,
    CODES,
    DIGIT,
    END,
    IDEOGRAPHS,
    KINDS,
    LETTER,
    SKIPPED,
)
from gristmill.run.kernels import kernel

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_PRIME, _BARE = np.uint64(0x9E3779B97F4A7C15), np.uint64(BARE)
MOST_KEYS, MARK = 64, 127
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
def _hash_words(data, begin, end, table, seeds, runs, bare, counts, places):
    """Put the hash of the words before each word into `runs`, of the bare words into `bare`.

    data: UTF-8; what is none is read somehow, within its bounds. counts: int64 [3], becomes how
    many words there are, how many of them ideographs, and how many bare. places: int64 [N, 3],
    becomes begin and end of each word, and the number of each bare word among all.
    """
    count = bares = alone = start = stop = 0
    at, held, kind, first, last = begin, seeds[0], END, 0, 0
    runs[0] = bare[0] = _0
    while at <= end:
        if LETTER <= kind <= DIGIT:
            place, wanted = np.uint64(at), np.uint32(kind)
            while place < np.uint64(end) and data[place] < 128:
                folded = table[np.uint64(data[place])]
                if folded & np.uint32(CAPITAL - 1) != wanted:
                    break
                held = (held ^ np.uint64(folded >> np.uint32(4))) * _PRIME
                last = np.int64(folded & np.uint32(CAPITAL))
                place += _1
            stop = np.int64(place) if at < np.int64(place) else stop
            at = np.int64(place)
        octet = np.int64(data[at]) if at < end else 32
        code, size = octet, 1
        if octet >= 128:
            size = 4 if octet >= 240 else 3 if octet >= 224 else 2
            code = octet & (255 >> (size + 1))
            for place in range(at + 1, min(at + size, end)):
                code = code << 6 | np.int64(data[place]) & 63
        if code < CODES:
            folded = np.int64(table[code])
        else:
            folded = code * KINDS + ALONE if code < IDEOGRAPHS else END
        its, capital = folded & (CAPITAL - 1), folded & CAPITAL
        if its == SKIPPED or (octet == 44 and kind == DIGIT and _is_within(data, at, end)):
            at = max(at + 1, min(at + size, end))
            continue
        if kind != END and (its != kind or its == ALONE):
            word = _mixed(held)
            runs[count + 1] = runs[count] * seeds[1] + word
            count += 1
            alone += kind == ALONE
            if kind != DIGIT and (last or not first):
                bare[bares + 1] = bare[bares] * seeds[1] + word
                places[bares, 2] = count - 1
                bares += 1
            places[count - 1, 0], places[count - 1, 1] = start, stop
            held, kind = seeds[0], END
        if its != END:
            held = (held ^ np.uint64(folded // KINDS)) * _PRIME
            first, start = (capital, at) if kind == END else (first, start)
            last = capital
        kind = its
        at = stop = max(at + 1, min(at + size, end))
    counts[0], counts[1], counts[2] = count, alone, bares


@njit(inline="always")
def _run(runs, at, size, power, salt):
    return _mixed((runs[at + size] - runs[at] * power) ^ salt)


@njit(inline="always")
def _salt(size, is_bare, mark):
    return np.uint64(size) * mark ^ (_BARE if is_bare else _0)


@njit
def _power(base, size):
    found = _1
    for _ in range(size):
        found *= base
    return found


@kernel(nogil=True)
def hashed_runs(data, ends, table, seeds, sizes, is_bare):
    """Returns the hashes uint64 [G] of all runs of sizes[t] words in text t, and t int64 [G].

    Arguments as for `matched`; sizes: int64 [T], a text with 0 is passed over. is_bare: whether the
    runs are of bare words. Also begin and end of each run, int64 [G, 2], in `data`.
    """
    runs, bare = np.empty(len(data) + 1, np.uint64), np.empty(len(data) + 1, np.uint64)
    found, of = np.empty(len(data), np.uint64), np.empty(len(data), np.int64)
    spans, places = np.empty((len(data), 2), np.int64), np.empty((len(data) + 1, 3), np.int64)
    counts, begin, total = np.empty(3, np.int64), 0, 0
    for text in range(len(ends)):
        size = sizes[text]
        if size:
            _hash_words(data, begin, ends[text], table, seeds, runs, bare, counts, places)
            power, salt = _power(seeds[1], size), _salt(size, is_bare, seeds[2])
            many, prefix = (counts[2], bare) if is_bare else (counts[0], runs)
            for at in range(many - size + 1):
                found[total], of[total] = _run(prefix, at, size, power, salt), text
                last = at + size - 1
                one, two = (places[at, 2], places[last, 2]) if is_bare else (at, last)
                spans[total, 0], spans[total, 1] = places[one, 0], places[two, 1]
                total += 1
        begin = ends[text]
    return found[:total], of[:total], spans[:total]


@njit
def _counted(text, runs, count, its, index, state, many):
    """Count the runs of a text that questions have; returns how many questions are touched.

    its: sizes, powers and salts, of BEGIN first. state: the last text by run, by question, the
        hits of that text, and the questions that are touched, the first `many` of them before.
    """
    sizes, powers, salts = its
    bits, owned, first, questions, shift = index
    seen, last, hits, touched = state
    wide = np.uint64(len(bits) * 64 - 1)
    begun = 0  # the runs of BEGIN words up to here that may all stand in questions
    for last_begin in range(count - BEGIN + 1 if len(sizes) > 1 else 0):
        bit = (_run(runs, last_begin, BEGIN, powers[0], salts[0]) >> _32) & wide
        begun = begun + 1 if (bits[bit >> _6] >> (bit & _63)) & _1 else 0
        for number in range(1, len(sizes)):
            size = sizes[number]
            if size - BEGIN >= begun:
                break  # they rise
            at = last_begin - (size - BEGIN)
            key = _run(runs, at, size, powers[number], salts[number])
            bucket = key >> shift
            for place in range(first[bucket], first[bucket + _1]):
                if owned[place] != key or seen[place] == text:
                    continue
                seen[place], question = text, questions[place]
                if last[question] != text:
                    last[question], hits[question] = text, 0
                    touched[many] = question
                    many += 1
                hits[question] += 1
    return many


@njit
def _factors(sizes, is_bare, seeds):
    sizes = np.concatenate((np.array([BEGIN]), sizes))
    powers, salts = np.empty(len(sizes), np.uint64), np.empty(len(sizes), np.uint64)
    for number in range(len(sizes)):
        powers[number] = _power(seeds[1], sizes[number])
        salts[number] = _salt(sizes[number], is_bare, seeds[2])
    return sizes, powers, salts


@kernel(nogil=True)
def matched(data, ends, table, seeds, sizes, index, needed):
    """Returns the hash of each text uint64 [T], its words int64 [T, 3], and hits int64 [H, 3].

    Of words the number, how many are ideographs, and how many are bare.
    data: uint8, the texts one after the other. ends: int64 [T], where each ends.
    table: of `words.table`. seeds: uint64 [3], of `words.seeds_of`.
    sizes: two int64, rising, of the runs that are looked for, and of those of bare words.
    index: bits uint64 (a filter of the runs of BEGIN words in questions), the rising runs uint64,
        first int64 (of those that are b >> shift the first is first[b]), their questions, shift.
    needed: int64 [Q], the hits by which a question is found.
    A hit is a text, a question that is found in it, and how many of its runs stand there.
    """
    runs, bare = np.empty(len(data) + 1, np.uint64), np.empty(len(data) + 1, np.uint64)
    found, counts = np.empty(len(ends), np.uint64), np.empty((len(ends), 3), np.int64)
    hits, touched = np.zeros(len(needed), np.int64), np.empty(len(needed), np.int64)
    state = np.full(len(index[1]), -1), np.full(len(needed), -1), hits, touched
    of_all, of_bare = _factors(sizes[0], False, seeds), _factors(sizes[1], True, seeds)
    out, total, begin = np.empty((64, 3), np.int64), 0, 0
    places = np.empty((len(data) + 1, 3), np.int64)
    for text in range(len(ends)):
        _hash_words(data, begin, ends[text], table, seeds, runs, bare, counts[text], places)
        count, begin = counts[text, 0], ends[text]
        found[text] = _mixed(runs[count] ^ np.uint64(count) * seeds[2])
        many = _counted(text, runs, count, of_all, index, state, 0)
        many = _counted(text, bare, counts[text, 2], of_bare, index, state, many)
        for question in touched[:many]:
            if hits[question] >= needed[question]:
                if total == len(out):
                    grown = np.empty((2 * total, 3), np.int64)
                    grown[:total] = out
                    out = grown
                out[total, 0], out[total, 1], out[total, 2] = text, question, hits[question]
                total += 1
    return found, counts, out[:total]


@njit
def _string(raw, at, data, out):
    """Copy a JSON string from behind its first quote; returns where both go on."""
    while at < len(raw) and raw[at] != 34:
        for _ in range(2 if raw[at] == 92 and at + 1 < len(raw) else 1):
            data[out] = raw[at]
            at, out = at + 1, out + 1
    return at + 1, out


@njit
def _put(raw, begin, end, others, size):
    """Copy a name, or a value that is no text, with a comma; returns where the next one goes."""
    others[size : size + end - begin] = raw[begin:end]
    size += end - begin
    others[size] = 44
    return size + 1


@njit
def _behind(raw, at):
    while at < len(raw) and (raw[at] == 32 or raw[at] == 9 or raw[at] == 13):
        at += 1
    return at


@njit
def _column(raw, begin, end, keys, count, guess):
    """The number of a column by its name, `count` for one that is not in `keys`."""
    for each in range(-1, count):
        column = guess if each < 0 else each
        if column < count and keys[column, 1] - keys[column, 0] == end - begin:
            place = 0
            while place < end - begin and raw[keys[column, 0] + place] == raw[begin + place]:
                place += 1
            if place == end - begin:
                return column
    return count


@kernel(nogil=True)
def flat(raw, data, others):
    """Returns line from 1 and column, int64 [T], of the texts of JSON lines, each a flat object.

    raw: uint8 [N]. data: uint8 [N], becomes these texts as they are written, each with MARK behind
    it. others: uint8 [N], becomes the names of columns and the values that are no texts, a comma
    behind each: whether all these are JSON is not known.

    Returns also the sizes of both and the number of lines, 0 where one has a name twice, or is
    another one.
    """
    rows, columns = np.empty(len(raw) // 5 + 1, np.int64), np.empty(len(raw) // 5 + 1, np.int64)
    keys, seen = np.empty((MOST_KEYS, 2), np.int64), np.zeros(MOST_KEYS, np.int64)
    at = out = size = total = line = count = 0
    while 0 <= at < len(raw):
        line, mark, guess, at = line + 1, 123, 0, _behind(raw, at)
        while 0 <= at < len(raw) and raw[at] == mark:  # a brace, then commas
            begin, mark = _behind(raw, at + 1) + 1, 44
            at, _ = _string(raw, begin, data, out)
            if at >= len(raw) or raw[begin - 1] != 34:
                at = -1
                break
            column = _column(raw, begin, at - 1, keys, count, guess)
            if column == count < MOST_KEYS:
                keys[count, 0], keys[count, 1], count = begin, at - 1, count + 1
                size = _put(raw, begin - 1, at, others, size)
            if column == MOST_KEYS or seen[column] == line:
                at = -1
                break
            seen[column], guess, at = line, column + 1, _behind(raw, at)
            at = begin = _behind(raw, at + 1) if at < len(raw) and raw[at] == 58 else len(raw)
            if at < len(raw) and raw[at] == 34:
                at, out = _string(raw, at + 1, data, out)
                data[out], rows[total], columns[total] = MARK, line, column
                out, total = out + 1, total + 1
            else:
                while at < len(raw) and raw[at] not in (10, 34, 44, 91, 123, 125):
                    at += 1
                size = _put(raw, begin, at, others, size)
            at = _behind(raw, at)
        at = _behind(raw, at + 1) if mark == 44 and 0 <= at < len(raw) and raw[at] == 125 else -1
        at = -1 if at < 0 or (at < len(raw) and raw[at] != 10) else at + 1
    return rows[:total], columns[:total], out, size, line if at >= 0 else 0
