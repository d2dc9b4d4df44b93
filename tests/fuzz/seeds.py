"""Writes the first inputs of every corpus from a data root of sample drops.

`python -m tests.fuzz.seeds DATA_ROOT`, after `make run`; everything in it is made by us.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import random
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.parsers import PARSERS
from tests.fuzz.parsers.chess import _URL
from tests.paths import CHECKOUT

_APART = b"\xff\xfe"


def macroxue(root: Path) -> Iterator[tuple[str, bytes]]:
    import numpy as np

    from gristmill.macroxue.format import rows
    from gristmill.macroxue.format.annotations import ROW_DTYPE, VALUE_DTYPE
    from gristmill.macroxue.format.metadata_db import Run, write_metadata
    from tests.macroxue.lines import META, compact, step
    from tests.macroxue.raw.test_strict_parser import ACCEPTED, REJECTED

    lines = [step(), step(["seed"], board=list(range(16))), *ACCEPTED.values(), *REJECTED.values()]
    meta = compact(META)
    for line in lines:
        yield "macroxue_step_line", line
    for line in lines[:20]:
        yield "macroxue_run", meta + _APART + line + b"\n" + step(step_index=1)
    yield "macroxue_run", meta + _APART
    yield (
        "macroxue_run",
        compact({**META, "num_moves": 2}) + _APART + step() + b"\n\n" + step() + b"\n",
    )
    for text in (
        meta,
        b"{}",
        compact({k: META[k] for k in ("seed", "num_moves", "score", "max_tile")}),
    ):
        yield "macroxue_meta", text
        yield "macroxue_gzip", gzip.compress(text, mtime=0)
    yield "macroxue_gzip", gzip.compress(b"a", mtime=0) + gzip.compress(b"b", 0, mtime=0)
    named = io.BytesIO()
    with gzip.GzipFile("name", "wb", fileobj=named, mtime=0) as file:
        file.write(b"x" * 1000)
    yield "macroxue_gzip", named.getvalue()
    yield (
        "macroxue_drop_names",
        b"a.meta.json\na.jsonl.gz\nb/c.meta.json.gz\nb/c.jsonl.gz\nd.meta.json",
    )
    yield "macroxue_drop_names", b"a.meta.json\na.meta.json.gz\na.jsonl.gz/\n\xff.meta.json"
    pool = b'members = ["d6_v1", "d7_v1"]\ndelete_members = false\n\n[macroxue.pool]\nshard_rows = 10_000_000\n'
    yield "macroxue_pool_file", pool
    yield (
        "macroxue_pool_file",
        b"members = ['a']\nx = 1979-05-27T07:32:00Z\ny = '''a'''\nz = [0x1, 1e3, inf, {a.b = 1}]\n",
    )
    yield (
        "macroxue_view_file",
        b"pool = 'a'\nannotations = 'b'\n[macroxue.training_view]\nvalidation_share = 0.1\n",
    )
    yield (
        "macroxue_view_file",
        b"pack = 3\n[macroxue]\ntraining_view = {train_query = 'SELECT 1'}\n",
    )
    view = {"sides": ["train", "validation"], "images": 8, "linked": [], "annotations": ""}
    for value in (view, {**view, "sides": [""], "images": 1}, {**view, "images": 3}, [view]):
        yield "macroxue_view_json", json.dumps(value).encode()
    for shape, dtype, manifest in (
        ((2, 4, 3), "<f4", b"{} "),
        ((2,), VALUE_DTYPE, b"{}"),
        ((2, 0), "<f4", b"{} "),
        ((2, 4, 3), "<f4", b"[] "),
    ):
        said, more = io.BytesIO(), io.BytesIO()
        np.save(said, np.zeros(2, ROW_DTYPE))
        np.save(more, np.zeros(shape, dtype))
        yield "macroxue_annotations", _APART.join((said.getvalue(), more.getvalue(), manifest))
    for value in (
        ["search", "tuple11", "tuple10", "é"],
        {"search": 0, "x": 1},
        {"0": "search", "1": "y"},
    ):
        yield "macroxue_valuation_types", json.dumps(value).encode()
    yield "macroxue_jsonl", b'{"run_id": 0, "kind": "empty_run"}\n{"run_id": 1}\n'
    for form in (*rows.STEP_FORMATS.values(), rows.VALUE_FORMAT):
        yield "macroxue_npy", form.header(0)
        yield "macroxue_npy", form.header(2) + bytes(2 * form.dtype.itemsize)
    for dtype in ("f4", [("exps", "u1", 16)], [("board", "<u8")]):
        file = io.BytesIO()
        np.lib.format.write_array(file, np.zeros(2, dtype), (2, 0))
        yield "macroxue_npy", file.getvalue()
    yield from _steps_of_others()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metadata.db"
        write_metadata(
            path, [Run(0, 7, 1, 80, 16), Run(1, 9, 0, 0, 0)], {"format": "1", "packs": "[]"}
        )
        yield "macroxue_metadata_db", path.read_bytes()
    tables = (
        b"CREATE TABLE runs(id INTEGER PRIMARY KEY, seed INTEGER, steps INTEGER, max_score INTEGER, highest_tile INTEGER);"
        b"CREATE TABLE session(meta_key TEXT PRIMARY KEY, meta_value TEXT);"
    )
    yield (
        "macroxue_metadata_tables",
        tables + b"INSERT INTO runs VALUES(0,1,2,3,4);INSERT INTO session VALUES('a','b');",
    )
    yield (
        "macroxue_metadata_tables",
        tables
        + b"INSERT INTO runs VALUES(0,NULL,x'00',-3,4e9);INSERT INTO session VALUES('a',x'ff');",
    )
    yield (
        "macroxue_metadata_tables",
        b"CREATE VIEW runs AS SELECT 1 AS id, 2 AS seed, 'a' AS steps, 1 AS max_score, 1 AS highest_tile;",
    )


def _steps_of_others() -> Iterator[tuple[str, bytes]]:
    from tests.macroxue.games import play, step_rows
    from tests.macroxue.step_drops import legacy, save, self_play

    games = [play(1, 4), play(2, 3)]
    for rows in (self_play(games, [9, 2]), legacy(games), step_rows(games)):
        with tempfile.TemporaryDirectory() as folder:
            save(Path(folder), rows)
            texts = [(Path(folder) / name).read_bytes() for name in ("steps.toml", "steps.npy")]
        yield "macroxue_steps", _APART.join(texts)


def chess(root: Path) -> Iterator[tuple[str, bytes]]:
    from tests.chess.generated_pgn import game_text, mutated, played

    dice = random.Random(2048)
    games = []
    for plies in (0, 1, 4, 9, 20, 40, 80):
        games.append(game_text(dice, *played(dice, plies)).encode())
    comments = b'[Event "E"]\n[Result "1-0"]\n\n1. e4 {a\n\n[Event "x"]\n} e5 (1... c5 2. Nf3) 2. Nf3 $1 ; rest\n2... Nc6 1-0\n\n'
    castles = b'[Event "E"]\n\n1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. O-O O-O 5. d4 exd4 6. c3 dxc3 7. b4 cxb2 8. a3 bxa1=Q 1/2-1/2\n\n'
    fen = b'[Event "E"]\n[SetUp "1"]\n[FEN "4k3/8/8/8/8/8/8/4K2R w K - 0 1"]\n\n1. O-O Kd7 *\n\n'
    unclosed = b'[Event "a"]\n\n1. e4 {open\n\n[Event "b"]\n\n1. d4 d5 *\n\n'
    for text in (
        *games,
        comments,
        castles,
        fen,
        unclosed,
        games[2] + games[3],
        b"",
        b"\xef\xbb\xbf" + games[1],
    ):
        for name in ("chess_pgn", "chess_pgn_reading", "chess_pgn_ranges"):
            yield name, text
        if len(text) < 600:
            yield "chess_pgn_kernels", text
    for number in range(10):
        text = (
            mutated(dice, games[2 + number % 4].decode("utf-8", "replace"))
            if callable(mutated)
            else ""
        )
        yield "chess_pgn", text.encode("utf-8", "replace")
    yield "chess_moves", b"e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5c6 d7c6 e1g1"
    yield (
        "chess_month_list",
        b"# months\n2024-01\nhttps://x/lichess_elite_2020-06.zip?a\n\n 2021-12 \n",
    )
    pgn = games[3]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr(zipfile.ZipInfo("a.pgn"), pgn, method)
        yield "chess_zip", buffer.getvalue()
        yield "chess_drop", b"x\n" + buffer.getvalue()
    import zstandard

    for data in (
        zstandard.ZstdCompressor(write_checksum=True).compress(pgn),
        zstandard.ZstdCompressor().compress(b"a" * 5000),
    ):
        yield "chess_zst", data
        yield "chess_drop", b"xx\n" + data
    yield "chess_drop", b"\n" + pgn
    yield "chess_collection", b"\x01" + pgn
    yield "chess_collection", b"\x03" + gzip.compress(pgn, mtime=0)
    yield "chess_collection", b"\x04" + bz2.compress(pgn)
    yield (
        "chess_download_state",
        json.dumps({"url": _URL, "etag": 'W/"x"', "last_modified": "Mon"}).encode(),
    )
    dataset = next(iter(sorted(root.glob("chess/dataset/*_game"))))
    valid = next(iter(sorted(root.glob("chess/validated/*/valid_games.jsonl"))))
    lines = sorted(valid.read_bytes().splitlines(keepends=True), key=len)[:3]
    for line in lines:
        yield "chess_row", line
    yield "chess_rows", b"".join(lines)
    yield "chess_row", json.dumps(json.loads(lines[0]), indent=1).encode()
    sidecar = dataset / "sidecar"
    records = (sidecar / "val.games.bin").read_bytes()[:120]
    plies = sum(int.from_bytes(records[at + 24 : at + 28], "little") for at in (0, 40, 80))
    phases = (sidecar / "val.phases.bin").read_bytes()[:plies]
    described = [(sidecar / name).read_bytes() for name in ("sources.json", "rows.json")]
    yield "chess_sidecar", _APART.join([records, phases, *described])
    manifest = (dataset / "runtime_splice_cache" / "manifest.json").read_bytes()
    stats = (dataset / "stats.json").read_bytes()
    yield "chess_samples_settings", manifest + _APART
    yield "chess_samples_settings", _APART + stats
    yield "chess_kind", stats


def synth(root: Path) -> Iterator[tuple[str, bytes]]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gristmill.synth.format.indexed import IndexedWriter
    from gristmill.synth.raw.files import COLUMNS
    from tests.synth.conversations import as_json, conversation, message

    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("<i4", "u1"):
            prefix = Path(folder) / f"shard_{dtype[-2:]}"
            with IndexedWriter(prefix, dtype) as writer:
                writer.add(np.arange(5, dtype=dtype), np.array([2, 3], np.int32))
            idx, values = (prefix.with_suffix(suffix).read_bytes() for suffix in (".idx", ".bin"))
            yield "synth_index", idx + _APART + values
    columns = {name: (["1", None, "é"] if name != "words" else [1, None, 3]) for name in COLUMNS}
    for options in ({"compression": "none"}, {"compression": "zstd", "write_page_checksum": True},
                    {"use_dictionary": False, "data_page_version": "2.0", "row_group_size": 2}):  # fmt: skip
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file, **options)
        yield "synth_parquet", file.getvalue()
    file = io.BytesIO()
    pq.write_table(
        pa.table({"query": pa.array([["a"], None, []]), "x": pa.array([{"a": 1}, None, {"a": 2}])}),
        file,
    )
    yield "synth_parquet", file.getvalue()
    trace = next(iter(sorted(root.glob("megatron/*/trace/*.parquet"))))
    yield "synth_trace", trace.read_bytes()
    shard = pq.read_table(next(iter(sorted(root.glob("synth_harmony/*.parquet")))))
    for options in ({"compression": "zstd"}, {"compression": "none"}):
        file = io.BytesIO()
        pq.write_table(shard.slice(0, 2), file, **options)
        yield "synth_harmony_shard", file.getvalue()
    for text in shard.column("messages_json").to_pylist()[:3]:
        yield "synth_messages", text.encode()
    yield "synth_messages", as_json(conversation("q", "r", "<|end|>a")).encode()
    yield (
        "synth_messages",
        as_json(
            [message("system", "x"), message("tool", "y", name="t"), message("user", "")]
        ).encode(),
    )
    manifest = (root / "synth_harmony/manifest.json").read_bytes()
    metadata = (root / "synth_harmony/metadata.json").read_bytes()
    yield "synth_conversion", manifest + _APART + metadata
    yield "synth_raw_names", b"a.parquet\nb.parquet\nc.parquet\nd.parquet\n.done"
    yield "synth_holdout", b"synth_0001"


def common(root: Path) -> Iterator[tuple[str, bytes]]:
    records = sorted(root.rglob("provenance.json"))
    smallest = sorted((path.read_bytes() for path in records), key=len)
    for text in smallest[:2]:
        small = json.loads(text)
        small["libraries"] = {}
        slim = json.dumps(small).encode()
        yield "record", slim
        small["inputs_file"] = {"path": "inputs.jsonl", "count": 1, "bytes": 9, "sha256": "0" * 64}
        line = b'{"path":"x","bytes":1,"sha256":"00","mtime_ns":1}\n'
        small["inputs_file"]["sha256"] = hashlib.sha256(line).hexdigest()
        listed = json.dumps(small).encode()
        yield "record_inputs", listed + _APART + line
        yield "record_inputs", slim + _APART
        small |= {"artifact": "x/y", "asset": "macroxue/pack", "partition": "y"}
        yield "verification", json.dumps(small).encode() + _APART + line
    yield "verification", slim + _APART
    yield (
        "settings",
        b"[macroxue.pack]\nlayout = 'packed46'\nshard_rows = 10_000\n\n[inbox]\nfollow_links = true\n",
    )
    yield "settings", b"[synth.harmony]\ndrop = 'synth/samples'\n[synth.kd_shards]\nworkers = 2\n"
    yield "settings", b"[chess.month]\nelo_floor = 2400\ntime_controls = ['blitz']\nseed = 7\n"
    for key in (b"d6_v1", b"a.b-c_d", b"../x", b"-x", b"a..b", b"\xc3\xa9"):
        yield "keys", key
    yield "inbox_names", b"d6\nd7_v1\npool.toml\n.hidden\nx y\n\xff\na.toml.partial"
    yield (
        "part_ledger",
        json.dumps(
            {"sha256": hashlib.sha256(b"part").hexdigest(), "summary": {"rows": 1}}
        ).encode(),
    )
    yield "lock_holder", b'{"process": 1, "host": "h", "since": "2026-01-01T00:00:00+00:00"}'
    for text in (
        b"a|b`c\\`|`",
        b"<img src=x>[a](http://x)![b](y)",
        b"www.x.y @a \xe2\x80\xae\n# h",
        b"\xff\x00\x1b[0m",
    ):
        yield "markdown", text


def reasoning_steps(root: Path) -> Iterator[tuple[str, bytes]]:
    from gristmill.reasoning.format import align, reports
    from gristmill.reasoning.format.corpora import CORPORA
    from gristmill.reasoning.samples import CHAINS
    from tests.reasoning.format.test_align import _ROW
    from tests.reasoning.format.test_reports import REPORT, _reference

    yield "reasoning_alignment", align.line(_ROW)
    yield "reasoning_alignment", align.line(_ROW) * 2
    yield "reasoning_report", reports.to_bytes(REPORT)
    yield "reasoning_report", reports.to_bytes(REPORT | _reference())
    gate = {"passed": False, "baseline": None, "breaches": ["a"]}
    yield "reasoning_report", reports.to_bytes(REPORT | {"gate": gate})
    audit = {"example_id": "gsm8k_test_000007", "text_sha256": "ab", "verdict": "right"}
    more = {"by": "Ana", "at": "2026-11-22T10:00:00+00:00", "notes": ""}
    line = json.dumps(audit).encode()
    yield "reasoning_audits", line
    yield "reasoning_audits", line + b"\n\n" + json.dumps(audit | more).encode() + b"\n"
    for place in range(len(CORPORA)):
        for chain in CHAINS:
            listed = [item.encode() for item in chain] if isinstance(chain, list) else []
            cot = b"\n".join(listed) or str(chain or "").encode()
            yield "reasoning_steps", bytes([place]) + b"\0".join([b"Why?", cot, b"42", *listed])
    worked = b"\0Why?\0\0She has 1+1=<<1+1=2>>2.\nThen <<2*3.5%=.07>>.07\n#### 7"
    yield "reasoning_steps", worked
    yield "reasoning_steps", b"\5Why?\0Conflict: 1\nEffect: cup\nPrecondition: cup\0A"


def reasoning(root: Path) -> Iterator[tuple[str, bytes]]:
    import bz2
    import lzma

    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    from gristmill.reasoning.builders.raw_manifest import write_raw_manifest
    from gristmill.reasoning.format.corpora import CORPORA
    from gristmill.reasoning.samples import write_drop
    from tests.reasoning.builders.test_raw_manifest import record

    with tempfile.TemporaryDirectory() as folder:
        for place, corpus in enumerate(CORPORA):
            for path in write_drop(Path(folder) / corpus, corpus):
                ending = path.name.split(".")[1]
                if path.suffix in (".gz", ".xz", ".parquet"):
                    continue
                octets = path.read_bytes()
                way = ("jsonl", "json", "csv", "tsv").index(ending)
                chooser = bytes([place, way + 4 * (place % 2)])
                if ending == "jsonl":
                    lines = octets.splitlines(keepends=True)
                    for begin in range(0, len(lines), 9):
                        yield "reasoning_normalized", chooser + b"".join(lines[begin : begin + 4])
                        yield "reasoning_json", b"".join(lines[begin : begin + 2])
                elif len(octets) < 4000:
                    yield "reasoning_normalized", chooser + octets
                elif ending == "csv":
                    yield "reasoning_normalized", chooser + b"".join(octets.splitlines(True)[:9])
                else:
                    values = json.loads(octets)
                    first = values[:1] if isinstance(values, list) else dict([*values.items()][:3])
                    yield "reasoning_normalized", chooser + json.dumps(first).encode()
        records = [record("wiqa__test"), record("gsm8k__train")]
        write_raw_manifest(records, None, Path(folder) / "out", generated_at="1")
        yield "reasoning_raw_manifest", (Path(folder) / "out/manifest.json").read_bytes()
    text = b'{"question": "q", "answer": "a"}\n'
    for octets in (
        b"[" + text + b"," + text + b"]",
        b'{"0": ' + text + b', "7": {}}',
        b"\n" + text,
    ):
        yield "reasoning_json", octets
        yield "reasoning_normalized", b"\0\0" + octets
    packers = (lambda data: gzip.compress(data, mtime=0), bz2.compress, lzma.compress)
    for which, pack in enumerate((*packers, zstandard.ZstdCompressor().compress)):
        yield "reasoning_packed", bytes([which]) + pack(text * 9) + pack(b"")
    for options in ({"compression": "none"}, {"compression": "zstd"}):
        sink = io.BytesIO()
        rows = [{"question": "q", "steps": ["a", None], "x": {"y": 1.5}}, {"question": None}]
        pq.write_table(pa.Table.from_pylist(rows * 3), sink, **options)
        yield "reasoning_parquet", sink.getvalue()
    yield (
        "reasoning_drop_names",
        b"wiqa\ntrain.jsonl\ntest-00000-of-00001.parquet\nDev.json.gz\nx.md",
    )
    yield "reasoning_drop_names", b"gsm8k\na.csv\n\xff.jsonl"
    line = {"question": "q", "answer": "more", "cot": "a\nb", "source_dataset": "wiqa"}
    line |= {"perturbation": None, "effect1": "x", "effect2": 1, "cot_steps": ["a", "b"]}
    yield "reasoning_normalized_file", json.dumps(line).encode() + b"\n"
    yield "reasoning_normalized_file", json.dumps(line, indent=1).encode()


def puzzles_arc(root: Path) -> Iterator[tuple[str, bytes]]:
    from gristmill.puzzles.raw.samples import write_arc_sample

    with tempfile.TemporaryDirectory() as folder:
        write_arc_sample(Path(folder) / "arc")
        for path in sorted(Path(folder).rglob("*.json")):
            if path.stat().st_size < 1500:
                yield "puzzles_arc_task", b"1" + path.read_bytes()
    small = {"input": [[0, 9]], "output": [[1], [2]]}
    for task in (
        {"test": [small], "train": [small, small], "name": "other"},
        {"train": [small], "test": [small], "name": "a_b"},
        {"train": [small], "test": [{"input": [[1, True]], "output": [[1]]}]},
        {"train": [small]},
    ):
        yield "puzzles_arc_task", b"0" + json.dumps(task).encode()

    challenge = {"train": [small], "test": [{"input": [[0, 9]]}]}
    yield (
        "puzzles_arc_collection",
        json.dumps({"t": challenge}).encode() + b"\xff\xfe" + json.dumps({"t": [[[1]]]}).encode(),
    )
    row = {"input": [[1, 2], [0, 3]], "output": [[2, 1], [3, 0]], "group": "a"}
    yield "puzzles_grids", json.dumps(row).encode() + b"\n"


def puzzles_reader(root: Path) -> Iterator[tuple[str, bytes]]:
    from tests.fuzz.parsers.puzzles_reader import _FIELDS
    from tests.puzzles.read.folders import write_split

    usual = {"groups": 3, "most_puzzles": 2, "seq_len": 3}
    cases = (
        {},
        {"dtype": "int32"},
        {"dtype": ">i4", "ignore_label_id": None},
        {"index_dtype": "int64", "dtype": "int64", "ignore_label_id": 3},
        {"most_puzzles": 1},
        {"most_examples": 3},
        {"groups": 1, "most_puzzles": 1},
        {"sets": ("all", "more")},
    )
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            train = write_split(Path(scratch) / "train", **{**usual, **case}) / "train"
            arrays = [(train / f"all__{field}.npy").read_bytes() for field in _FIELDS]
            yield "puzzles_dataset", _APART.join([(train / "dataset.json").read_bytes(), *arrays])


def puzzles_rows(root: Path) -> Iterator[tuple[str, bytes]]:
    from gristmill.puzzles.raw.samples import generated_sudoku

    head = b"source,question,answer,rating\n"
    for rows in (
        b"s,12,34,5\n,..,99,-7\n",
        b"s,12,34,5\r\n\r\nt,1,2,3",
        b'"a,b","12",34,"5"\n"c ""d""",56,78,7.2\n',
        b'"a\nb",12,34,5\n',
        b"s,12,34\n",
        b"\xff, #,So,x\n",
    ):
        yield "puzzles_rated_csv", head + rows
    yield "puzzles_rated_csv", b"\xef\xbb\xbf" + head.replace(b"\n", b"\r\n") + b"s,12,34,5\n"
    pairs = [generated_sudoku(number)[:2] for number in range(12)]
    yield "puzzles_sudoku_bank", "\n".join(question for question, _ in pairs).encode()
    yield "puzzles_sudoku_bank", "\n".join(" ".join(pair) for pair in pairs).encode()
    rated = [f"a{k} {question.replace('0', '.')} {k}.5" for k, (question, _) in enumerate(pairs)]
    yield "puzzles_sudoku_bank", "\r\n\n".join(rated).encode()
    yield "puzzles_sudoku_bank", b"." * 81 + b"\n" + pairs[0][0].encode()


def puzzles_maze(root: Path) -> Iterator[tuple[str, bytes]]:
    head = b"source,question,answer,rating\n"
    for data in (
        b"",
        head,
        head + b"a,S  G,So G,2\n",
        head + b'a,"S  G","So G",2\r\n\r\nb,SG##,SG##,1',
        b"\xef\xbb\xbf" + head + b"a,S    #  G,Soo  o# G,4\n",
        head + b"a,S    #  G,Soo  o# oG,4\n",
        head + b"a,S  G##,So G##,2\n",
        head + b"a,S.#G,S.#G,1\n",
        head + b"a,S\xff#G,S #G,1\n",
        head + b"a,SS G,SSoG,1\n",
        head + b"a,S  #  # G,Soo# o# G,4\nb,SG ######,SG ######,1\n\nc,##SG#####,##SG#####,1\n",
        head + b"a,S  #  # G,Soo# o# G,4\nb,SG ######,SG ######,1\n\n",
    ):
        yield "puzzles_maze_csv", data


def puzzles_recipes(root: Path) -> Iterator[tuple[str, bytes]]:
    for text in (
        "",
        'kind = "domino"\n[settings]\nnum_games = 20\n',
        'kind = "arc"\nsources = ["arc_agi", "concept_arc/corpus"]\n[settings]\nnum_aug = 3\n',
        'kind = "sudoku"\nsources = ["a"]\n[settings]\nmin_difficulty = 2\ntest_share = 0.5\n',
        'kind = "maze"\nsources = ["../a"]\n',
        'kind = "chess"\n',
    ):
        yield "puzzles_recipe", text.encode()
    yield "puzzles_source_names", b"LICENSE\na.json\na.csv\nb.csv\n.b.csv\nc.TXT\nd.txt"
    yield "puzzles_source_names", b"README.md\n\xff.csv"


def puzzles_trace(root: Path) -> Iterator[tuple[str, bytes]]:
    from gristmill.puzzles.format.metadata import SourceFile, Sources

    yield "puzzles_identifiers", b"[]"
    yield "puzzles_identifiers", json.dumps(["<blank>", "00576224", "a_b/0"]).encode()
    files = [SourceFile("arc/a.json", "0" * 64, {"task": "a"}), SourceFile("arc/b.json", "1" * 64)]
    for listed in ((), files):
        made = Sources("arc", {"num_aug": 3, "sources": ["arc"]}, listed)
        yield "puzzles_sources", made.text().encode()


def reasoning_read(root: Path) -> Iterator[tuple[str, bytes]]:
    import numpy as np

    from gristmill.reasoning.format import index, staged
    from gristmill.reasoning.format.shards import Meta, manifest_entries

    digest, numbers = "0" * 64, {"seq_len": 8, "num_sequences": 2, "token_count": 16}
    named = {"dataset": "wiqa", "split": "dev", "path": "wiqa/dev/shard_00000.pt"}
    meta = Meta(
        **named,  # type: ignore[arg-type]
        **numbers,  # type: ignore[arg-type]
        shard_index=0,
        sha256=digest,
        source_files=({"path": "reasoning/normalized/wiqa/dev.jsonl", "sha256": digest},),
        rank=0,
        world_size=1,
        file_sha256=digest,
        text_tokens=12,
        eos_tokens=2,
        pad_tokens=2,
        first_example="wiqa_dev_0",
        last_example="wiqa_dev_1",
        tokenizer_sha256=digest,
        schema_version=1,
    )
    listed = b"".join(manifest_entries([meta]))
    few = {key: value for key, value in json.loads(listed)[0].items() if key != "rank"}
    for name in ("reasoning_shard_list", "reasoning_shards"):
        yield name, listed
        yield name, json.dumps([few]).encode()
    yield "reasoning_shards", json.dumps(json.loads(listed)[0], indent=2).encode()
    spans = (index.Span("a/shard_0.pt", 0, 5, 8), index.Span("a/shard_0.pt", 1, 0, 4))
    for extras in ({}, {"rating": 1.5, "steps": ["a", None]}):
        row = index.Row("wiqa_dev_0", "a/shard_0.pt", 0, 5, 6, 7, spans, 0, digest, extras)
        yield "reasoning_index", index.line(row) * 2
    for rows in (0, 3):
        array = io.BytesIO()
        np.save(array, np.arange(2 * rows, dtype="<i8").reshape(rows, 2))
        yield "reasoning_origins", array.getvalue()
    entry = staged.Entry("shards/wiqa/dev/shard_00000.pt", 5, digest)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made = staged.Staged("job", "/data", None, digest, 2, (0, 1), entries={entry.path: entry})
        staged.write(folder, made)
        yield "reasoning_staged", b"0" + (folder / staged.STAGED).read_bytes()
        journal = staged.Journal(folder)
        journal.begin(entry.path)
        journal.end(entry)
        yield "reasoning_staged", b"1" + journal.path.read_bytes() + b'{"path'


def mirror(root: Path) -> Iterator[tuple[str, bytes]]:
    from gristmill.mirror.layout import File, Manifest, Outer, Place, Version
    from gristmill.provenance.inventory import Entry

    digest = "0" * 64
    places = [Place(Entry("family/tiny", "a")), Place(Entry("family/tiny"))]
    yield "mirror_keys", "\n".join(place.version(7) for place in places).encode()
    yield "mirror_keys", b"artifacts/a/../@/00000001.json\nobjects/00/" + digest.encode()
    for first, partition, outer in (
        (b"0", "a", None),
        (b"1", None, Outer(artifact="family", data_version=digest)),
    ):
        version = Version(
            number=1,
            artifact="family/tiny",
            asset="family/tiny",
            partition=partition,
            data_version=digest,
            fingerprint=digest,
            record=digest,
            outer=outer,
            manifest=digest,
            total_bytes=9,
            files=2,
            writer="w",
            pushed="2026-11-25T00:00:00+00:00",
        )
        yield "mirror_version", first + version.to_bytes()
    files = [
        File(path="provenance.json", bytes=3, sha256=digest, parts=[digest]),
        File(path="train/steps.npy", bytes=9, sha256=digest, parts=[digest] * 3),
        File(path="empty", bytes=0, sha256=digest, parts=[]),
    ]
    for shared, partition in ((False, None), (False, "p")):
        made = Manifest(
            artifact="family/tiny",
            partition=partition,
            shared=shared,
            record="provenance.json",
            part_bytes=4,
            files=files,
        )
        yield "mirror_manifest", made.to_bytes()
    yield "mirror_note", b'[["family/tiny", "a", 3], ["family/tiny", null, 1]]'


def kept(root: Path) -> Iterator[tuple[str, bytes]]:
    from gristmill.inbox.state import State, Waiting
    from gristmill.publish.storage import lease_file

    for held in (True, False):
        state = json.loads(lease_file.content_of("t", 20.0, 3, held))
        state |= {"host": "h", "boot": "b", "name": "n", "process": 7, "started": 1}
        yield "lease", json.dumps(state).encode()
    yield "stamps", json.dumps({"train/a.bin": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4, 5]}).encode()
    seen = {"a": Waiting("s", 1), "b": Waiting("t", 2, 1)}
    full = State(seen, {"c": "s"}, {"d": "t"}, "c", {"c": ("s", 2)}, "c", "x")
    for state in (State(), full):
        yield "cursor", state.write().encode()


def reasoning_corpora(root: Path) -> Iterator[tuple[str, bytes]]:
    """The recipes of the pages with their rows, those of the package, and files to look at."""
    from tests.reasoning.builders.chat.test_conversations import PAGE as CHATS
    from tests.reasoning.builders.chat.test_conversations import RECIPE as CHAT
    from tests.reasoning.raw.forms.test_corpus_file import PAGE, RECIPE

    rows = b""
    for name, recipe, row, _ in RECIPE.findall(PAGE):
        text = recipe.replace(f'name = "{name}"', 'name = "mine"').encode()
        yield "reasoning_corpus_file", text + _APART + row.encode() + b"\n"
        rows += row.encode() + b"\n"
        yield "look", b"\0" + row.encode() + b"\n" + _APART + row.encode()
    for path in sorted((CHECKOUT / "gristmill/reasoning/corpora").glob("*.toml")):
        lines = path.read_text().splitlines()
        begins = ("version", "name = ", "splits", "apart", "words", "source")
        kept = [line for line in lines if not line.startswith(begins) or line == 'name = "seed"']
        yield "reasoning_corpus_file", "\n".join(['name = "mine"', *kept]).encode() + _APART + rows
    table = b"question;answer\nWhy is it so?;it is\n"
    yield "look", bytes([2 * 4 + 2]) + table + _APART + b"Why is it so?,2\nHow?,3\n"
    for name, recipe, talks in CHAT.findall(CHATS):
        text = recipe.replace(f'name = "{name}"', 'name = "mine"').replace("chat_template", "t")
        text = text.replace('recipe = "synth"', 'recipe = "synth"\nshards = 1')
        yield "chat_recipe", _APART.join([text.encode(), b"{{ messages }}", talks.encode()])
    yield "reasoning_token_recipe", b'corpora = ["gsm8k"]\ntokenizer = "mine"\nseq_len = 64\n'
    yield "reasoning_token_recipe", b'corpora = ["a__train", "b"]\ntokenizer = 3\n'
    ranks = b"YQ== 0\nYg== 1\nYWI= 2\n"
    declared = [
        'form = "tiktoken"',
        'file = "mine.tiktoken"',
        f'sha256 = "{hashlib.sha256(ranks).hexdigest()}"',
        'eod = "<|end|>"',
        'pattern = "gpt2"',
        'special = { "<|end|>" = 3 }',
    ]
    yield "tokenizer_file", "\n".join(declared).encode()
    yield "tokenizer_file", b'form = "other"\n[special]\na = -1\n'
    chat = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    yield "look", bytes([4]) + json.dumps([{"messages": chat}] * 3).encode() + _APART + b"{}"


def main(root: Path) -> None:
    families = (common, macroxue, synth, chess, reasoning, reasoning_corpora, reasoning_steps)
    for source in (
        *families,
        puzzles_arc,
        puzzles_maze,
        puzzles_reader,
        puzzles_recipes,
        puzzles_rows,
        puzzles_trace,
        reasoning_read,
        mirror,
        kept,
    ):
        for name, data in source(root):
            corpus = PARSERS[name].corpus
            corpus.mkdir(parents=True, exist_ok=True)
            (corpus / f"seed-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
