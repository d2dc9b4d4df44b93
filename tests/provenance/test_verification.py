"""Every way in which an artifact can differ from its record is found and named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gristmill import families, provenance
from gristmill.contract import GristmillError, Violation
from gristmill.provenance import Input, verification
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.run.progress import silent
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import TinyConfig, raw_input, tiny_build


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Raw files, a single artifact of them, one made from it, a shared folder, a nested one."""
    drops = tmp_path / "drops"
    drops.mkdir()
    for number in range(120):
        (drops / f"{number}").write_bytes(b"raw %d" % number)
    raw = [raw_input(tmp_path, f"drops/{number}") for number in range(120)]
    upstream = publish(tiny_build(tmp_path, inputs=raw[:3])).record
    made_from = Input(
        asset="test/tiny", partition="p1", data_version=upstream.data_version, path=OUTER
    )
    publish(tiny_build(tmp_path, NESTED, outer=OUTER, inputs=[made_from]))
    for partition in ("p0", "p1"):
        inputs = [made_from] if partition == "p0" else raw
        publish(
            tiny_build(tmp_path, "megatron/kd", partition=partition, shared=True, inputs=inputs)
        )
    return tmp_path


def _found(root: Path, where: str = "", **options: object) -> list[tuple[str, str]]:
    findings = provenance.verify(root / where, **options)  # type: ignore[arg-type]
    return [(os.path.relpath(finding.path, root), finding.rule) for finding in findings]


def test_all_is_well(root: Path) -> None:
    assert provenance.verify(root) == []
    for artifact in (OUTER, NESTED, "megatron/kd", "megatron"):
        assert provenance.verify(root / artifact) == []


def _flip(path: Path, keep_time: bool = False) -> None:
    before, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    if keep_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(path: Path, old: bytes, new: bytes, size: int) -> None:
    """Put `new` for the first `old`, and keep the length: `size` bytes after `old` make room."""
    data = path.read_bytes()
    place = data.index(old) + len(old)
    kept = data[place : place + size - (len(new) - len(old))]
    path.write_bytes(data[: place - len(old)] + new + kept + data[place + size :])


def _edit(path: Path, change: Callable[[dict[str, object]], object], seal: bool = False) -> None:
    record = json.loads(path.read_bytes())
    change(record)
    path.write_text(json.dumps(record))
    if seal:
        path.write_bytes(provenance.read_record(path).sealed().to_bytes())


RECORD = f"{OUTER}/provenance.json"

DAMAGES: dict[str, tuple[Callable[[Path], object], list[tuple[str, str]]]] = {
    "changed byte, time restored": (
        lambda root: _flip(root / OUTER / "train/steps.npy", keep_time=True),
        [(f"{OUTER}/train/steps.npy", "output")],
    ),
    "cut short": (
        lambda root: os.truncate(root / OUTER / "trace.jsonl", 3),
        [(f"{OUTER}/trace.jsonl", "output")],
    ),
    "missing": (
        lambda root: (root / "megatron/kd/p0_metadata.db").unlink(),
        [("megatron/kd/p0_metadata.db", "output")],
    ),
    "unlisted": (
        lambda root: (root / OUTER / "train/extra").write_bytes(b""),
        [(f"{OUTER}/train/extra", "unlisted")],
    ),
    "unlisted beside shared partitions": (
        lambda root: (root / "megatron/kd/train/p2_steps.npy").write_bytes(b""),
        [("megatron/kd/train/p2_steps.npy", "unlisted")],
    ),
    "unlisted inputs": (
        lambda root: (root / OUTER / "inputs.jsonl").write_bytes(b""),
        [(f"{OUTER}/inputs.jsonl", "unlisted")],
    ),
    "unlisted link to a folder": (
        lambda root: (root / OUTER / "link").symlink_to("train"),
        [(f"{OUTER}/link", "unlisted")],
    ),
    "record changed": (
        lambda root: _edit(root / RECORD, lambda record: record.update(code_version="2")),
        [(RECORD, "record digest")],
    ),
    "data version changed and sealed again": (
        lambda root: _edit(
            root / "megatron/kd/provenance/p1.json",
            lambda record: record.update(data_version="0" * 64),
            seal=True,
        ),
        [("megatron/kd/provenance/p1.json", "data version")],
    ),
    "record is no record": (
        lambda root: (root / "megatron/kd/provenance/p1.json").write_bytes(b"{"),
        [("megatron/kd/provenance/p1.json", "record")],
    ),
    "upstream record is no record": (
        lambda root: (root / RECORD).write_bytes(b"{"),
        [(OUTER, "input"), (OUTER, "input"), (RECORD, "record")],
    ),
    "inputs list changed": (
        lambda root: _flip(root / "megatron/kd/provenance/p1.inputs.jsonl"),
        [("megatron/kd/provenance/p1.inputs.jsonl", "inputs list")],
    ),
    "inputs list names other bytes": (
        lambda root: _replace(
            root / "megatron/kd/provenance/p1.inputs.jsonl", b'"sha256":"', b'"sha256":"0', 64
        ),
        [("megatron/kd/provenance/p1.inputs.jsonl", "inputs list")],
    ),
    "inputs list gone": (
        lambda root: (root / "megatron/kd/provenance/p1.inputs.jsonl").unlink(),
        [("megatron/kd/provenance/p1.inputs.jsonl", "inputs list")],
    ),
    "raw input changed": (
        lambda root: _flip(root / "drops/100"),
        [("drops/100", "input")],
    ),
    "raw input gone": (
        lambda root: (root / "drops/1").unlink(),
        [("drops/1", "input"), ("drops/1", "input")],
    ),
    "upstream artifact built again": (
        lambda root: publish(
            tiny_build(root, partition="p1", config=TinyConfig(seed=2)),
        ),
        [(OUTER, "input")],
    ),
    "upstream artifact gone": (
        lambda root: shutil.rmtree(root / OUTER),
        [(OUTER, "input")],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_found_and_named(root: Path, damage: str) -> None:
    inflict, expected = DAMAGES[damage]
    inflict(root)
    assert sorted(_found(root)) == sorted(expected)


def test_findings_say_what_was_found(root: Path) -> None:
    os.truncate(root / OUTER / "trace.jsonl", 3)
    _flip(root / OUTER / "train/steps.npy")
    (root / OUTER / "metadata.db").unlink()
    texts = [str(finding) for finding in provenance.verify(root / OUTER, check_inputs=False)]
    assert any(text.endswith("trace.jsonl: output: 3 bytes, recorded 39") for text in texts)
    assert any("metadata.db: output: cannot be read: No such file" in text for text in texts)
    assert any("steps.npy: output: sha256 " in text and ", recorded " in text for text in texts)


def test_inputs_can_be_left_out(root: Path) -> None:
    shutil.rmtree(root / "drops")
    assert len(_found(root)) == 123
    assert _found(root, check_inputs=False) == []


def test_a_folder_that_was_moved_needs_its_root_named(root: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(root / OUTER, moved)
    shutil.rmtree(moved / "runtime")
    assert _found(root, "elsewhere") == [("elsewhere/provenance.json", "inputs")]
    assert provenance.verify(moved, data_root=root) == []
    assert provenance.verify(moved, check_inputs=False) == []


def test_inputs_deleted_on_purpose_are_not_missed(root: Path) -> None:
    (root / "drops/2").unlink()
    _edit(root / RECORD, lambda record: record.update(deleted_inputs=["drops/2"]), seal=True)
    assert _found(root, OUTER) == []


def test_what_is_not_published_is_ignored(root: Path) -> None:
    work = root / "wing/.gristmill/slots/tiny/staging"
    shutil.copytree(root / OUTER, work)
    (work / "trace.jsonl").unlink()
    assert provenance.verify(root) == []


def test_no_artifact_at_all(tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match="no artifact with a provenance record is here"):
        provenance.verify(tmp_path)
    with pytest.raises(GristmillError, match="no artifact with a provenance record is here"):
        provenance.verify(tmp_path / "none")


def test_a_broken_law_is_a_finding(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Path]] = []

    def check(asset: str, subject: families.Subject) -> Iterator[Violation]:
        asked.append((asset, subject.folder))
        if subject.folder == root / OUTER:
            yield Violation("rows are sorted", "train/steps.npy", "row 3 is not")

    monkeypatch.setattr(families, "check", check)
    assert _found(root) == [(f"{OUTER}: train/steps.npy", "rows are sorted")]
    assert len(asked) == 4
    assert _found(root, check_laws=False) == []
    asked.clear()
    (root / OUTER / "metadata.db").unlink()
    assert _found(root, OUTER) == [(f"{OUTER}/metadata.db", "output")]
    assert (root / OUTER) not in [folder for _, folder in asked]


def test_a_survey_of_some_partitions_takes_the_others_as_they_are(root: Path) -> None:
    shared = root / "megatron/kd"
    assert verification.survey(shared, "test/tiny", {"p0"}) == (1, [])
    assert verification.survey(root, "test/tiny") == (4, [])
    assert verification.survey(root, "test/other") == (0, [])
    (shared / "p1_trace.jsonl").unlink()
    assert verification.survey(shared, "test/tiny", {"p0"}) == (1, [])
    count, findings = verification.survey(shared, "test/tiny", {"p1"})
    assert (count, [finding.rule for finding in findings]) == (1, ["output"])
    (shared / "stray").write_bytes(b"")
    _, findings = verification.survey(shared, "test/tiny", {"p0"})
    assert [(finding.path, finding.rule) for finding in findings] == [
        (str(shared / "stray"), "unlisted")
    ]


def test_progress_reaches_its_total(root: Path) -> None:
    progress = silent()
    assert provenance.verify(root, progress=progress) == []
    listed = [
        path
        for path in root.rglob("*")
        if path.is_file()
        and ".gristmill" not in path.parts
        and not (path.suffix == ".json" and path.parent.name == "provenance")
        and path.name != "provenance.json"
    ]
    total = sum(path.stat().st_size for path in listed)
    assert (progress.done, progress.total) == (total, total)  # type: ignore[attr-defined]
    assert total > 1000


class _Meanwhile:
    """Progress that lets something happen when the first hash is asked for, `times` times."""

    def __init__(self, happen: Callable[[], object], times: int = 1) -> None:
        self._happen, self._left = happen, times
        self._asked = False

    def expect(self, amount: int) -> None:
        # A look asks for all its hashes before it takes the first.
        if self._left and not self._asked:
            self._asked = True
            self._left -= 1
            self._happen()

    def advance(self, amount: int) -> None:
        self._asked = False

    def __enter__(self) -> _Meanwhile:
        return self

    def __exit__(self, *_: object) -> None: ...


def _rebuild(root: Path, seed: int) -> None:
    publish(tiny_build(root, OUTER, config=TinyConfig(seed=seed, rows=seed)))


def test_what_is_replaced_meanwhile_is_judged_as_it_stands_then(root: Path) -> None:
    rebuild = _Meanwhile(lambda: _rebuild(root, 5))
    assert provenance.verify(root / OUTER, progress=rebuild) == []
    # What was made from the version now replaced is found wanting, and nothing else.
    rebuild = _Meanwhile(lambda: _rebuild(root, 6))
    assert [finding.rule for finding in provenance.verify(root, progress=rebuild)] == ["input"]


def test_a_replaced_artifact_that_is_damaged_is_still_found(root: Path) -> None:
    def rebuild_and_break() -> None:
        _rebuild(root, 5)
        _flip(root / OUTER / "train/steps.npy")

    found = provenance.verify(root / OUTER, progress=_Meanwhile(rebuild_and_break))
    assert [(finding.path, finding.rule) for finding in found] == [
        (str(root / OUTER / "train/steps.npy"), "output")
    ]


def test_a_partition_that_joins_its_folder_meanwhile_is_no_stranger(root: Path) -> None:
    joined = _Meanwhile(lambda: publish(_shared(root, "p2")))
    assert provenance.verify(root / "megatron", progress=joined) == []
    changed = _Meanwhile(lambda: publish(_shared(root, "p1", seed=9)))
    assert provenance.verify(root / "megatron", progress=changed) == []


def _shared(root: Path, partition: str, seed: int = 1) -> Build:
    config = TinyConfig(seed=seed, rows=seed)
    return tiny_build(root, "megatron/kd", partition=partition, shared=True, config=config)


def test_what_is_taken_away_meanwhile_has_no_findings(root: Path) -> None:
    away = root / ".gristmill" / "deleted"
    away.parent.mkdir(exist_ok=True)

    def take() -> None:
        (root / "megatron").rename(away)

    assert provenance.verify(root, progress=_Meanwhile(take)) == []
    with pytest.raises(GristmillError, match="no artifact with a provenance record is here"):
        provenance.verify(
            root / OUTER, progress=_Meanwhile(lambda: (root / "wing").rename(root / ".gristmill/w"))
        )


def test_an_artifact_that_never_rests_is_said_to_be_replaced(root: Path) -> None:
    seeds = iter(range(2, 99))
    restless = _Meanwhile(lambda: _rebuild(root, next(seeds)), times=99)
    (found,) = provenance.verify(root / OUTER, progress=restless)
    assert (found.path, found.rule) == (str(root / OUTER), "replaced")
