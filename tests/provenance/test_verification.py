"""Every difference between an artifact and its record is reported with its path and law."""

import hashlib
import json
import math
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill import families, provenance
from gristmill.cli import main
from gristmill.contract import GristmillError, Violation
from gristmill.families import Catalog, Kind, Law
from gristmill.provenance import find_artifacts, inventory, list_artifacts, verification
from gristmill.provenance.find_artifacts import artifacts_of
from gristmill.provenance.inventory import Entry
from gristmill.publish import remove
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.run.progress import Progress, Report
from tests.publish.scenarios import NESTED, OUTER
from tests.publish.tiny import TinyConfig, made_from, many_inputs, raw_file, raw_input, tiny_build


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Raw files, a single artifact of them, one made from it, a shared folder, a nested one."""
    raw = many_inputs(tmp_path, 120)
    upstream = made_from(publish(tiny_build(tmp_path, inputs=raw[:3])).record)
    publish(tiny_build(tmp_path, NESTED, outer=OUTER, inputs=[upstream]))
    for partition in ("p0", "p1"):
        inputs = [upstream] if partition == "p0" else raw
        publish(
            tiny_build(tmp_path, "megatron/kd", partition=partition, shared=True, inputs=inputs)
        )
    return tmp_path


def _violations(root: Path, where: str = "", **options: object) -> list[tuple[str, str]]:
    violations = provenance.verify(root / where, **options)  # type: ignore[arg-type]
    return [(os.path.relpath(violation.where, root), violation.law) for violation in violations]


def test_published_artifacts_have_no_violations_and_those_that_are_found_name_the_path(root):
    assert provenance.verify(root) == []
    for artifact in (OUTER, NESTED, "megatron/kd", "megatron"):
        assert provenance.verify(root / artifact) == []
    os.truncate(root / OUTER / "trace.jsonl", 3)
    _flip(root / OUTER / "train/steps.npy")
    (root / OUTER / "metadata.db").unlink()
    texts = [str(violation) for violation in provenance.verify(root / OUTER, check_inputs=False)]
    assert any(text.endswith("trace.jsonl: output: 3 bytes, recorded 36") for text in texts)
    assert any("metadata.db: output: cannot be read: No such file" in text for text in texts)
    assert any("steps.npy: output: sha256 " in text and ", recorded " in text for text in texts)


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
    "raw input changed": (lambda root: _flip(root / "drops/100"), [("drops/100", "input")]),
    "raw input gone": (
        lambda root: (root / "drops/1").unlink(),
        [("drops/1", "input"), ("drops/1", "input")],
    ),
    "upstream artifact built again": (
        lambda root: publish(tiny_build(root, partition="p1", config=TinyConfig(seed=2))),
        [(OUTER, "input")],
    ),
    "upstream artifact gone": (
        lambda root: shutil.rmtree(root / OUTER),
        [(NESTED, "missing"), (OUTER, "input"), (OUTER, "missing")],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported_with_its_path_and_law(root, damage):
    inflict, expected = DAMAGES[damage]
    inflict(root)
    assert sorted(_violations(root)) == sorted(expected)


def test_a_folder_that_was_moved_needs_its_root_named(root, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(root / OUTER, moved)
    shutil.rmtree(moved / "runtime")
    assert _violations(root, "elsewhere") == [("elsewhere/provenance.json", "inputs")]
    assert provenance.verify(moved, data_root=root) == []
    assert provenance.verify(moved, check_inputs=False) == []


def test_an_artifact_behind_a_link_is_found_and_verified(root, tmp_path):
    """Its folder was moved to another disk; links to anything else are not followed."""
    folders = {item.folder for item in find_artifacts.artifacts(root)}
    folder = sorted(folders, key=lambda path: len(path.parts))[0]
    count = find_artifacts.count(root)
    disk = tmp_path.parent / f"{tmp_path.name}-disk"
    folder.rename(disk)
    folder.symlink_to(disk)
    (root / "around").symlink_to(root)
    (root / "nowhere").symlink_to("gone")
    assert find_artifacts.count(root) == count
    assert folder in {item.folder for item in find_artifacts.artifacts(root)}
    assert _violations(root) == []
    _flip(sorted(disk.glob("**/*steps.npy"))[0])
    assert "output" in {law for _, law in _violations(root)}


def test_inputs_deleted_on_purpose_are_not_missed(root):
    (root / "drops/2").unlink()
    _edit(root / RECORD, lambda record: record.update(deleted_inputs=["drops/2"]), seal=True)
    assert _violations(root, OUTER) == []


def test_links_in_the_place_of_outputs_are_found_and_unfinished_builds_not_checked(root):
    work = root / "family/.gristmill/slots/tiny/staging"
    shutil.copytree(root / OUTER, work)
    (work / "trace.jsonl").unlink()
    assert provenance.verify(root) == []
    data = root / OUTER / "trace.jsonl"
    (root / "copy").write_bytes(data.read_bytes())
    data.unlink()
    data.symlink_to(root / "copy")
    assert (f"{OUTER}/trace.jsonl", "output") in _violations(root)


def test_a_folder_without_any_artifact_is_an_error(tmp_path):
    with pytest.raises(GristmillError, match="no artifact with a provenance record is here"):
        provenance.verify(tmp_path)
    with pytest.raises(GristmillError, match="no artifact with a provenance record is here"):
        provenance.verify(tmp_path / "none")


def test_a_broken_law_is_a_violation_of_the_folder(root, monkeypatch):
    asked: list[tuple[str, Path]] = []

    def check(asset: str, subject: families.Subject) -> Iterator[Violation]:
        asked.append((asset, subject.folder))
        if subject.folder == root / OUTER:
            yield Violation("rows are sorted", "train/steps.npy", "row 3 is not")

    monkeypatch.setattr(families, "check", check)
    assert _violations(root) == [(f"{OUTER}: train/steps.npy", "rows are sorted")]
    assert len(asked) == 4
    assert _violations(root, check_laws=False) == []
    asked.clear()
    (root / OUTER / "metadata.db").unlink()
    assert _violations(root, OUTER) == [(f"{OUTER}/metadata.db", "output")]
    assert (root / OUTER) not in [folder for _, folder in asked]


def _survey(folder: Path, partitions: set[str] | None = None, **options: bool) -> list[str]:
    items = artifacts_of(folder, "test/tiny", partitions)
    return [
        f"{finding.item.partition if finding.item else '-'}: {finding.violation.law}"
        for finding in verification.survey(items, **options)
    ]


def test_a_survey_of_some_partitions_does_not_check_the_others(root):
    shared = root / "megatron/kd"
    assert _survey(shared, {"p0"}) == []
    assert len(artifacts_of(root, "test/tiny")) == 4
    assert _survey(root) == []
    assert verification.survey([]) == []
    (shared / "p1_trace.jsonl").unlink()
    assert _survey(shared, {"p0"}) == []
    assert _survey(shared, {"p1"}) == ["p1: output"]
    assert _survey(shared) == ["p1: output"]
    (shared / "stray").write_bytes(b"")
    assert _survey(shared, {"p0"}) == ["-: unlisted"]
    assert _survey(shared, {"p0"}, whole_folders=False) == []
    (root / OUTER / "stray").write_bytes(b"")
    (found,) = verification.survey(artifacts_of(root / OUTER, "test/tiny")[:1], whole_folders=False)
    assert found.item is not None
    assert (found.folder, found.violation.law) == (root / OUTER, "unlisted")


def test_an_artifact_that_is_removed_meanwhile_has_no_findings(root):
    items = artifacts_of(root / "megatron/kd", "test/tiny")
    items[1].record_path.unlink()
    assert [
        finding.violation.law for finding in verification.survey(items, check_bytes=False)
    ] == []


def test_progress_reaches_its_total(root):
    reports: list[Report] = []
    assert provenance.verify(root, progress=Progress(reports.append)) == []
    listed = [
        path
        for path in root.rglob("*")
        if path.is_file()
        and ".gristmill" not in path.parts
        and not (path.suffix == ".json" and path.parent.name == "provenance")
        and path.name != "provenance.json"
    ]
    total = sum(path.stat().st_size for path in listed)
    assert reports[-1] == Report("verify", total, total, "bytes")
    assert total > 1000


def _meanwhile(happen: Callable[[], object], times: int = 1) -> Progress:
    """Progress that lets something happen when a pass asks for its first hash, `times` times."""
    left, asked, known = times, False, 0

    def sink(report: Report) -> None:
        nonlocal left, asked, known
        if report.total == known:
            # A hash continues: what is asked for after it belongs to the next pass.
            asked = False
        elif left and not asked:
            asked = True
            left -= 1
            happen()
        known = report.total or 0

    return Progress(sink, every=0.0)


def _rebuild(root: Path, seed: int) -> None:
    publish(tiny_build(root, OUTER, config=TinyConfig(seed=seed, rows=seed)))


def test_an_artifact_that_is_replaced_meanwhile_is_checked_in_its_new_version(root):
    rebuild = _meanwhile(lambda: _rebuild(root, 5))
    assert provenance.verify(root / OUTER, progress=rebuild) == []
    # Only what was made from the replaced version breaks a law.
    rebuild = _meanwhile(lambda: _rebuild(root, 6))
    assert [violation.law for violation in provenance.verify(root, progress=rebuild)] == ["input"]


def test_damage_of_an_artifact_that_is_replaced_meanwhile_is_reported(root):
    def rebuild_and_break() -> None:
        _rebuild(root, 5)
        _flip(root / OUTER / "train/steps.npy")

    violations = provenance.verify(root / OUTER, progress=_meanwhile(rebuild_and_break))
    assert [(violation.where, violation.law) for violation in violations] == [
        (str(root / OUTER / "train/steps.npy"), "output")
    ]


def test_a_partition_that_joins_its_folder_meanwhile_is_not_unlisted(root):
    joined = _meanwhile(lambda: publish(_shared(root, "p2")))
    assert provenance.verify(root / "megatron", progress=joined) == []
    changed = _meanwhile(lambda: publish(_shared(root, "p1", seed=9)))
    assert provenance.verify(root / "megatron", progress=changed) == []


def _shared(root: Path, partition: str, seed: int = 1) -> Build:
    config = TinyConfig(seed=seed, rows=seed)
    return tiny_build(root, "megatron/kd", partition=partition, shared=True, config=config)


def test_an_artifact_that_is_removed_meanwhile_has_no_violations(root):
    away = root / ".gristmill" / "deleted"

    def take() -> None:
        for partition in ("p0", "p1"):
            inventory.forget(root, Entry("megatron/kd", partition))
        (root / "megatron").rename(away)

    assert provenance.verify(root, progress=_meanwhile(take)) == []
    gone = _meanwhile(lambda: remove.remove_artifact(root / OUTER))
    with pytest.raises(GristmillError, match="no artifact with a provenance record is here"):
        provenance.verify(root / OUTER, progress=gone)


def test_an_artifact_that_is_replaced_in_every_pass_is_reported_as_replaced(root):
    seeds = iter(range(2, 99))
    restless = _meanwhile(lambda: _rebuild(root, next(seeds)), times=99)
    (violation,) = provenance.verify(root / OUTER, progress=restless)
    assert (violation.where, violation.law) == (str(root / OUTER), "replaced")


def _write(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


def _sealed(**changes: object) -> Callable[[Path], object]:
    return lambda path: _edit(path, lambda record: record.update(changes), seal=True)


def _outputs(*paths: str) -> Callable[[Path], object]:
    output = {"bytes": 1, "sha256": "", "mtime_ns": 1}
    return _sealed(outputs=[{"path": path, **output} for path in paths])


MALFORMED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no JSON": (_write(b"{"), "record"),
    "another value": (_write(b"[1]"), "record"),
    "empty": (_write(b""), "record"),
    "not UTF-8": (_write(b'{"schema_version": "\xff"}'), "record"),
    "deep": (_write(b"[" * 100_000), "record"),
    "deep objects": (_write(b'{"a":' * 100_000), "record"),
    "many digits": (_write(b'{"schema_version": ' + b"1" * 10_000 + b"}"), "record"),
    "wrong types": (lambda path: _edit(path, lambda r: r.update(outputs=1)), "record"),
    "not a number": (lambda path: _edit(path, lambda r: r.update(seconds=math.nan)), "record"),
    "half a character": (
        lambda path: _edit(path, lambda r: r.update(config={"a": "\ud800"})),
        "record",
    ),
    "a link": (_replaced(lambda path: path.symlink_to("/dev/zero")), "record"),
    "a pipe": (_replaced(os.mkfifo), "record"),
    "a folder": (_replaced(os.mkdir), "record"),
    "an output elsewhere": (_outputs("../../drops/0"), "record"),
    "an absolute output": (_outputs("/etc/passwd"), "record"),
    "an output twice": (_outputs("trace.jsonl", "./trace.jsonl"), "record"),
    "a null byte": (_outputs("a\0b"), "record"),
    "an absolute artifact": (_sealed(artifact="/etc"), "record"),
    "an input elsewhere": (_sealed(inputs=[{"path": "../x", "bytes": 1}]), "inputs list"),
    "a list of inputs elsewhere": (
        _sealed(inputs_file={"path": "../x", "count": 1, "bytes": 1, "sha256": ""}),
        "record",
    ),
    "an input that is a folder": (
        _sealed(inputs=[{"path": "drops", "bytes": 4096, "sha256": ""}]),
        "input",
    ),
}


@pytest.mark.parametrize("record", [RECORD, "megatron/kd/provenance/p0.json"])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_record_ends_in_a_finding_and_verification_goes_on(root, name, record):
    change, law = MALFORMED[name]
    change(root / record)
    _flip(root / "megatron/kd/p1_metadata.db")
    found = _violations(root)
    assert ("megatron/kd/p1_metadata.db", "output") in found
    where = "drops" if law == "input" else record
    assert (where, law) in found
    assert any(item.state != "current" for item in list_artifacts.list_artifacts(root))
    assert len(list_artifacts.list_artifacts(root)) == 4


def test_laws_that_end_in_an_error_are_a_finding(root, monkeypatch):
    def broken(*_: object) -> Iterator[Violation]:
        raise KeyError("what the record says")
        yield

    monkeypatch.setattr(families, "check", broken)
    violations = provenance.verify(root)
    assert {violation.law for violation in violations} == {"laws"}
    assert "they cannot be checked: KeyError('what the record says')" in violations[0].found


def test_an_input_that_was_removed_on_purpose_is_no_violation(root):
    remove.remove_artifact(root / OUTER)
    assert provenance.verify(root) == []


def test_laws_that_are_not_asked_are_named_with_the_artifact(root, monkeypatch):
    laws = [Law("sums", lambda _: (), excused_by=("seed", 1)), Law("order", lambda _: ())]
    catalog = Catalog([Kind("test/tiny", laws)], lambda _: None)
    monkeypatch.setattr(families, "catalogs", lambda: iter([catalog]))
    left_out: list[str] = []
    assert provenance.verify(root, left_out=left_out) == []
    assert left_out == [
        f"{title}: not checked: sums: seed = 1"
        for title in (
            root / OUTER,
            root / NESTED,
            *(root / f"megatron/kd/provenance/p{number}.json" for number in (0, 1)),
        )
    ]
    left_out.clear()
    provenance.verify(root, left_out=left_out, check_laws=False)
    assert left_out == []


def test_an_input_that_was_deleted_with_its_entry_is_named_by_what_was_made_from_it(root):
    shutil.rmtree(root / OUTER)
    assert "is gone" in [violation.found for violation in provenance.verify(root)]
    Entry(OUTER).file(root).unlink()
    Entry(NESTED).file(root).unlink()
    (violation,) = provenance.verify(root)
    assert (violation.where, violation.law) == (str(root / OUTER), "input")
    assert violation.found == (
        "is gone, and the inventory does not name it: it was deleted together with its entry, or "
        "it never was in this data root. Bring it back, build it again (`gristmill materialize "
        "test/tiny --partition p1`), or remove what was made from it (`gristmill remove "
        f"{root}/megatron/kd --partition p0`)"
    )
    (root / ".gristmill/inventory").rename(root / ".gristmill/elsewhere")
    assert [each.found for each in provenance.verify(root)] == ["is gone"]
    (root / ".gristmill/elsewhere").rename(root / ".gristmill/inventory")
    for line in violation.found.split("`")[3::2]:
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        assert (done.exit_code, done.output) == (0, "remove: megatron/kd [p0]\n")
    assert provenance.verify(root) == []


@pytest.fixture
def chain(root: Path) -> Path:
    """An artifact three steps from its raw files, in the middle a partition of a shared folder."""
    shared = provenance.read_record(root / "megatron/kd/provenance/p0.json")
    middle = publish(tiny_build(root, "chain/kd", inputs=[made_from(shared)])).record
    publish(tiny_build(root, "chain/last", inputs=[made_from(middle)]))
    return root


@pytest.mark.parametrize(
    "damaged", ["drops/1", f"{OUTER}/train/steps.npy", "megatron/kd/p0_metadata.db"]
)
def test_inputs_are_followed_to_their_bytes(chain, damaged):
    assert provenance.verify(chain / "chain/last") == []
    _flip(chain / damaged, keep_time=True)
    _flip(chain / "megatron/kd/p1_metadata.db")  # not an input
    (violation,) = provenance.verify(chain / "chain/last")
    assert (violation.where, violation.law) == (str(chain / damaged), "input")
    assert violation.found.endswith(f": {chain / 'chain/last'} was made from it")
    assert provenance.verify(chain / "chain/last", check_inputs=False) == []
    assert len(provenance.verify(chain)) == 2 + damaged.startswith("drops")


def test_each_file_of_an_input_is_hashed_once(chain, monkeypatch):
    hashed: list[Path] = []

    def sha256_file(path: Path, *_: object) -> str:
        hashed.append(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(verification, "sha256_file", sha256_file)
    assert provenance.verify(chain) == []
    everything = len(hashed)
    assert len(set(hashed)) == everything
    hashed.clear()
    assert provenance.verify(chain / "chain") == []
    assert len(set(hashed)) == len(hashed) < everything
    assert chain / "drops/2" in hashed


def test_an_input_that_was_built_again_is_not_followed(chain):
    publish(tiny_build(chain, config=TinyConfig(seed=2)))
    _flip(chain / OUTER / "train/steps.npy")
    (violation,) = provenance.verify(chain / "chain/last")
    assert (violation.where, violation.law) == (str(chain / OUTER), "input")
    assert "build again" in violation.found


def test_what_was_made_of_a_drop_is_intact_without_it_and_not_without_some_of_its_files(tmp_path):
    names = [*(f"drops/tiny/d1/{number}" for number in range(40)), "drops/tiny/other"]
    for name in names:
        raw_file(tmp_path, name)
    raw = [raw_input(tmp_path, name) for name in names]
    publish(tiny_build(tmp_path, inputs=raw, partition="d1"))
    assert provenance.verify(tmp_path) == []
    (tmp_path / "drops/tiny/other").unlink()  # a drop that is a file
    assert provenance.verify(tmp_path) == []
    (tmp_path / "drops/tiny/d1").rename(tmp_path / "away")
    assert provenance.verify(tmp_path) == []
    (tmp_path / "away").rename(tmp_path / "drops/tiny/d1")
    (tmp_path / "drops/tiny/d1/7").unlink()
    (violation,) = provenance.verify(tmp_path)
    assert (violation.where, violation.law) == (str(tmp_path / "drops/tiny/d1/7"), "input")
    shutil.rmtree(tmp_path / "drops")
    assert provenance.verify(tmp_path) == []


def test_a_folder_in_the_place_of_another_artifact_is_reported(root):
    left, right = root / OUTER, root / "family/other"
    publish(tiny_build(root, "family/other", config=TinyConfig(seed=9)))
    for source, target in ((left, root / "held"), (right, left), (root / "held", right)):
        source.rename(target)
    for place in (OUTER, "family/other"):
        assert (f"{place}/provenance.json", "record") in _violations(root, place)


def test_records_of_a_shared_folder_that_changed_places_are_reported(root):
    records = root / "megatron/kd/provenance"
    for source, target in (("p0", "held"), ("p1", "p0"), ("held", "p1")):
        (records / f"{source}.json").rename(records / f"{target}.json")
    assert {(Path(found.where).name, found.law) for found in provenance.verify(records.parent)} == {
        ("p0.json", "inputs list"),
        ("p0.json", "record"),
        ("p1.json", "record"),
    }
