"""The kernels: texts of JSON lines, words, hashes of their runs, and which questions they hold.

Source: `docs/leaks.md#how-it-works`. `words.py` has the same, slowly. Importing this loads numba.
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
_ESCAPES = np.frombuffer(b'"\\/bfnrt', np.uint8)
_ESCAPED = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
_WORDS = b"null", b"true", b"false"
MOST_KEYS = 64
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
def _hash_words(data, begin, end, table, seeds, runs, bare, counts):
    """Put the hash of the words before each word into `runs`, of the bare words into `bare`.

    data: UTF-8; what is none is read somehow, within its bounds. counts: int64 [3], becomes how
    many words there are, how many of them ideographs, and how many bare.
    """
    count = bares = alone = 0
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
                bares += 1
            held, kind = seeds[0], END
        if its != END:
            held = (held ^ np.uint64(folded // KINDS)) * _PRIME
            first, last = capital if kind == END else first, capital
        kind = its
        at = max(at + 1, min(at + size, end))
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
    runs are of bare words.
    """
    runs, bare = np.empty(len(data) + 1, np.uint64), np.empty(len(data) + 1, np.uint64)
    found, of = np.empty(len(data), np.uint64), np.empty(len(data), np.int64)
    counts, begin, total = np.empty(3, np.int64), 0, 0
    for text in range(len(ends)):
        size = sizes[text]
        if size:
            _hash_words(data, begin, ends[text], table, seeds, runs, bare, counts)
            power, salt = _power(seeds[1], size), _salt(size, is_bare, seeds[2])
            many, prefix = (counts[2], bare) if is_bare else (counts[0], runs)
            for at in range(many - size + 1):
                found[total] = _run(prefix, at, size, power, salt)
                of[total] = text
                total += 1
        begin = ends[text]
    return found[:total], of[:total]


@njit
def _counted(text, runs, count, its, index, state, many):
    """Count the runs of a text that questions have; returns how many questions are touched.

    its: sizes, powers and salts, of BEGIN first. state: the last text by slot, by question, the
        hits of that text, and the questions that are touched, the first `many` of them before.
    """
    sizes, powers, salts = its
    bits, slots, first, questions = index
    seen, last, hits, touched = state
    wide, end = np.uint64(len(bits) * 64 - 1), np.uint64(len(slots) - 1)
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
            slot = key & end
            while slots[slot] != _0 and slots[slot] != key:
                slot = (slot + _1) & end
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
    index: bits uint64 (a filter of the runs of BEGIN words in questions), slots uint64 (0 is free),
        first int64 and questions int64: those of slot s are questions[first[s] : first[s + 1]].
    needed: int64 [Q], the hits by which a question is found.
    A hit is a text, a question that is found in it, and how many of its runs stand there.
    """
    runs, bare = np.empty(len(data) + 1, np.uint64), np.empty(len(data) + 1, np.uint64)
    found, counts = np.empty(len(ends), np.uint64), np.empty((len(ends), 3), np.int64)
    hits, touched = np.zeros(len(needed), np.int64), np.empty(len(needed), np.int64)
    state = np.full(len(index[1]), -1), np.full(len(needed), -1), hits, touched
    of_all, of_bare = _factors(sizes[0], False, seeds), _factors(sizes[1], True, seeds)
    out, total, begin = np.empty((64, 3), np.int64), 0, 0
    for text in range(len(ends)):
        _hash_words(data, begin, ends[text], table, seeds, runs, bare, counts[text])
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
def _hex(raw, at):
    """The number that four hexadecimal digits are; -1 where there are none."""
    code = 0
    for place in range(at, at + 4):
        octet = raw[place] if place < len(raw) else 0
        small = octet | 32
        if 48 <= octet <= 57:
            code = code * 16 + octet - 48
        elif 97 <= small <= 102:
            code = code * 16 + small - 87
        else:
            return -1
    return code


@njit
def _put(code, data, out):
    """Write a character as UTF-8; returns where the next one goes."""
    if code < 0x80:
        data[out] = code
        return out + 1
    size = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    for place in range(out + size - 1, out, -1):
        data[place] = 0x80 | code & 0x3F
        code >>= 6
    data[out] = (0xF00 >> size) & 0xFF | code
    return out + size


@njit
def _escaped(raw, at, data, out):
    """Write what an escape stands for; returns where both go on, -1 for one that is none."""
    octet = raw[at] if at < len(raw) else 0
    for place in range(len(_ESCAPES)):
        if octet == _ESCAPES[place]:
            data[out] = _ESCAPED[place]
            return at + 1, out + 1
    code = _hex(raw, at + 1) if octet == 117 else -1
    at += 5
    if 0xD800 <= code < 0xDC00 and at + 1 < len(raw) and raw[at] == 92 and raw[at + 1] == 117:
        low = _hex(raw, at + 2)
        if not 0xDC00 <= low < 0xE000:
            return -1, out
        at, code = at + 6, 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
    elif code < 0 or 0xD800 <= code < 0xE000:
        return -1, out
    return at, _put(code, data, out)


@njit
def _string(raw, at, data, out):
    """Write a JSON string from behind its first quote; returns where both go on, -1 as above."""
    while at < len(raw):
        octet = raw[at]
        if octet == 34:
            return at + 1, out
        if octet == 92:
            at, out = _escaped(raw, at + 1, data, out)
            if at < 0:
                break
            continue
        if octet < 32:
            break
        data[out] = octet
        at, out = at + 1, out + 1
    return -1, out


@njit
def _value(raw, at):
    """Where a value ends that is null, a truth or a number of few digits; -1 for another one."""
    for word in _WORDS:
        is_word = at + len(word) <= len(raw)
        for place in range(len(word)):
            is_word = is_word and raw[at + place] == word[place]
        if is_word:
            return at + len(word)
    at += at < len(raw) and raw[at] == 45
    for part in range(2):
        begin = at
        while at < len(raw) and 48 <= raw[at] <= 57:
            at += 1
        if not 0 < at - begin < 16 or (part == 0 and raw[begin] == 48 and at - begin > 1):
            return -1
        if part or at >= len(raw) or raw[at] != 46:
            return at
        at += 1
    return -1


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
def flat(raw, data):
    """Returns the texts of JSON lines, each an object of texts, numbers, truths and nulls.

    raw: uint8 [N], UTF-8, whole lines. data: uint8 [N], becomes the texts one after the other.

    Returns where each text ends int64 [T], its line from 1 and its column int64 [T], the begin and
    end of each column's name int64 [K, 2] in `raw`, and the number of lines: 0 where a line is
    another one, has a name twice or with an escape, or may be refused. `Part.texts` reads these.
    """
    ends, rows = np.empty(len(raw) // 5 + 1, np.int64), np.empty(len(raw) // 5 + 1, np.int64)
    columns, keys = np.empty(len(raw) // 5 + 1, np.int32), np.empty((MOST_KEYS + 1, 2), np.int64)
    seen = np.zeros(MOST_KEYS + 1, np.int64)
    at = out = total = line = count = 0
    while at < len(raw):
        line, mark, guess, at = line + 1, 123, 0, _behind(raw, at)
        while at < len(raw) and raw[at] == mark:  # a brace, then commas
            begin = _behind(raw, at + 1) + 1
            at, _ = _string(raw, begin, data, out) if begin <= len(raw) else (-1, 0)
            if at < 0 or raw[begin - 1] != 34:
                return ends[:0], rows[:0], columns[:0], keys[:0], 0
            column = _column(raw, begin, at - 1, keys, count, guess)
            if column == count:
                keys[count, 0], keys[count, 1], count = begin, at - 1, count + 1
                for place in range(begin, at):
                    column = MOST_KEYS if raw[place] == 92 else column
            if column >= MOST_KEYS or seen[column] == line:
                return ends[:0], rows[:0], columns[:0], keys[:0], 0
            seen[column], guess, at = line, column + 1, _behind(raw, at)
            at = _behind(raw, at + 1) if at < len(raw) and raw[at] == 58 else len(raw)
            if at < len(raw) and raw[at] == 34:
                at, out = _string(raw, at + 1, data, out)
                ends[total], rows[total], columns[total] = out, line, column
                total += 1
            else:
                at = _value(raw, at)
            if at < 0:
                return ends[:0], rows[:0], columns[:0], keys[:0], 0
            at, mark = _behind(raw, at), 44
        at = _behind(raw, at + 1) if mark == 44 and at < len(raw) and raw[at] == 125 else -1
        if at < 0 or (at < len(raw) and raw[at] != 10):
            return ends[:0], rows[:0], columns[:0], keys[:0], 0
        at += 1
    return ends[:total], rows[:total], columns[:total], keys[:count], line
