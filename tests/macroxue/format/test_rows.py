"""Rows and side files of packs, the kinds of folders, and what is refused."""

import hashlib
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import BadInput
from gristmill.macroxue import MergeConfig, ValueConfig, merge, value_sidecar
from gristmill.macroxue.format import rows
from gristmill.macroxue.format.files import (
    Run,
    content_sha256,
    iter_lines,
    read_lines,
    read_runs,
    read_session,
    read_valuation_types,
    signed64,
    write_lines,
    write_metadata,
    write_valuation_types,
)
from gristmill.macroxue.format.rows import asset_of, refuse_foreign_rows
from tests.macroxue.games import play, write_pack
from tests.macroxue.step_drops import LEGACY, SELF_PLAY

PEER_STEPS = (
    "{'descr': [('run_id', '<u4'), ('step_index', '<u4'), ('board', '<u8'), "
    "('board_eval', '<i4'), ('tile_65536_mask', '<u2'), ('move_dir', '<u1'), "
    "('valuation_type', '<u1'), ('ev_legal', '<u1'), ('max_rank', '<u1'), "
    "('seed', '<u4'), ('branch_evs', '<f4', (4,)), ], 'fortran_order': False, 'shape': ("
)


def test_rows_have_the_documented_bytes_and_layouts_convert_both_ways():
    assert rows.STEP_ROW_DTYPE.itemsize == 48
    assert rows.STEP_ROW_DTYPE.isalignedstruct
    assert rows.PACKED46.itemsize == 46
    assert rows.VALUE_ROW_DTYPE.itemsize == 24
    for dtype, offsets in ((rows.STEP_ROW_DTYPE, [25, 28, 32]), (rows.PACKED46, [25, 26, 30])):
        assert [dtype.fields[n][1] for n in ("max_rank", "seed", "branch_evs")] == offsets
    random = np.random.default_rng(5)
    packed = random.integers(0, 256, 46 * 1000, dtype=np.uint8).view(rows.PACKED46)
    aligned = rows.to_aligned(packed)
    for name in rows.PACKED46.names:
        assert aligned[name].tobytes() == packed[name].tobytes()
    assert not rows.as_bytes(aligned)[:, 26:28].any()
    assert rows.to_packed(aligned).tobytes() == packed.tobytes()
    assert rows.to_packed(aligned[::3]).tobytes() == packed[::3].tobytes()
    row = np.zeros(1, rows.STEP_ROW_DTYPE)
    board, mask = rows.pack_boards(np.array([[17, 16, 15] + [0] * 12 + [16]]))
    row["board"], row["tile_65536_mask"], row["board_eval"] = board, mask, -10092544
    row["move_dir"], row["ev_legal"], row["max_rank"], row["seed"] = 2, 0b1110, 3, 7
    row["branch_evs"] = [[0, -1.5, 0.5, 0.25]]
    expected = (
        "00000000 00000000 0f0000000000f0ff 000066ff 0380 02 00 0e 03 07000000"
        " 00000000 0000c0bf 0000003f 0000803e"
    )
    assert rows.to_packed(row).tobytes() == bytes.fromhex(expected)


@pytest.mark.parametrize("count", [0, 7, 58306, 10**18])
def test_packed_header_is_the_peers(count):
    header = rows.STEP_FORMATS["packed46"].header(count)
    assert len(header) == 384
    assert header[:10] == b"\x93NUMPY\x01\x00\x76\x01"
    text = header[10:].decode()
    assert text.rstrip(" \n") == f"{PEER_STEPS}{count},), }}"
    assert text.endswith(" \n")
    values = rows.VALUE_FORMAT.header(count)
    assert len(values) == 256
    assert values[8:10] == (246).to_bytes(2, "little")


@pytest.mark.parametrize("count", [0, 3, 1000])
def test_aligned_header_is_what_np_save_writes(count):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(count, rows.STEP_ROW_DTYPE))
    saved = buffer.getvalue()
    assert saved[: len(saved) - 48 * count] == rows.STEP_FORMATS["aligned48"].header(count)


@pytest.mark.parametrize(
    ("ranks", "board", "mask"),
    [
        (list(range(16)), 0x0123456789ABCDEF, 0),
        ([1, 2, 3] + [0] * 13, 0x1230000000000000, 0),
        ([17, 16, 15] + [0] * 12 + [16], 0xFFF000000000000F, 0x8003),
    ],
)
def test_board_vectors(ranks, board, mask):
    packed, bits = rows.pack_boards(np.array([ranks]))
    assert (int(packed[0]), int(bits[0])) == (board, mask)


@given(st.lists(st.lists(st.integers(0, 31), min_size=16, max_size=16), min_size=1, max_size=5))
def test_boards_decode_to_ranks_capped_at_16(boards):
    ranks = np.array(boards)
    assert (rows.decode_boards(*rows.pack_boards(ranks)) == np.minimum(ranks, 16)).all()


def some_rows(count: int, layout: rows.Layout) -> rows.Rows:
    octets = np.random.default_rng(count).integers(0, 256, 46 * count, dtype=np.uint8)
    return rows.to_layout(octets.view(rows.PACKED46), layout)


@pytest.mark.parametrize("layout", ["aligned48", "packed46"])
@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (0, [("steps.npy", 10)]),
        (4, [("steps-00000.npy", 4), ("steps-00001.npy", 4), ("steps-00002.npy", 2)]),
        (5, [("steps-00000.npy", 5), ("steps-00001.npy", 5)]),
        (99, [("steps-00000.npy", 10)]),
        ([3, 7], [("steps-00000.npy", 3), ("steps-00001.npy", 7)]),
    ],
)
def test_rows_are_cut_exactly(tmp_path, layout, cut, expected):
    data = some_rows(10, layout)
    form = rows.STEP_FORMATS[layout]
    with rows.ShardWriter(tmp_path, form, cut) as writer:
        for piece in (data[:1], data[1:8], data[8:]):
            writer.write(piece)
    assert writer.written == expected
    files = rows.step_files(tmp_path)
    assert [file.name for file in files] == [name for name, _ in expected]
    assert b"".join(rows.open_steps(file).tobytes() for file in files) == data.tobytes()
    for file, (_, count) in zip(files, expected, strict=True):
        assert file.read_bytes().startswith(form.header(count))
    if layout == "aligned48" and cut == 0:
        np.save(tmp_path / "again.npy", data)
        assert (tmp_path / "again.npy").read_bytes() == files[0].read_bytes()


def test_planned_shards_must_be_filled_and_no_rows_make_one_empty_file(tmp_path):
    with (
        pytest.raises(ValueError, match="1 shards written, 2 were planned"),
        rows.ShardWriter(tmp_path, rows.STEP_FORMATS["packed46"], [2, 3]) as writer,
    ):
        writer.write(some_rows(4, "packed46")[:2])
    with rows.ShardWriter(tmp_path, rows.STEP_FORMATS["packed46"], 0) as writer:
        pass
    assert writer.written == [("steps.npy", 0)]
    assert len(rows.open_steps(tmp_path / "steps.npy")) == 0
    (tmp_path / "steps-00000.npy").touch()
    with pytest.raises(BadInput, match="both"):
        rows.step_files(tmp_path)
    with pytest.raises(BadInput, match="neither"):
        rows.step_files(tmp_path / "nowhere")


def test_files_are_checked_before_they_are_mapped(tmp_path):
    path = tmp_path / "steps.npy"
    good = rows.STEP_FORMATS["packed46"].header(2) + bytes(92)
    for bad, rule in [
        (good[:-1], "cut short"),
        (good + b"x", "cut short"),
        (b"not npy", "no npy header"),
        (rows.VALUE_FORMAT.header(1) + bytes(24), "not one of the known row layouts"),
        (good.replace(b"(2,)", b"(__import__('os'),)"), "no npy header"),
    ]:
        path.write_bytes(bad)
        with pytest.raises(BadInput, match=rule):
            rows.open_steps(path)
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput, match="not one of the known row layouts"):
        rows.open_steps(path)
    path.write_bytes(good)
    assert len(rows.open_steps(path)) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda head: head.replace(b"(3,)", b"(3,\x02"),
        lambda head: head.replace(b"]", b"["),
        lambda head: head.replace(b"'<u4'", b"'<u4\xe3", 1),
        lambda head: head.replace(b"{", b"(" * 64, 1),
        lambda head: head.replace(b"'descr'", b"'descn'"),
        lambda head: head.replace(b"'<u8'", b"'<Q9'"),
        lambda head: head.replace(b"\x01\x00", b"\x03\x00", 1),
    ],
)
def test_a_broken_header_is_named(tmp_path, damage):
    head = rows.STEP_FORMATS["aligned48"].header(3)
    broken = damage(head)
    assert broken != head
    path = tmp_path / "steps.npy"
    path.write_bytes(broken + bytes(3 * 48))
    refuse_foreign_rows(path)
    with pytest.raises(BadInput, match="no npy header that can be read") as caught:
        rows.open_steps(path)
    assert caught.value.file == str(path)


def test_more_shards_than_sort_by_name_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_MAX_SHARDS", 2)
    with rows.ShardWriter(tmp_path, rows.STEP_FORMATS["packed46"], 1) as writer:
        writer.write(some_rows(2, "packed46"))
        with pytest.raises(ValueError, match="more than 2 shards do not sort by name"):
            writer.write(some_rows(1, "packed46"))


GAMES = [play(seed, 20) for seed in range(3)]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_pack(tmp_path / "pack", GAMES)


def test_packs_pools_and_values_are_known_by_their_files(pack, tmp_path):
    shards = write_pack(tmp_path / "shards", GAMES, shard_rows=7, layout="packed46")
    merge([pack, shards], tmp_path / "pool", MergeConfig())
    value_sidecar(pack, tmp_path / "values", ValueConfig())
    value_sidecar(shards, tmp_path / "value_shards", ValueConfig())
    names = ("pack", "shards", "pool", "values", "value_shards")
    found = [asset_of(tmp_path / name) for name in names]
    assert found == [f"macroxue/{name}" for name in ("pack", "pack", "pool", "values", "values")]


def test_other_folders_are_of_no_asset(tmp_path):
    assert asset_of(tmp_path) is asset_of(tmp_path / "absent") is None
    for name in ("metadata.db", "values.json", "steps.txt"):
        (tmp_path / name).touch()
        assert asset_of(tmp_path) is None


@pytest.mark.parametrize("name", ["steps.npy", "valuation_types.json", "metadata.db"])
def test_a_pack_that_lacks_a_file_is_still_a_pack(pack, name):
    (pack / name).write_bytes(b"damaged")
    assert asset_of(pack) == "macroxue/pack"
    (pack / name).unlink()
    assert asset_of(pack) == "macroxue/pack"


@pytest.mark.parametrize("dtype", [SELF_PLAY, LEGACY])
@pytest.mark.parametrize("name", ["steps.npy", "steps-000001.npy"])
def test_foreign_rows_are_judged_as_a_pack(tmp_path, dtype, name):
    np.save(tmp_path / name, np.zeros(5, dtype))
    assert asset_of(tmp_path) == "macroxue/pack"


def test_lines_are_compact_utf_8_and_read_back(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [{"a": [1, 2.5, None], "ü": "é\n"}, {}]
    write_lines(path, lines)
    assert path.read_bytes() == '{"a":[1,2.5,null],"ü":"é\\n"}\n{}\n'.encode()
    assert read_lines(path) == lines
    assert list(iter_lines(path)) == [(1, lines[0]), (2, lines[1])]
    with pytest.raises(FileExistsError):
        write_lines(path, [])


def test_lines_before_a_bad_one_are_read(tmp_path):
    path = tmp_path / "x.jsonl"
    with pytest.raises(BadInput, match=r"x\.jsonl: cannot be read: No such file"):
        read_lines(path)
    path.write_bytes(b'{"a":1}\r\n{"a":2}\n{"a":')
    lines = iter_lines(path)
    assert [next(lines), next(lines)] == [(1, {"a": 1}), (2, {"a": 2})]
    with pytest.raises(BadInput, match=r"x\.jsonl:3: not JSON"):
        next(lines)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"[1]", "not a JSON object"),
        (b"\xff", "not JSON"),
        (b"", "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"1" * 5000, "not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, rule):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n" + text + b"\n{}\n")
    with pytest.raises(BadInput, match=rule) as caught:
        read_lines(path)
    assert (caught.value.file, caught.value.row) == (str(path), 2)


RUNS = [Run(0, 272350805, 3695, 80004, 4096), Run(1, signed64(2**63 + 9), 0, 0, 0)]


def test_schema_values_and_no_side_files(tmp_path):
    path = tmp_path / "metadata.db"
    write_metadata(path, RUNS, {"source": "x", "drops": '["a"]'})
    assert [file.name for file in tmp_path.iterdir()] == ["metadata.db"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("PRAGMA page_size").fetchone() == (4096,)
        assert db.execute("PRAGMA user_version").fetchone() == (0,)
        columns = {
            table: [row[1:6] for row in db.execute(f"PRAGMA table_info({table})")]
            for table in ("runs", "session")
        }
        assert db.execute("SELECT seed FROM runs WHERE id = 1").fetchone() == (
            -9223372036854775799,
        )
    assert columns == {
        "runs": [
            ("id", "INTEGER", 0, None, 1),
            ("seed", "BIGINT", 1, None, 0),
            *((name, "INT", 1, None, 0) for name in ("steps", "max_score", "highest_tile")),
        ],
        "session": [("meta_key", "TEXT", 0, None, 1), ("meta_value", "TEXT", 1, None, 0)],
    }
    assert read_runs(path) == RUNS
    assert read_session(path) == {"drops": '["a"]', "source": "x"}
    with pytest.raises(FileExistsError):
        write_metadata(path, RUNS, {})


def test_a_digest_is_of_contents_and_one_json_line_a_row(tmp_path):
    first, second, third = (tmp_path / name for name in ("a.db", "b.db", "c.db"))
    write_metadata(first, RUNS, {"k": "v"})
    write_metadata(second, reversed(RUNS), {"k": "v"})
    with closing(sqlite3.connect(second)) as db:
        db.execute("PRAGMA user_version=7")
        db.execute("PRAGMA journal_mode=WAL")
    write_metadata(third, RUNS, {"k": "w"})
    assert first.read_bytes() != second.read_bytes()
    assert content_sha256(first) == content_sha256(second)
    assert content_sha256(first) != content_sha256(third)
    runs = [Run(0, -(2**63), 5, 2**63 - 1, 4), Run(1, 7, 0, 0, 2**32)]
    write_metadata(tmp_path / "metadata.db", runs, {"b": "ü", "a": '"'})
    lines: list[list[object]] = [
        ["runs", run.id, run.seed, run.steps, run.max_score, run.highest_tile] for run in runs
    ]
    lines += [["session", "a", '"'], ["session", "b", "ü"]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert content_sha256(tmp_path / "metadata.db") == hashlib.sha256(text.encode()).hexdigest()


def test_old_and_broken_databases(tmp_path):
    path = tmp_path / "metadata.db"
    with pytest.raises(BadInput, match="no such file"):
        read_runs(path)
    assert not path.exists()
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE runs (id INTEGER PRIMARY KEY, seed, steps, max_score, highest_tile)"
        )
        db.execute("INSERT INTO runs VALUES (0, 1, 'many', 3, 4)")
        db.commit()
    assert read_session(path) == {}
    with pytest.raises(BadInput, match="run 0 holds something other"):
        read_runs(path)
    (tmp_path / "metadata.db-wal").write_bytes(b"x")
    with pytest.raises(BadInput, match="write-ahead log"):
        read_runs(path)
    (tmp_path / "metadata.db-wal").unlink()
    write_metadata(tmp_path / "negative.db", [Run(0, 1, -1, 2, 4)], {})
    with pytest.raises(BadInput, match="run 0 holds"):
        read_runs(tmp_path / "negative.db")
    path.write_bytes(b"not a database, not at all" * 50)
    with pytest.raises(BadInput, match="SQLite cannot read"):
        read_runs(path)


NAMES = ("search", "tuple11", "tuple10", "line_plan", "")


def test_written_forms(tmp_path):
    path = tmp_path / "valuation_types.json"
    write_valuation_types(path, NAMES[:3])
    assert path.read_bytes() == b'[\n  "search",\n  "tuple11",\n  "tuple10"\n]\n'
    write_valuation_types(path, NAMES[:3], "object")
    assert path.read_bytes() == b'{\n  "search": 0,\n  "tuple11": 1,\n  "tuple10": 2\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        '["search", "tuple11", "tuple10", "line_plan", ""]',
        '{"tuple10": 2, "search": 0, "": 4, "line_plan": 3, "tuple11": 1}',
        '{"1": "tuple11", "0": "search", "2": "tuple10", "4": "", "3": "line_plan"}',
    ],
)
def test_every_form_is_read(tmp_path, text):
    path = tmp_path / "valuation_types.json"
    path.write_text(text)
    assert read_valuation_types(path) == NAMES


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "3", '["a", "a"]', '["a", 1]'),
        '{"a": 0, "b": 2}',
        '{"a": 0, "b": 0}',
        '{"a": 0, "a": 1}',
        '{"a": true, "b": 0}',
        '{"0": "a", "00": "b"}',
        '{"0": "a", "2": "b"}',
        '{"0000000000": "a"}',
        '{"0": "a", "1": 1}',
        "[" + ",".join(f'"{i}"' for i in range(256)) + "]",
    ],
)
def test_broken_enums_are_named(tmp_path, text):
    path = tmp_path / "valuation_types.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"valuation_types\.json"):
        read_valuation_types(path)
    with pytest.raises(BadInput, match="no such file"):
        read_valuation_types(tmp_path / "absent.json")
