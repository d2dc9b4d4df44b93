"""Lines of normalised files, with json.dumps as the oracle."""

import json

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.records import LineWriter, Record, keys, records

_ALL = "".join(map(chr, [*range(0x180), 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x10FFFF]))
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_SCALAR = st.one_of(
    _TEXT,
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(
    st.sampled_from(list(CORPORA)),
    _TEXT,
    _TEXT,
    st.none() | _TEXT,
    st.tuples(_SCALAR, _SCALAR, _SCALAR),
    st.none() | st.lists(_TEXT, min_size=1),
)
@example("reveal", _ALL, _ALL, _ALL, (_ALL, 1e16, 1e-7), [_ALL, ""])
def test_a_line_is_what_json_dumps_writes(name, question, answer, cot, values, steps):
    corpus = CORPORA[name]
    extras = values[: len(corpus.extra_columns)]
    record = {"question": question, "answer": answer, "cot": cot, "source_dataset": name}
    record |= dict(zip(corpus.extra_columns, extras, strict=True))
    if steps is not None:
        record["cot_steps"] = steps
    line = LineWriter(corpus).line(Record(question, answer, cot, extras, steps))
    assert line.decode() == json.dumps(record, ensure_ascii=False) + "\n"
    assert tuple(json.loads(line))[: len(keys(corpus))] == keys(corpus)


@pytest.mark.parametrize("place", ["question", "cot"])
def test_a_lone_surrogate_has_no_line(place):
    record = Record("q", "a", None)._replace(**{place: "\ud800"})
    with pytest.raises(orjson.JSONEncodeError):
        LineWriter(CORPORA["gsm8k"]).line(record)


def test_records_are_numbered_without_blank_lines(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"question": "a"}\n\n \t\r\n{"question": "b"}')
    assert list(records(path)) == [(0, {"question": "a"}), (1, {"question": "b"})]


@pytest.mark.parametrize("line", [b"{", b"[]", b"\xff", b"1"])
def test_a_line_that_is_no_object_is_named(tmp_path, line):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n\n" + line + b"\n")
    with pytest.raises(BadInput, match=r"x\.jsonl:3: .*build the partition again"):
        list(records(path))
