"""Raw files become parts, and parts a shard: any workers, caps, kills and bad rows."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.publish.build import Attempt, Build, Slot
from gristmill.publish.publish import publish
from gristmill.run.parts import PartStore
from gristmill.run.progress import Progress, Report
from gristmill.run.workers import WorkerDied
from gristmill.synth.builders import harmony, harmony_part
from gristmill.synth.builders.harmony import HarmonySummary, to_harmony
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.row_digest import RowsDigest
from gristmill.synth.raw import files as raw
from gristmill.synth.samples import write_drop
from tests.dealing import SLOW_AND_DEALT
from tests.paths import CHECKOUT
from tests.publish.killing import wait_for_end
from tests.synth.builders.test_harmony import expected

pytestmark = pytest.mark.sampled(0.25)

ROWS = [60, 60, 0, 60, 60, 300, 60, 60]
"""Rows of the raw files; those of one file are skipped but for the last, and one lacks columns."""


@pytest.fixture(scope="module")
def drop(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    paths = write_drop(tmp_path_factory.mktemp("drop"), files=len(ROWS))
    for number, path in enumerate(paths):
        table = pq.read_table(path)
        if number == 3:
            at = table.schema.get_field_index("synthetic_answer")
            table = table.set_column(
                at, "synthetic_answer", pa.array([""] * (len(table) - 1) + ["a"])
            )
        if number == 6:
            table = table.drop_columns(["model"])
        times = -(-ROWS[number] // 60)
        table = pa.concat_tables([table] * times) if times else table.slice(0, 0)
        pq.write_table(table, path, row_group_size=77)
    return paths


def _config(**values: object) -> HarmonyConfig:
    return HarmonyConfig(num_shards=1, **values)  # type: ignore[arg-type]


def _shard(out: Path) -> bytes:
    return (out / "synth_harmony_shard_00.parquet").read_bytes()


def _of_one_writer(paths: list[Path], out: Path, group: int, most: int) -> tuple[bytes, str]:
    """The shard as one writer of all rows makes it, and the digest of the rows."""
    rows, taken = [], 0
    for number, path in enumerate(paths):
        table = pq.read_table(path)
        table = table.slice(0, max(0, most - taken)) if most >= 0 else table
        taken += len(table)
        pq.write_table(table, out)
        fields = [name for name in HarmonyConfig().metadata_fields if name in table.schema.names]
        made = expected([out], HarmonyConfig(metadata_fields=tuple(fields)))
        rows += [dict.fromkeys(HarmonyConfig().metadata_fields) | each for each in made]
        assert number != 3 or len(made) <= 1
    schema = harmony_part.schema_of(HarmonyConfig())
    whole = pa.Table.from_pylist(rows, schema=schema)
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for first in range(0, len(whole), group):
            writer.write_table(whole.slice(first, group).combine_chunks(), row_group_size=group)
    digest = RowsDigest()
    for batch in whole.to_batches():
        digest.update(batch)
    return out.read_bytes(), digest.hexdigest()


@pytest.mark.parametrize(
    ("group", "most"),
    [(1, -1), (7, -1), (55, -1), (100, -1), (5000, -1), (7, 119), (7, 120), (50, 250), (7, 9999)],
)
def test_a_shard_has_the_bytes_that_one_writer_would_write(
    drop: list[Path], tmp_path: Path, group: int, most: int
) -> None:
    file, digest = _of_one_writer(drop, tmp_path / "whole", group, most)
    summary = to_harmony(
        drop, tmp_path / "out", 0, _config(rows_per_group=group, max_rows=most, workers=0)
    )
    assert _shard(tmp_path / "out") == file
    (note,) = summary.files.values()
    rows = pq.ParquetFile(tmp_path / "whole").metadata.num_rows
    assert (note.rows, summary.rows, summary.row_groups) == (rows, rows, -(-rows // group))
    assert (note.content_sha256, note.bytes) == (digest, len(file))
    assert note.sha256 == hashlib.sha256(file).hexdigest()
    assert summary.rows + summary.skipped == (min(most, sum(ROWS)) if most >= 0 else sum(ROWS))


@pytest.mark.parametrize(("group", "most"), [(7, -1), pytest.param(100, 250, marks=SLOW_AND_DEALT)])
def test_the_bytes_do_not_depend_on_workers(
    drop: list[Path], tmp_path: Path, group: int, most: int
) -> None:
    built = {}
    for workers in (0, 1, 2, 3):
        config = _config(rows_per_group=group, max_rows=most, workers=workers)
        summary = to_harmony(drop, tmp_path / str(workers), 0, config)
        built[workers] = (summary, _shard(tmp_path / str(workers)))
        assert len(list((tmp_path / str(workers)).iterdir())) == 1
    assert [built[workers] == built[1] for workers in built] == [True] * 4


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_cap_of_no_rows_reads_the_first_file_that_has_some(tmp_path: Path, workers: int) -> None:
    paths = write_drop(tmp_path / "drop", files=3, rows=4)
    pq.write_table(pq.read_table(paths[0]).slice(0, 0), paths[0])
    pq.write_table(pa.table({"query": ["q"]}), paths[2])
    config = _config(max_rows=0, workers=workers)
    assert to_harmony(paths, tmp_path / "out", 0, config).rows == 0
    assert list((tmp_path / "out").iterdir()) == []
    # The third file lacks columns, which nobody sees while the cap ends before it.
    four = to_harmony(paths, tmp_path / "four", 0, replace(config, max_rows=4))
    assert four.rows + four.skipped == 4
    pq.write_table(pa.table({"query": ["q"]}), paths[1])
    with pytest.raises(BadInput, match=r"synth_002\.parquet: has no column synthetic_reasoning"):
        to_harmony(paths, tmp_path / "bad", 0, config)


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_row_beyond_the_cap_is_not_converted(tmp_path: Path, workers: int) -> None:
    paths = write_drop(tmp_path / "drop", files=2, rows=4)
    names = (*raw.TEXTS, "synth_id")
    broken = pa.array([b"a", b"b", b"c", b"\xff"]).cast(pa.string(), safe=False)
    pq.write_table(pa.table(dict.fromkeys(names, broken)), paths[1])
    for most, fits in ((4, True), (8, False)):
        config = _config(max_rows=most, workers=workers)
        if fits:
            to_harmony(paths, tmp_path / "out", 0, config)
            continue
        with pytest.raises(BadInput, match=r"synth_002\.parquet:4: .* is not UTF-8"):
            to_harmony(paths, tmp_path / "bad", 0, config)


def _not_utf8(path: Path, row: int) -> None:
    table = pq.read_table(path)
    values = [value.encode() if value else b"" for value in table["synth_id"].to_pylist()]
    values[row] = b"\xff"
    at = table.schema.get_field_index("synth_id")
    column = pa.array(values).cast(pa.string(), safe=False)
    pq.write_table(table.set_column(at, "synth_id", column), path)


def _damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:400] = bytes(300)
    path.write_bytes(data)


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_bad_row_in_file_order_is_named(tmp_path: Path, workers: int) -> None:
    paths = write_drop(tmp_path / "drop", files=8, rows=20)
    index = next(
        at
        for at, row in enumerate(pq.read_table(paths[4]).to_pylist())
        if all(row[n] for n in raw.TEXTS)
    )
    _not_utf8(paths[4], index)
    _damaged(paths[5])
    _not_utf8(paths[6], 0)
    config = _config(rows_per_group=7, workers=workers)
    with pytest.raises(BadInput) as error:
        to_harmony(paths, tmp_path / "out", 0, config)
    assert (Path(error.value.file).name, error.value.row) == ("synth_005.parquet", index + 1)
    _damaged(paths[1])
    with pytest.raises(BadInput, match=r"synth_002\.parquet.* is damaged|not a readable"):
        to_harmony(paths, tmp_path / "damaged", 0, config)


def _same_rows(path: Path, rows: int, broken: int | None = None) -> Path:
    """A raw file whose rows take about 3,500 bytes as Harmony rows; one may be no UTF-8."""
    texts = [("é" * 100).encode()] * rows
    if broken is not None:
        texts[broken] = b"\xff"
    column = pa.array(texts).cast(pa.string(), safe=False)
    pq.write_table(pa.table(dict.fromkeys((*raw.TEXTS, "synth_id"), column)), path)
    return path


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_row_group_of_several_files_may_take_so_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    paths = [_same_rows(tmp_path / f"synth_{number}.parquet", 10) for number in range(3)]
    config = _config(rows_per_group=25, workers=workers)
    for limit, fits in ((110_000, True), (60_000, False)):
        monkeypatch.setattr(harmony, "_GROUP_BYTES", limit)
        if fits:
            to_harmony(paths, tmp_path / "fits", 0, config)
            continue
        with pytest.raises(BadInput) as error:
            to_harmony(paths, tmp_path / "out", 0, config)
        assert (Path(error.value.file).name, error.value.row) == ("synth_1.parquet", 10)
        assert "20 Harmony rows up to this raw row take more than 60,000" in error.value.rule
        assert "a row group of 25 rows must not" in error.value.rule


@pytest.mark.usefixtures("worker_threads")
@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_the_raw_rows_of_each_file(
    drop: list[Path], tmp_path: Path, workers: int
) -> None:
    reports: list[Report] = []
    config = _config(rows_per_group=9, workers=workers, max_rows=200)
    to_harmony(drop, tmp_path / "out", 0, config, progress=Progress(reports.append, 0.0))
    assert [report.done for report in reports] == [0, 60, 120, 180, 200]
    assert {(report.stage, report.total, report.unit) for report in reports} == {
        ("convert", 200, "rows")
    }


_CHILD = """
import os, signal, sys
from pathlib import Path
from gristmill.provenance import raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.publish.build import Slot
from gristmill.run.parts import PartStore
from gristmill.synth.builders import harmony
from gristmill.synth.config import HarmonyConfig

def main():
    out, parts, stop, workers, *paths = sys.argv[1:]
    add = harmony.Joiner.add
    def add_or_die(self, part, *rest):
        if part.stem == f"file_{int(stop):06d}":
            os.kill(os.getpid(), signal.SIGKILL)
        add(self, part, *rest)
    harmony.Joiner.add = add_or_die
    config = HarmonyConfig(num_shards=1, rows_per_group=7, workers=int(workers))
    harmony.to_harmony(list(map(Path, paths)), Path(out), 0, config, PartStore(Path(parts)))

if __name__ == "__main__":
    main()
"""


@pytest.mark.usefixtures("worker_threads")  # the child that is killed starts processes
@pytest.mark.parametrize(
    ("killed", "resumed"),
    [
        (1, 1),
        pytest.param(1, 2, marks=SLOW_AND_DEALT),
        pytest.param(2, 1, marks=SLOW_AND_DEALT),
        (2, 2),
    ],
)
def test_a_killed_build_continues_from_its_finished_parts(
    drop: list[Path], tmp_path: Path, killed: int, resumed: int
) -> None:
    script, folder = tmp_path / "child.py", tmp_path / "parts"
    script.write_text(_CHILD)
    folder.mkdir()
    arguments = [tmp_path / "killed", folder, 5, killed, *drop]
    child = subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        start_new_session=True,
    )
    assert child.wait() == -signal.SIGKILL
    assert wait_for_end(child.pid) == []
    kept = {path.stem for path in folder.glob("file_*.json")}
    assert {f"file_{number:06d}" for number in range(6)} <= {name[:11] for name in kept}
    assert len(kept) < len(ROWS) or killed > 1
    _resumes(drop, tmp_path, PartStore(folder), kept, resumed)


def _resumes(paths: list[Path], out: Path, store: PartStore, kept: set[str], workers: int) -> None:
    """A build with these finished parts makes the others alone, and the shard of a fresh build."""
    places = {name: store.data(name).stat().st_ino for name in kept}
    reports: list[Report] = []
    progress = Progress(reports.append, 0.0)
    config = _config(rows_per_group=7, workers=workers)
    again = to_harmony(paths, out / "resumed", 0, config, store, progress=progress)
    assert {name: store.data(name).stat().st_ino for name in kept} == places
    assert reports[-1] == Report("convert", sum(ROWS), sum(ROWS), "rows")
    fresh = to_harmony(paths, out / "fresh", 0, config)
    assert (again, _shard(out / "resumed")) == (fresh, _shard(out / "fresh"))


def _dying(task: harmony_part.Task, path: Path) -> dict[str, object]:
    """Ends the process in the middle of the fifth file, once."""
    mark = task.path.parent / "died"
    if task.path.name == "synth_005.parquet" and not mark.exists():
        path.write_bytes(b"half")
        mark.touch()
        os._exit(1)
    return harmony_part.make_part(task, path)


@pytest.mark.slow
def test_a_build_whose_worker_died_continues(
    drop: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    # Workers import the function by its name.
    monkeypatch.setattr("gristmill.synth.builders.harmony.harmony_part.make_part", _dying)
    with pytest.raises(WorkerDied):
        to_harmony(
            drop, tmp_path / "died", 0, _config(rows_per_group=7, workers=2), PartStore(folder)
        )
    monkeypatch.undo()
    (drop[0].parent / "died").unlink()
    kept = {path.stem for path in folder.glob("file_*.json")}
    assert len(kept) >= 2
    _resumes(drop, tmp_path, PartStore(folder), kept, 1)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the raw files that are converted from now on, in this process."""
    names: list[str] = []
    make: Callable[..., dict[str, object]] = harmony_part.make_part

    def counting(task: harmony_part.Task, *rest: object) -> dict[str, object]:
        names.append(task.path.name)
        return make(task, *rest)

    monkeypatch.setattr(harmony_part, "make_part", counting)
    return names


def test_finished_files_are_not_converted_again(
    drop: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, store = _counted(monkeypatch), PartStore(tmp_path / "parts")
    store.folder.mkdir()
    builds: list[HarmonySummary] = []
    for number in range(3):
        names.clear()
        builds.append(to_harmony(drop, tmp_path / str(number), 0, _config(), store))
        assert names == [[path.name for path in drop], [], ["synth_006.parquet"]][number]
        if number == 1:
            (part,) = store.folder.glob("file_000005.part")
            os.truncate(part, 100)
    assert builds[0] == builds[1] == builds[2]
    assert sha256_file(tmp_path / "0/synth_harmony_shard_00.parquet") == sha256_file(
        tmp_path / "2/synth_harmony_shard_00.parquet"
    )


def test_parts_made_before_a_raw_file_was_replaced_are_not_used(tmp_path: Path) -> None:
    files = write_drop(tmp_path / "drops/synth/d", files=3, rows=20)
    config = _config(rows_per_group=7)

    def build(root: Path, fails: bool = False) -> Path:
        def make(attempt: Attempt) -> HarmonySummary:
            made = to_harmony(files, attempt.out, 0, config, attempt.parts)
            if fails:
                raise KeyboardInterrupt
            return made

        described = Build(
            root=root,
            artifact="synth_harmony",
            asset="synth/harmony",
            partition="00",
            code_version="1",
            config=config,
            inputs=raw_inputs(tmp_path, files, "synth/raw", "d", {}),
            make=make,
            shared=True,
        )
        if not fails:
            return publish(described).folder / "synth_harmony_shard_00.parquet"
        with pytest.raises(KeyboardInterrupt):
            publish(described)
        return Slot.of(described).work / "parts" / described.parts_key

    parts = build(tmp_path, fails=True)
    assert len(list(parts.glob("file_*.part"))) == 3
    other = write_drop(tmp_path / "other", files=3, rows=20, seed=2)
    other[1].replace(files[1])
    shard = build(tmp_path)
    assert not parts.exists()
    to_harmony(files, tmp_path / "fresh", 0, config)
    assert shard.read_bytes() == _shard(tmp_path / "fresh")
