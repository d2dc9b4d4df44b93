"""Raw months: fetched or taken from a drop, checked and recorded."""

import hashlib
import json
import stat
from pathlib import Path

import pytest

from gristmill.chess import (
    ArchiveConfig,
    DownloadError,
    fetch_month,
    take_drop,
)
from gristmill.chess.laws.archive import archive_laws
from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.run.progress import Progress, Report
from tests.chess.raw.archives import GAME, MONTH, nap, ranged, zipped


def test_a_month_is_fetched_checked_and_recorded(serve, pgn: bytes, tmp_path: Path) -> None:
    data = zipped(("lichess_elite_2024-01.pgn", pgn), ("readme.txt", b"hello"))
    server = serve(lambda s, h: ranged(h, data, None))
    summary = fetch_month(MONTH, tmp_path / "out", server.config)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn
    record = json.loads((tmp_path / "out" / "source.json").read_text())
    assert record["archive"] == {
        "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()
    }  # fmt: skip
    assert record["http"]["etag"] == '"v1"'
    assert summary.pgn_sha256 == hashlib.sha256(pgn).hexdigest()
    note = summary.files["lichess_elite_2024-01.pgn"]  # the publisher does not read it again
    assert (note.sha256, note.bytes) == (summary.pgn_sha256, len(pgn))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "lichess_elite_2024-01.pgn", "source.json"
    ]  # fmt: skip
    assert list(archive_laws(Subject(tmp_path / "out"))) == []
    (tmp_path / "out" / "lichess_elite_2024-01.pgn").write_bytes(pgn[:-1])
    assert [v.law for v in archive_laws(Subject(tmp_path / "out"))] == ["pgn_as_recorded"]


def test_only_http_is_fetched(tmp_path: Path) -> None:
    config = ArchiveConfig(url_template=f"file://{tmp_path}/{{month}}.zip")
    with pytest.raises(DownloadError, match="only http"):
        fetch_month(MONTH, tmp_path / "out", config)
    for month in ("2024-13", "2020-05", "24-01", "2024-01/../x"):
        with pytest.raises(BadInput, match="not a month"):
            fetch_month(month, tmp_path / "out2")


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (zipped(("../evil.pgn", GAME)), "outside"),
        (zipped(("/evil.pgn", GAME)), "outside"),
        (zipped(("a.pgn", GAME), ("..\\b.txt", b"")), "outside"),
        (zipped(("C:/b.pgn", GAME)), "outside"),
        (zipped(("a.pgn", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "symbolic link"),
        (zipped(("a.pgn", GAME), ("b/c.PGN", GAME)), "2 PGN files"),
        (zipped(("", GAME)), "0 PGN files but ''"),
        (zipped(*((f"{i}.txt", b"") for i in range(1001))), "members"),
        (zipped(("a.pgn", b"1. e4 e5 " * 4_000_000)), "bomb"),
        (zipped(("a.pgn", b"\0\1\2")), "does not hold PGN"),
        (
            zipped(("a.pgn", GAME * 9)).replace(b"\x50\x4b\x05\x06", b"\x50\x4b\x05\x07"),
            "broken ZIP",
        ),
        (b"PK\x03\x04 and then nothing", "broken ZIP"),
        (b"", "not a ZIP"),
    ],
)
def test_archives_that_are_refused(tmp_path: Path, data: bytes, rule: str) -> None:
    drop = tmp_path / "month.zip"
    drop.write_bytes(data)
    with pytest.raises(BadInput, match=rule):
        take_drop(drop, tmp_path / "out", MONTH)
    assert not (tmp_path / "evil.pgn").exists()


def test_drops_of_every_kind(tmp_path: Path, pgn: bytes) -> None:
    import zstandard

    packer = zstandard.ZstdCompressor(write_checksum=True)
    kinds = {
        "a.zip": zipped(("in/side.pgn", pgn)),
        "b.pgn": pgn,
        # Two frames, as a parallel packer writes them.
        "c.pgn.zst": packer.compress(pgn[:5000]) + packer.compress(pgn[5000:]),
    }
    for name, data in kinds.items():
        (tmp_path / name).write_bytes(data)
        out = tmp_path / f"{name}.out"
        summary = take_drop(tmp_path / name, out, MONTH)
        assert (out / "lichess_elite_2024-01.pgn").read_bytes() == pgn
        assert (summary.origin, summary.archive_bytes) == (name, len(data))
        assert list(archive_laws(Subject(out))) == []
    for data, rule in (
        (kinds["c.pgn.zst"][:-9], "middle of a zstd frame"),
        (b"PK\x03\x04", "not zstd"),
        (kinds["c.pgn.zst"][:200] + b"\xff" * 300 + kinds["c.pgn.zst"][500:], "broken zstd"),
        (packer.compress(GAME * 2_000_000), "unpacks to more than"),
    ):
        (tmp_path / "bad.pgn.zst").write_bytes(data)
        with pytest.raises(BadInput, match=rule):
            take_drop(tmp_path / "bad.pgn.zst", tmp_path / f"bad{rule[:6]}", MONTH)
    with pytest.raises(BadInput, match="packed in a form that is not read"):
        take_drop(tmp_path / "x.7z", tmp_path / "no", MONTH)


def test_a_download_reports_its_bytes_also_where_it_goes_on(
    serve, pgn: bytes, tmp_path: Path
) -> None:
    data = zipped(("x.pgn", pgn))
    cuts = [len(data) // 3, None]
    server = serve(lambda s, h: ranged(h, data, cuts.pop(0)))
    reports: list[Report] = []
    progress = Progress(reports.append, 0.0)
    fetch_month(MONTH, tmp_path / "a", server.config, sleep=nap([]), progress=progress)
    download = [r for r in reports if r.stage == "download" and r.moment == "stage"]
    done = [report.done for report in download]
    assert done == sorted(done)
    assert len(data) // 3 in done
    assert download[-1] == Report("download", len(data), len(data), "bytes")
    assert reports[-1] == Report("unpack", len(pgn), len(pgn), "bytes")


@pytest.mark.parametrize("ending", ["pgn", "zip"])
def test_a_drop_reports_the_bytes_of_its_pgn(pgn: bytes, tmp_path: Path, ending: str) -> None:
    drop = tmp_path / f"x.{ending}"
    drop.write_bytes(pgn if ending == "pgn" else zipped(("x.pgn", pgn)))
    reports: list[Report] = []
    take_drop(drop, tmp_path / "out", MONTH, progress=Progress(reports.append, 0.0))
    assert reports[0] == Report("unpack", 0, len(pgn), "bytes")
    assert reports[-1] == Report("unpack", len(pgn), len(pgn), "bytes")
