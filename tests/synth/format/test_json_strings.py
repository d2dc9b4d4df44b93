"""Compiled JSON of columns: the bytes of json.dumps for every character, null and slice."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.synth.format import json_strings
from gristmill.synth.format.json_strings import _octets, _space, joined

TEXTS = st.text(max_size=40) | st.text('ab"\\\n\x7f\x1fé€\U0001f600', max_size=40)


def _joined(columns: Sequence[pa.Array], between: Sequence[str], rows: Sequence[int]) -> list[str]:
    made = joined(columns, between, pa.array(rows, pa.int64()))
    made.validate(full=True)
    texts: list[str] = made.to_pylist()
    return texts


def _expected(
    columns: Sequence[Sequence[str | None]], between: Sequence[str], rows: Sequence[int]
) -> list[str]:
    return [
        "".join(
            text + json.dumps(column[row]) for text, column in zip(between, columns, strict=False)
        )
        + between[-1]
        for row in rows
    ]


def test_characters_have_the_escapes_of_json_also_at_the_end_of_memory():
    # Of those with a surrogate pair, which differ in their number alone, some of each plane.
    codes = [*range(0xD800), *range(0xE000, 0x10100), *range(0x10100, 0x110000, 97), 0x10FFFF]
    characters = list(map(chr, codes))
    rows = range(len(characters))
    assert _joined([pa.array(characters)], ["", ""], rows) == list(map(json.dumps, characters))
    nulls, empty = pa.nulls(3, pa.string()), pa.array([""] * 3)
    assert _joined([nulls, empty], ["a", "b", "c"], [0, 2]) == ['anullb""c'] * 2
    assert _joined([nulls], ["a", "c"], []) == []
    texts = ["\x00" * size + "x" * (size % 9) for size in range(200)]
    assert _joined([pa.array(texts)], ["", ""], range(200)) == list(map(json.dumps, texts))
    for kept, size in ((10, 11), (10, 10), (11, 10)):
        json_strings._spare[:] = [np.empty(kept, np.uint8)]
        assert len(_space(size)) >= size
        assert json_strings._spare == []
    assert len(_space(7)) == 7


@pytest.mark.parametrize("character", ['"', "\\", "\n", "\x7f", "\x1f", "é", "€", "\U0001f600"])
def test_an_escape_at_every_place_of_a_word(character):
    texts = ["a" * before + character + "b" * (40 - before) for before in range(40)]
    texts += ["~ !" * before + character for before in range(40)]
    texts += [character * count for count in range(40)]
    assert _joined([pa.array(texts)], ["", ""], range(120)) == list(map(json.dumps, texts))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.none() | TEXTS, TEXTS, st.none() | TEXTS), max_size=12),
    st.lists(st.text(st.characters(max_codepoint=127), max_size=9), min_size=4, max_size=4),
    st.data(),
)
def test_rows_are_the_json_of_their_values_between_texts(rows, between, data):
    columns = [[row[at] for row in rows] for at in range(3)]
    arrays = [pa.array(column, pa.string()) for column in columns]
    wanted = data.draw(st.lists(st.sampled_from(range(len(rows))))) if rows else []
    assert _joined(arrays, between, wanted) == _expected(columns, between, wanted)
    first = data.draw(st.integers(0, len(rows)))
    sliced = [array.slice(first) for array in arrays]
    rest = range(len(rows) - first)
    assert _joined(sliced, between, rest) == _expected([c[first:] for c in columns], between, rest)


@pytest.mark.parametrize("last", [0, 1, 55, 56, 57, 63, 64, 65])
def test_columns_of_one_message_are_read_where_they_are(last):
    """The last buffer of a message may have no word behind it; then the columns are copied."""
    columns = [["é" * 9, "", "\n" * 5], ["x" * (last // 2), None, "y" * (last - last // 2)]]
    batch = pa.record_batch([pa.array(each) for each in columns], names=["a", "b"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(pa.py_buffer(bytearray(sink.getvalue()))) as reader:
        received = reader.read_next_batch()
    buffers = [column.buffers()[2] for column in received.columns]
    octets, places = _octets(buffers)
    for buffer, place in zip(buffers, places, strict=True):
        assert bytes(octets[place : place + buffer.size]) == bytes(buffer)
        assert place + buffer.size + 32 <= len(octets)
    between = ["<", "|", ">"]
    assert _joined(received.columns, between, [0, 1, 2]) == _expected(columns, between, [0, 1, 2])
    assert _joined(received.slice(1).columns, between, [1]) == _expected(columns, between, [2])
    mixed = [received.column(0), batch.column(1)]
    assert _joined(mixed, between, [0, 2]) == _expected(columns, between, [0, 2])
