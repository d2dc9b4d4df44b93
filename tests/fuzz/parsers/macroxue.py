"""The parsers of the 2048 family."""

import contextlib
import gzip
import os
import sqlite3

import numpy as np

from gristmill.contract import GristmillError
from tests.fuzz.parser import HUNDRED_THOUSAND, JSON, TEN_THOUSAND, Parsers, file, folder, split

PARSERS = Parsers()
_RAW = "gristmill.macroxue.raw"
_FORMAT = "gristmill.macroxue.format"
_STEP = tuple(
    b'"seed": "step_index": "max_rank": "move": "valuation_type": "board": "branch_evs":'.split()
    + b'"valuation": "up" "left" "search" "tuple11"'.split()
)
_NPY = tuple(b"\x93NUMPY\x01\x00 'descr': 'shape': (0,) <f4 'fortran_order':".split())
_TOML = tuple(b"[macroxue.pool] [macroxue.training_view] num_bins inf {a=1} ''' \"\"\"".split())


@PARSERS.add(
    "macroxue_step_line",
    f"{_RAW}.strict_parser",
    covers=(f"{_RAW}.fast_scanner",),
    words=JSON + _STEP,
)
def step_line(data: bytes) -> None:
    """One line: the compiled scanner gives the row of the strict parser, or none."""
    from gristmill.macroxue.raw.strict_parser import RuleBroken, parse_step
    from tests.macroxue.raw.test_read_run import agree

    line = data.replace(b"\n", b" ")
    agree(line)
    with contextlib.suppress(RuleBroken):
        parse_step(line)


@PARSERS.add("macroxue_meta", f"{_RAW}.strict_parser", "gristmill.untrusted.json_text", words=JSON)
def meta(data: bytes) -> None:
    """The text of a meta file."""
    from gristmill.macroxue.raw.strict_parser import RuleBroken, parse_meta

    with contextlib.suppress(RuleBroken):
        parse_meta(data)


@PARSERS.add("macroxue_gzip", f"{_RAW}.read_run", words=(b"\x1f\x8b\x08", b"\0\0\0\0"))
def gzip_file(data: bytes) -> None:
    """A zipped meta file: gzip members of any form."""
    from gristmill.macroxue.raw.read_run import read_meta
    from gristmill.macroxue.raw.strict_parser import RawDigest

    digest = RawDigest()
    read_meta(file("x.meta.json.gz", data), digest)
    assert digest.size == len(data)


@PARSERS.add(
    "macroxue_run",
    f"{_RAW}.read_run",
    f"{_RAW}.strict_parser",
    covers=tuple(f"{_RAW}.{name}" for name in ("fast_scanner", "json_spaces", "read_run")),
    words=(*JSON, *_STEP, b"\xff\xfe", b" ", b"\t", b"\r\n"),
)
def run(data: bytes) -> None:
    """A run: the rows are the same with the compiled scanner and without it."""
    from gristmill.contract import BadInput
    from gristmill.macroxue.raw import fast_scanner, read_run
    from gristmill.macroxue.raw.drops import RunFiles
    from gristmill.macroxue.raw.strict_parser import Names

    meta_text, steps = split(data, 2)
    zipped = gzip.compress(steps, 0, mtime=0)
    files = RunFiles(
        "x", file("x.meta.json", meta_text), file("x.jsonl.gz", zipped), "x", "x", len(zipped)
    )

    def read(scanner: object) -> tuple[bytes, str]:
        rows: list[bytes] = []
        names, error = Names(), ""
        try:
            facts = read_run.read_run(
                files, 3, names, lambda batch: rows.append(batch.tobytes()), scanner
            )  # type: ignore[arg-type]
            error = str((facts.rows, facts.kinds, facts.ranks, read_run.notes_of(facts)))
        except BadInput as caught:
            error = str(caught)
        return b"".join(rows), error

    strict, scanned = read(None), read(fast_scanner.scan)
    assert strict[1] == scanned[1], (strict[1], scanned[1])
    assert strict[0] == scanned[0]


@PARSERS.add(
    "macroxue_drop_names",
    f"{_RAW}.drops",
    most_bytes=400,
    words=(b".meta.json", b".meta.json.gz", b".jsonl.gz", b"/", b"\xff"),
)
def drop_names(data: bytes) -> None:
    """The names of files and folders in a drop, one a line."""
    from gristmill.macroxue.raw.drops import account, raw_files
    from tests.refusal import refusal

    with folder("drop") as drop:
        for line in data.split(b"\n")[:8]:
            path = bytes(drop) + b"/" + line.replace(b"\0", b"")[:200]
            try:
                if b".." not in line.split(b"/"):
                    os.makedirs(path.rpartition(b"/")[0], exist_ok=True)  # noqa: PTH103
                    if not line.endswith(b"/"):
                        open(path, "xb").close()  # noqa: PTH123 - it need not be UTF-8
            except OSError:
                continue  # no name of a file
        if refusal(account, drop) is None:
            assert raw_files(drop)


@PARSERS.add(
    "macroxue_pool_file",
    f"{_RAW}.described",
    "tomllib._parser",
    words=(b"members", b"delete_members", *_TOML),
)
def pool_file(data: bytes) -> None:
    """A pool file."""
    from gristmill.macroxue.raw.described import read_pool_file

    read_pool_file(file("pool.toml", data))


@PARSERS.add(
    "macroxue_view_file", f"{_RAW}.described", words=(b"pack", b"pool", b"annotations", *_TOML)
)
def view_file(data: bytes) -> None:
    """The file of a training view."""
    from gristmill.macroxue.raw.described import read_view_file

    read_view_file(file("view.toml", data))


@PARSERS.add("macroxue_view_json", f"{_FORMAT}.files", words=JSON)
def view_description(data: bytes) -> None:
    """view.json of a training view."""
    from gristmill.macroxue.format.files import read_description

    view = read_description(file("view/view.json", data).parent)
    assert view.source_run(9) in ((9, 0), (1, 1))


@PARSERS.add(
    "macroxue_annotations",
    f"{_RAW}.annotations",
    f"{_FORMAT}.rows",
    covers=("gristmill.untrusted.npy_header",),
    inputs=TEN_THOUSAND,
    words=(*_NPY, b"{}"),
)
def annotations(data: bytes) -> None:
    """A folder of annotations: its rows, a further file of them, and the manifest."""
    from gristmill.macroxue.format.files import Run, write_metadata
    from gristmill.macroxue.format.rows import MANIFEST, ROWS, unannotated
    from gristmill.macroxue.raw.annotations import Annotations

    rows, more, manifest = split(data, 3)
    with folder("annotations") as drop:
        write_metadata(drop / "metadata.db", [Run(0, 7, 2, 80, 16)], {})
        (drop / MANIFEST).write_bytes(manifest)
        (drop / "annotations-000000.npy").write_bytes(rows)
        stem = ("value", "student")[len(manifest) % 2]
        (drop / f"annotations-{stem}-000000.npy").write_bytes(more)
        found = Annotations(drop)
        for stem, maps in found.maps.items():
            assert len(found.take(stem, np.arange(found.rows))) == found.rows
            assert len(unannotated(maps[0].dtype, 3)) == 3
        assert ROWS in found.maps


@PARSERS.add("macroxue_valuation_types", f"{_FORMAT}.files", words=JSON)
def valuation_types(data: bytes) -> None:
    """valuation_types.json of any program."""
    from gristmill.macroxue.format.files import read_valuation_types, write_valuation_types
    from tests.fuzz.parser import scratch

    names = read_valuation_types(file("valuation_types.json", data))
    write_valuation_types(scratch() / "again.json", names)
    assert read_valuation_types(scratch() / "again.json") == names


@PARSERS.add("macroxue_jsonl", f"{_FORMAT}.files", words=JSON)
def json_lines(data: bytes) -> None:
    """A .jsonl file of a pack."""
    from gristmill.macroxue.format.files import iter_lines, run_of

    for _, line in iter_lines(file("x.jsonl", data)):
        run_of(line)


@PARSERS.add(
    "macroxue_npy",
    f"{_FORMAT}.rows",
    "gristmill.untrusted.npy_header",
    "numpy.lib._format_impl",
    words=(*_NPY, b"|V"),
)
def npy_rows(data: bytes) -> None:
    """A steps file of any program."""
    from gristmill.macroxue.format.rows import open_steps, open_values, refuse_foreign_rows

    path = file("steps.npy", data)
    refuse_foreign_rows(path)
    for opened in (open_steps, open_values):
        with contextlib.suppress(GristmillError):
            opened(path).tobytes()


@PARSERS.add(
    "macroxue_steps",
    f"{_RAW}.step_files",
    f"{_RAW}.read_steps",
    inputs=HUNDRED_THOUSAND,
    words=(*_NPY, b"[fields]", b"(16,)", b"<u8", b"\xff\xfe"),
)
def steps_drop(data: bytes) -> None:
    """A drop of steps of any program: its steps.toml and its steps.npy."""
    from gristmill.contract import BadInput
    from gristmill.macroxue.raw.read_steps import none_fits, read_steps
    from gristmill.macroxue.raw.step_files import find_steps, proposal, runs_of
    from gristmill.macroxue.raw.strict_parser import Names
    from gristmill.untrusted.files import REFUSE_LINKS

    text, rows = split(data, 2)
    with folder("steps") as drop:
        (drop / "steps.toml").write_bytes(text)
        (drop / "steps.npy").write_bytes(rows)
        proposal(drop)
        with contextlib.suppress(BadInput):  # with the lines of a reading that fits
            none_fits(drop, REFUSE_LINKS)
        steps, names = find_steps(drop), Names()
        assert steps is not None
        for run in runs_of(steps):
            read: list[int] = []
            facts = read_steps(run, 0, names, lambda rows, read=read: read.append(len(rows)))
            assert sum(read) == facts.rows


@PARSERS.add("macroxue_metadata_db", f"{_FORMAT}.files", most_bytes=20_000)
def metadata_db(data: bytes) -> None:
    """metadata.db of any program: the bytes of an SQLite file."""
    from gristmill.macroxue.format.files import content_sha256

    content_sha256(file("metadata.db", data))


@PARSERS.add(
    "macroxue_metadata_tables",
    f"{_FORMAT}.files",
    inputs=TEN_THOUSAND,
    words=(
        *(b"CREATE TABLE runs(", b"INSERT INTO runs VALUES(", b"session", b"meta_key", b"VIEW"),
    ),
)
def metadata_tables(data: bytes) -> None:
    """metadata.db of any program: statements that make it."""
    from gristmill.macroxue.format.files import content_sha256

    path = file("tables.db", b"")
    with sqlite3.connect(path) as db:
        db.set_progress_handler(lambda: 1, 20_000)
        with contextlib.suppress(sqlite3.Error, ValueError):
            db.executescript(data.decode("utf-8", "replace"))
    db.close()
    content_sha256(path)
