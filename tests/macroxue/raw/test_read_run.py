"""One run from its two files; the scanner and the strict parser give the same rows."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, Rows
from gristmill.macroxue.raw import drops, read_run
from gristmill.macroxue.raw.drops import RunFiles, find_runs
from gristmill.macroxue.raw.fast_scanner import END, FULL, UNSURE, scan
from gristmill.macroxue.raw.json_spaces import squeezed
from gristmill.macroxue.raw.read_run import PAD, batches_of_lines, notes_of, put_step
from gristmill.macroxue.raw.strict_parser import Names, RawDigest, RuleBroken, parse_step
from tests import budget
from tests.bombs import lines_of
from tests.macroxue.lines import STEP, compact, step, write_run
from tests.macroxue.raw.test_strict_parser import ACCEPTED, REJECTED
from tests.paths import CHECKOUT


def run_of_lines(folder: Path, lines: list[bytes], **meta: object) -> RunFiles:
    write_run(folder, "g", lines, meta=meta)
    (files,) = find_runs(folder).runs
    return files


@pytest.mark.parametrize("scanner", [scan, None])
def test_rows_come_in_batches_and_lines_are_counted_over_them(tmp_path, monkeypatch, scanner):
    monkeypatch.setattr(read_run, "BATCH_ROWS", 7)
    monkeypatch.setattr(read_run, "BATCH_BYTES", 400)
    lines = [step(step_index=index) for index in range(20)]
    files = run_of_lines(tmp_path / "good", [*lines[:3], b"", *lines[3:]], num_moves=20)
    batches: list[Rows] = []
    facts = read_run.read_run(files, 5, Names(), lambda rows: batches.append(rows.copy()), scanner)
    assert [len(rows) for rows in batches] == [7, 7, 6]
    rows = np.concatenate(batches)
    assert rows["step_index"].tolist() == list(range(20))
    assert set(rows["run_id"].tolist()) == {5}
    assert (facts.rows, facts.legal_rows, dict(facts.kinds)) == (20, 20, {0: 20})
    assert notes_of(facts) == []
    files = run_of_lines(tmp_path / "bad", [*lines[:3], b"", *lines[3:10], b"{", *lines[10:]])
    with pytest.raises(BadInput) as caught:
        read_run.read_run(files, 0, Names(), lambda rows: None, scanner)
    assert caught.value.row == 12


def test_batches_have_whole_lines_with_padding(tmp_path, monkeypatch):
    monkeypatch.setattr(read_run, "BATCH_BYTES", 300)
    lines = [b"x" * (7 * number % 90) for number in range(100)]
    files = run_of_lines(tmp_path / "drop", lines)
    text = b""
    for buffer, end in batches_of_lines(files, RawDigest()):
        assert buffer[end - 1 : end] == b"\n"
        assert len(buffer) >= end + read_run.PAD
        text += buffer[:end]
    assert text == b"".join(line + b"\n" for line in lines)


def test_at_most_20_unknown_branches_are_listed_and_cut_to_40_characters(tmp_path):
    lines = [step(branch_evs={f"{number:02d}" + "x" * 60: 1}) for number in range(25)]
    files = run_of_lines(tmp_path / "drop", [*lines, lines[0]], num_moves=26)
    facts = read_run.read_run(files, 0, Names(), lambda rows: None, None)
    names = [f"{number:02d}" + "x" * 38 for number in range(20)]
    assert notes_of(facts) == [
        {"kind": "unknown_branches", "rows": {name: 1 + (name == names[0]) for name in names}},
        {"kind": "no_legal_branch"},
    ]


@pytest.mark.parametrize("scanner", [None, scan])
@pytest.mark.parametrize("blank", [b"\n" * 7, b" \t\r\x0b\x0c\n\n \n", b"\r\n" * 3])
def test_blank_lines_are_counted_and_give_no_rows(tmp_path, scanner, blank):
    good = step()
    run = run_of_lines(tmp_path, [])
    run.steps.write_bytes(gzip.compress(blank + good + b"\n" + blank + good + b"\n" + b"{]\n"))
    with pytest.raises(BadInput) as raised:
        read_run.read_run(run, 0, Names(), lambda rows: None, scanner)
    assert raised.value.row == 2 * blank.count(b"\n") + 3


@pytest.mark.parametrize("scanner", [None, scan])
def test_blank_lines_have_a_bound(tmp_path, scanner):
    run = run_of_lines(tmp_path, [])
    says = (
        r"has 10,005 blank lines and 1 others: a text may have 10,000 blank lines, and 4 more for"
    )
    for blank, is_right in ((10_004, True), (10_005, False)):
        run.steps.write_bytes(gzip.compress(step() + b"\n" + b"\n" * blank))
        with nullcontext() if is_right else pytest.raises(BadInput, match=says):
            read_run.read_run(run, 0, Names(), lambda rows: None, scanner)


@pytest.mark.slow
def test_small_files_that_unpack_to_much_are_read_in_bounded_memory(tmp_path):
    lines = lines_of("tests.macroxue.raw.bombs", tmp_path)
    said = {name: rule for name, _, _, rule in lines}
    for name in ("empty_lines", "blank_lines", "many_empty_lines"):
        assert " blank lines and 0 others: a text may have 10,000 blank lines" in said.pop(name)
    bomb = "unpacks to more than 200 times its size: it looks like a decompression bomb"
    assert said == {
        "long_line": "more than 262144 values",
        "deep_line": "nested deeper than 256 levels",
        "long_number": "board must be an array of exactly 16 ranks",
        "endless_line": bomb,
        "long_string": "board must be an array of exactly 16 ranks",
    }


def test_a_file_that_becomes_a_link_after_the_listing_is_refused(tmp_path):
    write_run(tmp_path / "drop", "g", [step()])
    (run,) = drops.find_runs(tmp_path / "drop").runs
    run.steps.rename(tmp_path / "away.gz")
    run.steps.symlink_to(tmp_path / "away.gz")
    with pytest.raises(BadInput, match="is a link"):
        list(read_run.gunzip(run.steps, RawDigest(), 100, run.folder, run.links))
    run.meta.unlink()
    run.meta.symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="is a link"):
        read_run.read_meta(run.meta, RawDigest(), run.folder, run.links)


def test_much_more_text_than_the_size_explains_is_refused_early(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    size = 0
    with pytest.raises(BadInput, match=r"unpacks to more than 200 times its size"):
        for text in read_run.gunzip(path, RawDigest(), 1 << 19):
            size += len(text)
    assert size == 16 << 20
    path.write_bytes(gzip.compress(bytes(16 << 20)))
    assert len(unzipped(path)[0]) == 16 << 20


def unzipped(path: Path, most: int = 1 << 18) -> tuple[bytes, RawDigest]:
    digest = RawDigest()
    pieces = list(read_run.gunzip(path, digest, most))
    assert all(0 < len(piece) <= most for piece in pieces)
    return b"".join(pieces), digest


@pytest.mark.parametrize("read_bytes", [1, 7, 1 << 18])
def test_every_member_is_read(tmp_path, monkeypatch, read_bytes):
    monkeypatch.setattr(read_run, "_READ_BYTES", read_bytes)
    monkeypatch.setattr(read_run, "_HEADER_BYTES", 1)
    path = tmp_path / "x.jsonl.gz"
    text = [os.urandom(100), b"", b"\n" * 5000]
    path.write_bytes(b"".join(map(gzip.compress, text)))
    whole, digest = unzipped(path, 700)
    assert whole == b"".join(text)
    assert digest.size == path.stat().st_size


def member(text: bytes, fields: bool) -> bytes:
    """A gzip member; with `fields` its header has all that RFC 1952 allows."""
    head = b"\x1f\x8b\x08" + bytes([0b11110 if fields else 0]) + bytes(5) + b"\xff"
    if fields:
        head += (6).to_bytes(2, "little") + b"BC\x02\x00ab" + b"name\0" + b"comment\0"
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
    tail = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    return head + squeeze.compress(text) + squeeze.flush() + tail


@pytest.mark.parametrize("before", range(1, 34, 4))
def test_a_header_may_come_in_two_reads(tmp_path, monkeypatch, before):
    first, second = member(b"one\n" * 9, False), member(b"two\n" * 9, True)
    monkeypatch.setattr(read_run, "_READ_BYTES", len(first) + before)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(first + second)
    assert gzip.decompress(path.read_bytes()) == b"one\n" * 9 + b"two\n" * 9
    assert unzipped(path)[0] == b"one\n" * 9 + b"two\n" * 9


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda data: b"", "0 bytes"),
        (lambda data: data[:-1], "cut short"),
        (lambda data: data[:-8], "cut short"),
        (lambda data: data[:5], "cut short"),
        (lambda data: data + data[:12], "cut short"),
        (lambda data: data[:-8] + b"\0" * 4 + data[-4:], "checksum"),
        (lambda data: data[:-4] + b"\0" * 4, "checksum"),
        (lambda data: data + b"garbage", "behind gzip member 1"),
        (lambda data: data + b"\0" * 64, "behind gzip member 1"),
        (lambda data: b'{"seed":1}', "gzip"),
    ],
)
def test_broken_gzip_is_named(tmp_path, change, rule):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(change(gzip.compress(b"line\n" * 1000)))
    with pytest.raises(BadInput, match=rule) as caught:
        unzipped(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize(("name", "pack"), [("x.json", bytes), ("x.json.gz", gzip.compress)])
def test_a_meta_object_of_exactly_the_limit_is_read_and_none_above_it(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(b" " * (1 << 20)))
    assert len(read_run.read_meta(tmp_path / name, RawDigest())) == 1 << 20
    (tmp_path / name).write_bytes(pack(b" " * ((1 << 20) + 1)))
    with pytest.raises(BadInput, match="more than 1048576 bytes"):
        read_run.read_meta(tmp_path / name, RawDigest())


DEFAULTS = (5, 40, 0x89ABCDEF, 9)


def scanned(line: bytes, behind: bytes = b"") -> tuple[int, Rows, list[int]]:
    """(why it stopped, the row, state) of one line, in text that ends where PAD ends."""
    text = np.frombuffer(line + b"\n" + (behind * PAD + bytes(PAD))[:PAD], np.uint8)
    rows = np.zeros(1, STEP_ROW_DTYPE)
    state = np.array(DEFAULTS, np.int64)
    at, filled, stop = scan(text, 0, len(line) + 1, rows, 0, state)
    assert (at, filled) == ((len(line) + 1, 1) if stop == END else (0, 0))
    return stop, rows, state.tolist()


def strictly(line: bytes) -> tuple[Rows, list[int]] | None:
    try:
        parsed = parse_step(line)
    except RuleBroken:
        return None
    if parsed is None:
        return None
    rows = np.zeros(1, STEP_ROW_DTYPE)
    state = np.array(DEFAULTS, np.int64)
    put_step(rows, 0, parsed, state, Names())
    return rows, state.tolist()


def agree(line: bytes) -> int:
    """Check one line: a row of the scanner must equal that of the strict parser."""
    stop, rows, state = scanned(line)
    if stop == END:
        expected = strictly(line)
        assert expected is not None, line
        assert (rows.tobytes(), state) == (expected[0].tobytes(), expected[1]), line
    # The bytes behind the text must not matter.
    for behind in (b"9", b'",}]', b"\n"):
        other, others, _ = scanned(line, behind)
        assert (other, others.tobytes()) == (stop, rows.tobytes())
    return stop


@pytest.mark.parametrize("line", [*ACCEPTED.values(), *REJECTED.values()])
def test_every_rule(line):
    agree(line)


@pytest.mark.parametrize(
    "line",
    [
        step(),
        step(board=list(range(16))),
        step(["valuation_type"], debug={"tag": 'a"b\u00e9,}', "path": [[0, 1], [], {}, True]}),
        step(["seed", "step_index", "max_rank"], valuation=None),
        step(["branch_evs"]),
        step().replace(b"{", b'{"x":' + b'[{"":' * 30 + b"0" + b"}]" * 30 + b",", 1),
        step(seed=9_999_999_999_999_999),
        compact(dict(reversed(STEP.items()))),
    ],
)
def test_usual_lines_do_not_need_the_strict_parser(line):
    assert agree(line) == END


NUMBERS = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.decimals(-(10**9), 10**9, places=6).map("{:f}".format),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"\A-?[0-9]{1,18}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,3})?\Z"),
    st.sampled_from(["null", "-0", "-0.0", "0.000000", "16777217", "9007199254740993.5"]),
)
VALUES = st.one_of(
    NUMBERS,
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    ).map(lambda value: compact(value).decode()),
)
RANKS = st.one_of(st.integers(0, 17), st.integers(0, 40)).map(str)


def joined(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"


@st.composite
def lines(draw: Any) -> bytes:
    """Lines of the right shape whose parts are often right, and mutations of them."""
    moves = st.sampled_from(["up", "down", "left", "right", "upp", "UP", ""])
    branches = draw(
        st.lists(st.tuples(moves if draw(st.booleans()) else st.sampled_from(["up", "left"]),
                           NUMBERS), max_size=5)
    )  # fmt: skip
    counts = st.sampled_from([16] * 12 + [15, 17])
    board = draw(counts.flatmap(lambda n: st.lists(RANKS, min_size=n, max_size=n)))
    names = st.sampled_from(
        ["search", "tuple10", "tuple11", "tuple1", "line_plan", "search\\u0031"]
    )
    pairs = [
        ("seed", draw(st.one_of(st.integers(0, 2**65).map(str), NUMBERS))),
        ("step_index", draw(st.one_of(st.integers(0, 2**33).map(str), NUMBERS))),
        ("max_rank", draw(st.one_of(st.integers(0, 300).map(str), NUMBERS))),
        ("move", f'"{draw(moves)}"'),
        ("valuation_type", f'"{draw(names)}"'),
        ("valuation", draw(VALUES)),
        ("board", f"[{','.join(board)}]"),
        ("branch_evs", joined(branches)),
        (draw(st.sampled_from(["depth", "game_index", "x", "boards", "see"])), draw(VALUES)),
    ]
    chosen = draw(
        st.one_of(
            st.just(pairs[:8]),
            st.permutations(pairs),
            st.lists(st.sampled_from(pairs), min_size=1, max_size=10),
        )
    )
    return joined(chosen).encode()


EDITS = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 3),
        st.one_of(
            st.sampled_from([bytes([octet]) for octet in b'",:{}[]\\ -.09e\x00\x7f\xff']),
            st.sampled_from([b"null", b"\xc3\xa9", b"\\u00e9", b'{"a":1}', b"[1,2]"]),
            st.binary(max_size=3).filter(lambda octets: b"\n" not in octets),
        ),
    ),
    min_size=1,
    max_size=3,
)
BASES = st.sampled_from(
    [step(), step(debug={"a": [1, "b\\\n"]}, board=[12] * 16), step(["move"]), step(x={"y": {}})]
)


def edited(line: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, cut, put in edits:
        at = place % (len(line) + 1)
        line = line[:at] + put + line[at + cut :]
    return line


NO_EDITS: list[tuple[int, int, bytes]] = []


@pytest.mark.slow
@settings(max_examples=240, deadline=None)
@given(st.one_of(BASES, lines()), st.one_of(st.just(NO_EDITS), EDITS, EDITS, EDITS))
@example(step(branch_evs={"up": 1e39}), NO_EDITS)
def test_scanner_equals_strict_parser_on_shaped_and_edited_lines(line, edits):
    agree(edited(line, edits))


@pytest.mark.slow
@settings(max_examples=budget.count(8_000, each_second=60), deadline=None)
@given(st.one_of(BASES, lines()), st.one_of(st.just(NO_EDITS), EDITS))
def test_shaped_and_edited_lines_at_length(line, edits):
    agree(edited(line, edits))


GUARDED = r"""
import ctypes, mmap, sys
import numpy as np
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE
from gristmill.macroxue.raw.fast_scanner import PAD, scan
from tests.macroxue.lines import step

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)
place = np.frombuffer(memory, np.uint8)
libc = ctypes.CDLL(None, use_errno=True)
guard = ctypes.c_void_p(place.ctypes.data + page)
assert libc.mprotect(guard, ctypes.c_size_t(page), 0) == 0
rows, state = np.zeros(1, STEP_ROW_DTYPE), np.zeros(4, np.int64)
line = step(debug={"a": [1, None, "x"], "b": {}})
tried = 0
for cut in range(len(line) + 1):
    for fill in b"9,1 \\":
        text = line[:cut] + b"\n"
        start = page - PAD - len(text)
        place[start:page] = fill
        place[start : start + len(text)] = np.frombuffer(text, np.uint8)
        scan(place[start:page], 0, len(text), rows, 0, state)
        tried += 1
print(tried)
"""


def test_nothing_behind_the_padding_is_read():
    """The text ends PAD bytes before a memory page whose reading kills the process."""
    command = [sys.executable, "-c", GUARDED]
    root = CHECKOUT
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert (done.returncode, int(done.stdout) > 1000) == (0, True), done.stderr


def test_every_truncation_and_every_single_byte():
    line = step(debug={"a": [1, None, False], "b": {}})
    for at in range(len(line)):
        assert agree(line[:at]) == UNSURE
        for octet in b'"\\,:{}[]09-.e \x00\x1f\xff':
            agree(line[:at] + bytes([octet]) + line[at + 1 :])


def test_full_rows_unsure_lines_and_the_running_index():
    lines = [step(["step_index"]), step(step_index=10), step(step_index=None), step(step_index=3)]
    text_bytes = b"".join(line + b"\n" for line in lines)
    text = np.frombuffer(text_bytes + bytes(PAD), np.uint8)
    rows = np.zeros(2, STEP_ROW_DTYPE)
    state = np.array([1, 0, 0, 0], np.int64)
    at, filled, stop = scan(text, 0, len(text_bytes), rows, 0, state)
    assert (filled, stop, rows["step_index"].tolist()) == (2, FULL, [0, 10])
    at, filled, stop = scan(text, at, len(text_bytes), rows, 0, state)
    assert (at, filled, stop, state[1]) == (len(lines[0] + lines[1]) + 2, 0, UNSURE, 11)
    last = step(step_index=2**32 - 1)
    assert scanned(last)[2][1] == 2**32 - 1


@pytest.mark.parametrize(("text", "padding"), [(step() + b"\n", PAD - 1), (step(), PAD)])
def test_text_without_newline_or_padding_is_refused(text, padding):
    rows, state = np.zeros(1, STEP_ROW_DTYPE), np.zeros(4, np.int64)
    with pytest.raises(ValueError, match="newline"):
        scan(np.frombuffer(text + bytes(padding), np.uint8), 0, len(text), rows, 0, state)


TOKENS = [*"{}[],:", *" \t\r\v", '"a b"', '"\\" "', '"\\\\"', '"', "\\", "1", "-2.5", "null", "é"]


def value(line: bytes) -> object:
    try:
        return json.dumps(json.loads(line.decode()))
    except ValueError:
        return None


@given(st.lists(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join), min_size=1))
def test_a_line_is_json_as_before_and_of_the_same_value(texts):
    lines = [text.encode() for text in texts]
    buffer = bytearray(b"before\n" + b"".join(line + b"\n" for line in lines) + b" 1 ")
    end = len(buffer) - 3
    out, size, starts = squeezed(buffer, 7, end, 9)
    assert len(out) == end - 7 + 9
    assert starts.tolist() == [7, *(7 + np.cumsum([len(line) + 1 for line in lines])).tolist()]
    shorter = bytes(out[:size]).split(b"\n")
    assert shorter.pop() == b""
    assert list(map(value, shorter)) == list(map(value, lines))


def rows_of(folder: Path, lines: Sequence[bytes], scanner: Any) -> tuple[bytes, str, list[str]]:
    """The rows of a run, what else it says, and its names."""
    if not folder.exists():
        write_run(folder, "g", lines, meta={"num_moves": len(lines)})
    (run,) = find_runs(folder).runs
    rows, names = bytearray(), Names()
    try:
        facts = read_run.read_run(
            run, 1, names, lambda batch: rows.extend(batch.tobytes()), scanner
        )
    except BadInput as error:
        return bytes(rows), str(error), names.known
    said = (facts.rows, facts.legal_rows, facts.kinds, facts.ranks, read_run.notes_of(facts))
    return bytes(rows), str(said), names.known


SPACED = [json.dumps(STEP | {"step_index": at}).encode() for at in range(40)]
NAMED = [step(step_index=at, valuation_type=["line_plan", "", "a b"][at % 3]) for at in range(40)]
LARGE = [step(seed=seed) for seed in (10**16, 10**17 + 7, 2**63, 2**64 - 1, 10**19, 2**64 - 10**4)]
FORMS = {
    "CRLF": ([step(step_index=at) + b"\r" for at in range(40)], 0),
    "spaces": (SPACED, 0),
    "indents": ([b"\t " + line.replace(b",", b" ,\r\t") + b" " for line in SPACED], 0),
    "blank lines": ([b"", b" \r", *SPACED[:9], b"\t", b"", b"\v", *SPACED[9:], b" "], 0),
    "names": (NAMED, 3),
    "names and spaces": ([json.dumps(json.loads(line)).encode() for line in NAMED], 3),
    "large seeds": (LARGE, 0),
    "one escape": ([*SPACED[:20], compact(STEP).replace(b"move", b"mov\\u0065"), *SPACED[20:]], 1),
}


@pytest.mark.parametrize("batch", [700, 1 << 19])
@pytest.mark.parametrize("form", FORMS)
def test_the_scanner_takes_usual_forms_itself(tmp_path, monkeypatch, form, batch):
    monkeypatch.setattr(read_run, "BATCH_BYTES", batch)
    monkeypatch.setattr(read_run, "BATCH_ROWS", 7)
    lines, strict = FORMS[form]
    expected = rows_of(tmp_path / "d", lines, None)
    assert len(expected[0]) == 48 * sum(map(bool, map(bytes.split, lines)))
    asked = []
    parse = read_run.parse_step
    monkeypatch.setattr(read_run, "parse_step", lambda line: (asked.append(line), parse(line))[1])
    assert rows_of(tmp_path / "d", lines, scan) == expected
    assert len(asked) == strict


@pytest.mark.parametrize(
    "bad",
    [
        b'{"board": [1, 2 3]}',
        SPACED[0][:-1],
        SPACED[0].replace(b"left", b"le ft"),
        SPACED[0] + b" x",
        step(seed=2**64).replace(b",", b", "),
        step(seed=10**20),
        step(seed=7).replace(b":7,", b":01234567890123456789,"),
        SPACED[0].replace(b"search", b"\xff"),
    ],
)
@pytest.mark.parametrize("batch", [700, 1 << 19])
def test_a_bad_line_is_named_as_it_is_in_the_file(tmp_path, monkeypatch, bad, batch):
    monkeypatch.setattr(read_run, "BATCH_BYTES", batch)
    lines = [*SPACED[:5], b" ", *SPACED[5:11], bad, *SPACED[11:]]
    strict, scanned = (rows_of(tmp_path / "d", lines, scanner) for scanner in (None, scan))
    assert "g.jsonl.gz:13: " in strict[1]
    assert scanned[1] == strict[1]
