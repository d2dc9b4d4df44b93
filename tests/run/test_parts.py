"""Parts: finished ones are adopted, broken and foreign ones are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput, Summary
from gristmill.publish.build import Attempt
from gristmill.publish.publish import publish
from gristmill.publish.slot import Slot
from gristmill.run.parts import PartStore
from tests.publish.killing import Kill, Killer
from tests.publish.tiny import TinyConfig, build_tiny, garbage, payload, raw_input, tiny_build


class PowerLoss(BaseException):
    """Stops a build as a kill would, but leaves the test alive."""


def _stopped_after_parts(root: Path, config: TinyConfig, **options: object) -> Path:
    """Build until all parts are finished, fail then, and return the folder of parts."""

    def make(attempt: Attempt) -> Summary:
        build_tiny(attempt, config, "")
        raise PowerLoss

    build = tiny_build(root, config=config, make=make, **options)  # type: ignore[arg-type]
    with pytest.raises(PowerLoss):
        publish(build)
    return Slot.of(build).work / "parts" / build.parts_key


def _computed(root: Path, config: TinyConfig, **options: object) -> float:
    published = publish(tiny_build(root, config=config, **options))  # type: ignore[arg-type]
    assert garbage(root) == []
    return published.record.counts["computed"]


def test_finished_parts_are_adopted_and_the_bytes_are_the_same(tmp_path: Path) -> None:
    plain, resumed = tmp_path / "plain", tmp_path / "resumed"
    assert _computed(plain, TinyConfig()) == 3
    parts = _stopped_after_parts(resumed, TinyConfig())
    assert sorted(path.name for path in parts.glob("*.part")) == [
        f"rows-{index}.part" for index in range(3)
    ]
    assert _computed(resumed, TinyConfig(workers=2)) == 0
    place = {"place.json": b""}
    assert payload(plain / "wing/tiny") | place == payload(resumed / "wing/tiny") | place


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts: (parts / "rows-1.part").write_bytes(b"x" * 16),
        lambda parts: os.truncate(parts / "rows-1.part", 8),
        lambda parts: (parts / "rows-1.part").unlink(),
        lambda parts: (parts / "rows-1.json").unlink(),
        lambda parts: (parts / "rows-1.json").write_bytes(b'{"sha256": "'),
        lambda parts: (parts / "rows-1.json").write_bytes(b"[]"),
    ],
)
def test_a_spoiled_part_is_made_again(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(_stopped_after_parts(tmp_path, TinyConfig()))
    assert _computed(tmp_path, TinyConfig()) == 1


def test_half_written_parts_are_swept_before_their_path_is_given_again(tmp_path: Path) -> None:
    parts = _stopped_after_parts(tmp_path, TinyConfig())
    (parts / "rows-1.json").unlink()
    (parts / "rows-1.writing").write_bytes(b"half")
    (parts / "rows-1.writing-journal").write_bytes(b"hot")
    # tiny_work opens its path with "x": anything left there would fail the build.
    assert _computed(tmp_path, TinyConfig()) == 1


def test_parts_of_another_fingerprint_are_swept(tmp_path: Path) -> None:
    parts = _stopped_after_parts(tmp_path, TinyConfig(seed=1))
    assert _computed(tmp_path, TinyConfig(seed=2)) == 3
    assert not parts.exists()


def test_parts_made_while_a_raw_file_was_replaced_and_put_back_are_not_adopted(
    tmp_path: Path,
) -> None:
    raw = tmp_path / "drops/a.txt"
    raw.parent.mkdir()
    raw.write_bytes(b"raw")
    before = raw_input(tmp_path, "drops/a.txt")
    _stopped_after_parts(tmp_path, TinyConfig(), inputs=[before])
    os.utime(raw, ns=(0, 12345))
    after = raw_input(tmp_path, "drops/a.txt")
    assert replace_time(before) == replace_time(after)
    assert _computed(tmp_path, TinyConfig(), inputs=[after]) == 3


def replace_time(item: object) -> object:
    return item.model_copy(update={"mtime_ns": 0})  # type: ignore[attr-defined]


def test_a_build_without_parts_leaves_nothing_when_it_fails(tmp_path: Path) -> None:
    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "half").write_bytes(b"half")
        raise BadInput("drops/a.txt", "is not what it should be", row=3)

    with pytest.raises(BadInput, match=r"drops/a.txt:3: is not what it should be"):
        publish(tiny_build(tmp_path, make=make))
    assert garbage(tmp_path) == []


def test_a_failing_writer_leaves_no_finished_part(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    with pytest.raises(ZeroDivisionError), store.writing("a") as (path, summary):
        path.write_bytes(b"half")
        summary["rows"] = 1 // 0
    assert store.finished("a") is None
    store.sweep()
    assert list(tmp_path.iterdir()) == []


def test_a_part_keeps_its_summary(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    with store.writing("a") as (path, summary):
        path.write_bytes(b"data")
        summary["rows"] = 7
    assert store.finished("a") == {"rows": 7}
    assert store.data("a").read_bytes() == b"data"
    assert store.finished("b") is None


def test_a_build_killed_between_parts_goes_on_with_them(killer: Killer) -> None:
    """The kill comes when the main process writes the database: all parts are finished."""
    kill = Kill("fresh", "main create wing/.gristmill/slots/tiny/staging/metadata.db")
    assert killer.recomputed(kill, workers=2) == 0
    kill = replace(kill, place="worker rename wing/.gristmill/slots/tiny/parts/#/rows-2.part")
    assert killer.recomputed(kill, workers=2) in (1, 2)
