"""A tiny real artifact: rows from workers, a SQLite file, a JSONL file and a note.

It goes through everything that the families' builders use: `run_parts` with a
store, progress, several files, a folder within, a file that is no payload.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gristmill import provenance
from gristmill.contract import FileNote, Summary
from gristmill.history.versions import NEW
from gristmill.layout import HISTORY
from gristmill.provenance import Input, Record
from gristmill.publish import storage
from gristmill.publish.build import Attempt, Build
from gristmill.run.parts import run_parts
from gristmill.settings.fields import NO_EFFECT
from tests.run import tiny_work

PARTS = 3


@dataclass(frozen=True)
class TinyConfig:
    """seed decides the payload; label only the fingerprint; workers neither."""

    seed: int = 1
    label: str = ""
    rows: int = 2
    workers: Annotated[int, NO_EFFECT] = 1


@dataclass(frozen=True)
class TinySummary(Summary):
    rows: int
    computed: int


def build_tiny(attempt: Attempt, config: TinyConfig, prefix: str) -> TinySummary:
    """Write the artifact; `prefix` keeps partitions of a shared folder apart."""
    out = attempt.out
    rows = out / "train" / f"{prefix}steps.npy"
    rows.parent.mkdir(parents=True)
    tasks = [tiny_work.Task(config.seed, index, config.rows) for index in range(PARTS)]
    store = attempt.parts
    computed = sum(store.finished(task.name) is None for task in tasks)
    named = [(task.name, task) for task in tasks]
    finished = run_parts(tiny_work.make, named, store, config.workers, scratch=out)
    total = config.rows * PARTS
    with (
        rows.open("xb", buffering=0) as file,
        attempt.progress.stage("rows", unit="rows", total=total) as stage,
    ):
        file.write(_header(total))
        for _, path, summary in finished:
            file.write(path.read_bytes())
            stage.advance(summary["rows"])
    content = _write_database(out / f"{prefix}metadata.db", config)
    with (out / f"{prefix}trace.jsonl").open("x") as trace:
        trace.writelines(json.dumps({"part": task.index}) + "\n" for task in tasks)
    (out / f"{prefix}place.json").write_text(json.dumps({"place": str(attempt.published)}))
    return TinySummary(
        files={
            f"train/{prefix}steps.npy": FileNote(rows=config.rows * PARTS),
            f"{prefix}metadata.db": FileNote(content_sha256=content),
            f"{prefix}place.json": FileNote(payload=False),
        },
        rows=config.rows * PARTS,
        computed=computed,
    )


def _header(rows: int) -> bytes:
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows},), }}"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117).encode() + b"\n"


def _write_database(path: Path, config: TinyConfig) -> str:
    values = [(index, config.seed * 1000 + index) for index in range(PARTS)]
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("create table runs (run_id integer primary key, score integer)")
        connection.executemany("insert into runs values (?, ?)", values)
    connection.close()
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def tiny_build(
    root: Path,
    artifact: str = "family/tiny",
    *,
    partition: str = "p1",
    shared: bool = False,
    outer: str | None = None,
    inputs: list[Input] | None = None,
    make: Callable[[Attempt], Summary] | None = None,
    config: TinyConfig | None = None,
    space: int = 0,
    asset: str = "test/tiny",
) -> Build:
    """A build of the tiny artifact; `make` takes the place of its builder."""
    used = config or TinyConfig()
    prefix = f"{partition}_" if shared else ""
    return Build(
        root=root,
        artifact=artifact,
        asset=asset,
        partition=partition,
        code_version="1",
        config=used,
        inputs=inputs or [],
        make=make or (lambda attempt: build_tiny(attempt, used, prefix)),
        shared=shared,
        outer=outer,
        space=space,
    )


def raw_input(root: Path, path: str) -> Input:
    """A raw file below the root as an input."""
    stat = (root / path).stat()
    digest = hashlib.sha256((root / path).read_bytes()).hexdigest()
    return Input(
        asset="test/drop",
        partition="p1",
        path=path,
        bytes=stat.st_size,
        sha256=digest,
        mtime_ns=stat.st_mtime_ns,
    )


def raw_file(root: Path, path: str = "drops/raw", data: bytes = b"raw") -> Path:
    """Write a raw file below the root."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def many_inputs(root: Path, count: int = 101) -> list[Input]:
    """So many raw files as inputs: a record has more than 100 in a file of its own."""
    for number in range(count):
        raw_file(root, f"drops/{number}", b"raw %d" % number)
    return [raw_input(root, f"drops/{number}") for number in range(count)]


def made_from(record: Record) -> Input:
    """A published artifact as an input."""
    version, place = record.data_version, record.artifact
    return Input(asset=record.asset, partition=record.partition, data_version=version, path=place)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` with its bytes; empty where there is none."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def payload(folder: Path) -> dict[str, bytes]:
    """The snapshot without records, which carry times."""
    return {
        path: data
        for path, data in snapshot(folder).items()
        if not path.endswith(provenance.RECORD) and not path.startswith(provenance.SHARED_RECORDS)
    }


def _stands(work: Path, path: Path) -> bool:
    """Whether a path in `.gristmill` is, or is in, a version that an artifact's link names."""
    store, *inside = path.relative_to(work).parts
    if store != storage.store_of(work / "x").parent.name or not inside:
        return False
    version = storage.version_of(work.parent / inside[0])
    return version is not None and (path == version.parent or path.is_relative_to(version))


def garbage(root: Path) -> list[str]:
    """What lies below `.gristmill` and is not meant to stay there."""
    kept = (
        *("locks", "stamps", "drops", "inventory", "inventory.lock", "pulled", "unlisted"),
        *("key", "leaks"),
    )
    return [
        str(path.relative_to(root))
        for work in root.rglob(".gristmill")
        for path in work.rglob("*")
        if path.relative_to(work).parts[0] not in kept
        and not path.name.startswith("verdicts.db")
        and path.name not in ("slots", "versions")
        and (HISTORY not in path.relative_to(work).parts or NEW in path.parts)
        and not _stands(work, path)
    ]
