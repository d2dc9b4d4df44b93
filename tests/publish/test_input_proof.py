"""Inputs that differ from their records: refused before a builder reads them, and after."""

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError, Summary, Violation
from gristmill.provenance import Input, Record, find_artifacts, inventory, verification
from gristmill.provenance import record as records
from gristmill.provenance.raw_inputs import known_hashes, raw_inputs
from gristmill.publish import input_proof, stamps
from gristmill.publish.build import (
    Attempt,
    Build,
    InputChanged,
    InputDamaged,
    OtherOutput,
    lock_of_folder,
)
from gristmill.publish.publish import publish
from gristmill.run import locks
from gristmill.run.parts import run_parts
from gristmill.run.progress import Progress, Report
from tests.publish.tiny import (
    TinyConfig,
    made_from,
    many_inputs,
    raw_file,
    raw_input,
    snapshot,
    tiny_build,
)

SOURCE = "family/source"


def _source(root: Path, shared: bool = False, seed: int = 1, partition: str = "p1") -> Build:
    config, asset = TinyConfig(seed=seed), "test/source"
    return tiny_build(root, SOURCE, partition=partition, shared=shared, config=config, asset=asset)


def _input(root: Path, shared: bool = False) -> Input:
    return made_from(publish(_source(root, shared)).record)


def _copying(root: Path, item: Input, during: Callable[[], object] = lambda: None) -> Build:
    """A build whose payload is the bytes of its input's rows."""

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        during()
        rows = sorted((root / str(item.path)).glob("train/*steps.npy"))
        (attempt.out / "copy").write_bytes(b"".join(path.read_bytes() for path in rows))
        return Summary(files={})

    return tiny_build(root, "family/copy", inputs=[item], make=make, asset="test/copy")


def _rows(folder: Path) -> Path:
    return next(folder.glob("train/*steps.npy"))


@contextmanager
def _time_kept(path: Path) -> Iterator[None]:
    stat = path.stat()
    yield
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def flip_and_keep_the_time(path: Path) -> None:
    with _time_kept(path):
        _flip(path)


def _replace_and_keep_the_time(path: Path) -> None:
    with _time_kept(path):
        other = path.with_name("other")
        other.write_bytes(bytes(path.stat().st_size))
        other.replace(path)


def _link(path: Path) -> None:
    shutil.copy2(path, path.parents[3] / "elsewhere")
    path.unlink()
    path.symlink_to(path.parents[3] / "elsewhere")


DAMAGES: list[Callable[[Path], object]] = [
    lambda folder: _flip(_rows(folder)),
    lambda folder: flip_and_keep_the_time(_rows(folder)),
    lambda folder: _replace_and_keep_the_time(_rows(folder)),
    lambda folder: os.truncate(_rows(folder), 100),
    lambda folder: _rows(folder).unlink(),
    lambda folder: _link(_rows(folder)),
    lambda folder: flip_and_keep_the_time(next(folder.glob("*metadata.db"))),
    lambda folder: flip_and_keep_the_time(next(folder.glob("*place.json"))),
    lambda folder: shutil.copy(_rows(folder), folder / "train/zsteps.npy"),
]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_input_is_refused_before_it_is_read(tmp_path, damage, shared):
    item = _input(tmp_path, shared)
    damage(tmp_path / SOURCE)
    read: list[bool] = []
    with pytest.raises(InputDamaged, match="test/source --partition p1 --rebuild") as refused:
        publish(_copying(tmp_path, item, lambda: read.append(True)))
    assert read == []
    assert str(tmp_path / SOURCE) in str(refused.value)
    assert not (tmp_path / "family/copy").exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_input_that_is_damaged_during_the_build_is_noticed(tmp_path, damage):
    item = _input(tmp_path)
    with pytest.raises((InputDamaged, InputChanged)):
        publish(_copying(tmp_path, item, lambda: damage(tmp_path / SOURCE)))
    assert not (tmp_path / "family/copy").exists()


def test_an_input_that_is_damaged_and_mended_during_the_build_is_noticed(tmp_path):
    item = _input(tmp_path)

    def damage_and_mend() -> None:
        _flip(_rows(tmp_path / SOURCE))
        _flip(_rows(tmp_path / SOURCE))

    with pytest.raises(InputChanged, match="written to while it was read"):
        publish(_copying(tmp_path, item, damage_and_mend))


def _other_outputs(path: Path) -> None:
    record = provenance.read_record(path)
    wrong = [output.model_copy(update={"sha256": "00" * 32}) for output in record.outputs]
    path.write_bytes(record.model_copy(update={"outputs": wrong}).sealed().to_bytes())


def _other_artifact(root: Path) -> None:
    publish(tiny_build(root, "family/other", asset="test/source"))
    shutil.rmtree(root / SOURCE)
    (root / "family/other").rename(root / SOURCE)


def _other_partition(root: Path) -> None:
    publish(_source(root, shared=True, partition="p2"))
    records = root / SOURCE / "provenance"
    shutil.copy(records / "p2.json", records / "p1.json")


RECORD = f"{SOURCE}/provenance.json"
REFUSED: dict[str, Callable[[Path], object]] = {
    "the record was changed after it was written": lambda root: (root / RECORD).write_bytes(
        (root / RECORD).read_bytes().replace(b'"rows": 6', b'"rows": 7')
    ),
    "its data version is not that of its files": lambda root: _other_outputs(root / RECORD),
    r"provenance\.json: not a provenance record": lambda root: (root / RECORD).write_bytes(b"{"),
    "the record is of family/other, partition p1": _other_artifact,
    f"the record is of {SOURCE}, partition p2": _other_partition,
    "100 bytes, recorded [0-9,]+": lambda root: os.truncate(_rows(root / SOURCE), 100),
    r'gristmill.toml: \[run\] prove = "hashes": must be one': lambda root: (
        root / "gristmill.toml"
    ).write_text('[run]\nprove = "hashes"\n'),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_an_input_or_its_record_lacks_is_refused_in_words(tmp_path, words):
    item = _input(tmp_path, shared="partition p2" in words)
    REFUSED[words](tmp_path)
    with pytest.raises(GristmillError, match=words) as refused:
        publish(_copying(tmp_path, item))
    is_read = "not a provenance" not in words and "gristmill.toml" not in words
    assert isinstance(refused.value, InputDamaged) is is_read


def test_changed_lists_of_inputs_are_refused_and_touched_files_accepted(tmp_path):
    build = tiny_build(tmp_path, SOURCE, inputs=many_inputs(tmp_path), asset="test/source")
    item = made_from(publish(build).record)
    publish(_copying(tmp_path, item))
    flip_and_keep_the_time(tmp_path / SOURCE / "inputs.jsonl")
    with pytest.raises(InputDamaged, match=r"inputs\.jsonl: sha256"):
        publish(_copying(tmp_path, item), rebuild=True)
    item = _input(tmp_path)
    os.utime(_rows(tmp_path / SOURCE))
    first = publish(_copying(tmp_path, item))
    shutil.copytree(tmp_path / SOURCE, tmp_path / "copy")
    shutil.rmtree(tmp_path / SOURCE)
    (tmp_path / "copy").rename(tmp_path / SOURCE)
    again = publish(_copying(tmp_path, item), rebuild=True)
    assert again.record.data_version == first.record.data_version


@pytest.mark.parametrize("nested", [False, True])
def test_a_copied_input_is_hashed_by_one_build_alone(tmp_path, hashed, nested):
    item = _input(tmp_path)
    if nested:
        publish(tiny_build(tmp_path, f"{SOURCE}/inner", outer=SOURCE, asset="test/inner"))
    replace_by_a_copy(_rows(tmp_path / SOURCE))
    # A builder of the input is at work: it is not disturbed, and what is hashed is noted.
    with locks.locked(lock_of_folder(tmp_path / SOURCE), "the builder of the input"):
        publish(_copying(tmp_path, item), rebuild=True)
    assert _rows(tmp_path / SOURCE) in hashed
    hashed.clear()
    publish(_copying(tmp_path, item), rebuild=True)
    assert hashed == []


def test_nothing_is_noted_within_another_artifact(tmp_path):
    publish(_source(tmp_path))
    inner = tiny_build(tmp_path, f"{SOURCE}/inner", outer=SOURCE, asset="test/inner")
    item = made_from(publish(inner).record)
    replace_by_a_copy(_rows(inner.folder))
    publish(_copying(tmp_path, item))
    assert not list((tmp_path / SOURCE).rglob(".gristmill"))
    assert provenance.verify(tmp_path) == []


def replace_by_a_copy(path: Path) -> None:
    other = path.with_name("other")
    shutil.copy2(path, other)
    other.replace(path)


@pytest.mark.parametrize("during", ["other partition", "equal rebuild", "link to a raw file"])
def test_what_changes_no_byte_of_an_input_during_the_build_is_accepted(tmp_path, during):
    raw, shared = raw_file(tmp_path), during == "other partition"
    item = raw_input(tmp_path, "drops/raw") if "raw" in during else _input(tmp_path, shared)
    act = {
        "other partition": lambda: publish(_source(tmp_path, shared=True, partition="p2")),
        "equal rebuild": lambda: publish(_source(tmp_path), rebuild=True),
        "link to a raw file": lambda: os.link(raw, tmp_path / "link"),
    }[during]
    assert publish(_copying(tmp_path, item, act)).rebuilt


def test_another_version_of_the_input_during_the_build_is_refused(tmp_path):
    item = _input(tmp_path)
    with pytest.raises(InputChanged, match="rebuilt while it was being read"):
        publish(_copying(tmp_path, item, lambda: publish(_source(tmp_path, seed=2))))


def test_a_file_older_than_its_record_is_not_hashed(tmp_path, hashed, monkeypatch):
    """Only files whose inode changed after the record was written can hold other bytes."""
    item = _input(tmp_path)
    monkeypatch.setattr(records, "CLOCK_TICK_NS", -10_000_000_000)
    publish(_copying(tmp_path, item))
    assert hashed == []
    monkeypatch.setattr(records, "CLOCK_TICK_NS", 10_000_000_000)
    publish(_copying(tmp_path, item), rebuild=True)
    assert len(hashed) == len(provenance.read_record(tmp_path / SOURCE / "provenance.json").outputs)


def test_a_raw_file_that_changed_since_it_was_hashed_is_noticed(tmp_path):
    raw = raw_file(tmp_path)
    [item] = raw_inputs(tmp_path, [raw], "test/drop", "p1", known={})
    flip_and_keep_the_time(raw)
    with pytest.raises(InputChanged, match="drops/raw: changed since it was listed"):
        publish(_copying(tmp_path, item, lambda: pytest.fail("the builder started")))


def test_a_raw_file_that_was_only_touched_after_it_was_hashed_is_read(tmp_path):
    raw = raw_file(tmp_path)
    [item] = raw_inputs(tmp_path, [raw], "test/drop", "p1", known={})
    raw.chmod(0o600)
    built = publish(_copying(tmp_path, item))
    assert built.rebuilt
    assert built.record.inputs == [Input.model_validate(item.model_dump())]


def _by_parts(
    root: Path,
    item: Input,
    during: Callable[[int], object] = lambda number: None,
    more: bytes = b"",
) -> Build:
    """A build whose payload is the bytes of its input's rows, twice, each time a part."""

    def make_part(number: int, path: Path) -> dict[str, Any]:
        during(number)
        rows = sorted((root / str(item.path)).glob("train/*steps.npy"))
        path.write_bytes(b"".join(path.read_bytes() for path in rows) + more)
        return {}

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        tasks = [(f"part{number}", number) for number in range(2)]
        parts = run_parts(make_part, tasks, attempt.parts, 1, scratch=attempt.out)
        (attempt.out / "copy").write_bytes(b"".join(path.read_bytes() for _, path, _ in parts))
        return Summary(files={})

    return tiny_build(root, "family/copy", inputs=[item], make=make, asset="test/copy")


def _fail(root: Path, number: int) -> None:
    """Damage the input before the first part, and fail in the second one."""
    if number == 0:
        _flip(_rows(root / SOURCE))
    else:
        raise ValueError("a row cannot be read")


def _be_killed(root: Path, number: int) -> None:
    if number == 0:
        flip_and_keep_the_time(_rows(root / SOURCE))
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def _end(root: Path, number: int) -> None:
    if number == 0:
        flip_and_keep_the_time(_rows(root / SOURCE))


def _attempt(build: Build) -> str:
    """Publish in a child process, which may be killed; returns how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            publish(build)
            os.write(write, b"published")
        except BaseException as error:  # noqa: BLE001  the child must end here
            os.write(write, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    said = os.read(read, 100).decode()
    os.close(read)
    return said or "killed"


def _mend_in_place(root: Path, _: bool) -> None:
    flip_and_keep_the_time(_rows(root / SOURCE))


def _mend_by_a_copy(root: Path, _: bool) -> None:
    path = _rows(root / SOURCE)
    with _time_kept(path):
        _flip(path)
        replace_by_a_copy(path)


def _build_again(root: Path, shared: bool) -> None:
    publish(_source(root, shared), rebuild=True)


DAMAGED = [
    (_fail, "ValueError", _build_again),
    (_be_killed, "killed", _build_again),
    (_be_killed, "killed", _mend_by_a_copy),
    (_end, "InputDamaged", _build_again),
]


@pytest.mark.parametrize(
    ("during", "ended", "mend", "shared"),
    [
        *((*each, shared) for shared in (False, True) for each in DAMAGED),
        # Commits of others change the times of inodes in a shared folder.
        (_be_killed, "killed", _mend_in_place, False),
    ],
)
def test_parts_of_a_damaged_input_are_not_used_later(tmp_path, during, ended, mend, shared):
    item = _input(tmp_path, shared)
    truth = _rows(tmp_path / SOURCE).read_bytes()
    assert _attempt(_by_parts(tmp_path, item, partial(during, tmp_path))) == ended
    mend(tmp_path, shared)
    publish(_by_parts(tmp_path, item))
    assert (tmp_path / "family/copy/copy").read_bytes() == truth * 2


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_parts_of_inputs_that_stayed_as_they_were_are_used(tmp_path, shared):
    def die(number: int) -> None:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    made: list[int] = []
    item = _input(tmp_path, shared)
    assert _attempt(_by_parts(tmp_path, item, die)) == "killed"
    if shared:  # a commit of another partition links the files
        publish(_source(tmp_path, shared, partition="p2"))
    publish(_by_parts(tmp_path, item, made.append))
    assert made == [1]


def test_parts_of_another_output_are_not_used_again(tmp_path):
    item = _input(tmp_path)
    publish(_by_parts(tmp_path, item))
    with pytest.raises(OtherOutput):
        publish(_by_parts(tmp_path, item, more=b"of a builder that has luck"), rebuild=True)
    assert publish(_by_parts(tmp_path, item), rebuild=True).rebuilt


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """A copy that was published from a damaged input; the input is mended."""
    item = _input(tmp_path)
    _flip(_rows(tmp_path / SOURCE))
    with monkeypatch.context() as patch:
        patch.setattr(input_proof.InputProof, "before", lambda _: None)
        patch.setattr(input_proof.InputProof, "after", lambda _: None)
        publish(_copying(tmp_path, item))
    publish(_source(tmp_path), rebuild=True)
    return _copying(tmp_path, item)


def test_a_build_of_the_published_fingerprint_with_other_contents_is_refused(wrong):
    before = snapshot(wrong.folder)
    standing = provenance.read_record(wrong.record_path)
    with pytest.raises(OtherOutput, match="--rebuild --replace-differing") as refused:
        publish(wrong, rebuild=True)
    assert snapshot(wrong.folder) == before
    right = publish(wrong, rebuild=True, replace_differing=True).record
    assert standing.data_version in str(refused.value)
    assert right.data_version in str(refused.value)


def test_a_differing_version_is_replaced_and_the_record_names_it(wrong):
    standing = provenance.read_record(wrong.record_path)
    record = publish(wrong, rebuild=True, replace_differing=True).record
    assert record.fingerprint == standing.fingerprint
    assert record.replaced is not None
    assert record.replaced.data_version == standing.data_version != record.data_version
    assert record.replaced.digest == standing.digest
    assert record.replaced.why == "a person chose to replace it (replace_differing)"
    assert provenance.verify(wrong.folder) == []
    again = publish(wrong, rebuild=True).record
    assert (again.data_version, again.replaced) == (record.data_version, None)


def test_a_record_without_a_code_digest_is_never_a_reason_to_refuse(wrong):
    standing = provenance.read_record(wrong.record_path)
    earlier = standing.model_copy(
        update={
            "schema_version": 1,
            "code_digest": None,
            "platform": None,
            "fingerprint": wrong.recipe,
        }
    ).sealed()
    wrong.record_path.write_bytes(earlier.to_bytes())
    record = publish(wrong, rebuild=True).record
    assert record.replaced is not None
    assert record.replaced.data_version == earlier.data_version
    assert record.replaced.why == "its inputs were not proved when it was built"


def test_all_inputs_are_one_stage_whose_total_grows(tmp_path):
    item = _input(tmp_path)
    more = made_from(publish(tiny_build(tmp_path, "family/other", asset="test/other")).record)
    sizes = []
    for path in (SOURCE, "family/other"):
        os.utime(_rows(tmp_path / path))
        sizes.append(_rows(tmp_path / path).stat().st_size)
    reports: list[Report] = []
    build = dataclasses.replace(_copying(tmp_path, item), inputs=[item, more])
    publish(build, progress=Progress(reports.append, every=0.0))
    inputs = [report for report in reports if report.stage == "inputs"]
    stage = [(report.done, report.total) for report in inputs]
    assert stage == sorted(stage) and {report.unit for report in inputs} == {"bytes"}
    assert stage[0][0] == 0 < sizes[0] <= stage[0][1] < stage[-1][1]
    assert stage[-1][0] == stage[-1][1] >= sum(sizes)


def test_a_file_with_another_time_is_hashed_though_its_inode_is_old(tmp_path, monkeypatch):
    item = _input(tmp_path)
    _flip(_rows(tmp_path / SOURCE))
    monkeypatch.setattr(records, "CLOCK_TICK_NS", -10_000_000_000)
    with pytest.raises(InputDamaged, match="sha256"):
        publish(_copying(tmp_path, item))


def test_a_commit_into_the_folder_of_an_input_during_its_proof_is_no_damage(tmp_path, monkeypatch):
    item = _input(tmp_path, shared=True)
    unlisted = verification.unlisted
    commits = iter(["p2"])

    def commit_and_list(folder: Path, items: Sequence[find_artifacts.Artifact]) -> list[Violation]:
        for partition in commits:
            publish(_source(tmp_path, shared=True, partition=partition))
        return unlisted(folder, items)

    monkeypatch.setattr(verification, "unlisted", commit_and_list)
    assert publish(_copying(tmp_path, item)).rebuilt


def _prove_by_hash(root: Path) -> None:
    (root / "gristmill.toml").write_text('[run]\nprove = "hash"\n')


def _rot(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a byte as a disk does: nothing that a stat gives shows it."""
    before = path.stat()
    _flip(path)
    looked = Path.stat

    def unchanged(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        return before if self == path else looked(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", unchanged)


@pytest.mark.parametrize("shared", [False, True])
def test_where_inputs_are_proved_by_hash_no_stamp_is_believed(tmp_path, shared, monkeypatch):
    item = _input(tmp_path, shared)
    assert publish(_copying(tmp_path, item)).rebuilt
    rows = _rows(tmp_path / SOURCE)
    _rot(rows, monkeypatch)
    assert publish(_copying(tmp_path, item), rebuild=True, replace_differing=True).rebuilt
    _prove_by_hash(tmp_path)
    before = snapshot(tmp_path / "family/copy")
    with pytest.raises(InputDamaged, match="test/source --partition p1 --rebuild`") as refused:
        publish(_copying(tmp_path, item), rebuild=True)
    assert f"{rows}: sha256 " in str(refused.value)
    assert snapshot(tmp_path / "family/copy") == before
    _flip(rows)
    assert publish(_copying(tmp_path, item), rebuild=True, replace_differing=True).rebuilt


def test_where_inputs_are_proved_by_hash_raw_files_are_hashed(tmp_path, monkeypatch):
    raw = raw_file(tmp_path, "drops/in/raw")
    item = raw_input(tmp_path, "drops/in/raw")
    published = publish(_copying(tmp_path, item)).folder / "provenance.json"
    with monkeypatch.context() as rotten:
        _rot(raw, rotten)
        assert publish(_copying(tmp_path, item), rebuild=True).rebuilt
        _prove_by_hash(tmp_path)
        says = f"a raw file is damaged: {raw}: sha256 .*, and {item.sha256} when it was first read"
        with pytest.raises(InputDamaged, match=says):
            publish(_copying(tmp_path, item), rebuild=True)
    os.utime(raw)  # the cure of the error: the file counts as a new one
    known = known_hashes(published)
    [touched] = raw_inputs(tmp_path, [raw], "test/drop", "p1", known)
    assert touched.sha256 != item.sha256
    assert publish(_copying(tmp_path, touched)).record.inputs[0].sha256 == touched.sha256


def test_what_is_proved_by_hash_is_hashed_once(tmp_path, hashed):
    path = raw_file(tmp_path)
    source, raw = _input(tmp_path), raw_input(tmp_path, "drops/raw")
    build = dataclasses.replace(_copying(tmp_path, source), inputs=[source, raw])
    _prove_by_hash(tmp_path)
    publish(build)
    outputs = provenance.read_record(tmp_path / SOURCE / "provenance.json").outputs
    assert sorted(hashed) == sorted([path, *(tmp_path / SOURCE / each.path for each in outputs)])


def test_a_raw_file_that_is_named_by_its_hash_alone_is_not_compared(tmp_path):
    named = Input(asset="test/drop", path="elsewhere/raw", sha256="ab" * 32)
    source = _input(tmp_path)
    build = dataclasses.replace(_copying(tmp_path, source), inputs=[source, named])
    assert publish(build).record.inputs[1] == named


NOTES = "family/.gristmill/stamps/source.json"


def _user(root: Path, partition: str = "p1") -> Build:
    """A build with one partition of the shared folder as its input."""

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "made").write_bytes(b"made")
        return Summary(files={})

    item = made_from(publish(_source(root, True, partition=partition)).record)
    return tiny_build(root, "family/user", inputs=[item], make=make, asset="test/user")


def test_files_of_a_shared_folder_are_not_hashed(tmp_path, hashed):
    build = _user(tmp_path)
    for partition in ("p2", "p3"):
        publish(_source(tmp_path, True, partition=partition))
    publish(_source(tmp_path, True, 2, "p2"))
    assert publish(build).rebuilt
    assert hashed == []


def test_a_file_without_a_note_is_hashed(tmp_path, hashed):
    build = _user(tmp_path)
    publish(_source(tmp_path, True, partition="p2"))
    (tmp_path / NOTES).unlink()
    assert publish(build).rebuilt
    assert tmp_path / SOURCE / "train/p1_steps.npy" in hashed
    hashed.clear()
    publish(_source(tmp_path, True, partition="p3"))
    publish(build, rebuild=True)
    assert hashed == []  # it was noted when it was hashed


def test_nothing_is_noted_that_changed_since_it_was_hashed_or_while_a_commit_is_under_way(tmp_path):
    folder = tmp_path / SOURCE
    publish(_source(tmp_path, True, partition="p1"))
    publish(_source(tmp_path, True, partition="p2"))
    before = dict(stamps.read(folder))
    (tmp_path / NOTES).unlink()
    flip_and_keep_the_time(folder / "train/p1_steps.npy")
    stamps.add(folder, before, is_shared=True)
    assert set(before) - set(stamps.read(folder)) == {"train/p1_steps.npy"}
    before = dict(stamps.read(folder))
    (tmp_path / NOTES).unlink()
    with locks.locked(lock_of_folder(folder), "source"):
        stamps.add(folder, before, is_shared=True)
    assert not (tmp_path / NOTES).exists()
    stamps.add(folder, before, is_shared=True)
    assert stamps.read(folder) == before


def test_an_artifact_is_published_though_its_notes_cannot_be_written(tmp_path, hashed):
    (tmp_path / NOTES).parent.parent.mkdir(parents=True)
    (tmp_path / NOTES).parent.write_text("a file instead of the folder")
    build = _user(tmp_path)
    assert publish(_source(tmp_path, True, partition="p2")).rebuilt
    assert publish(build).rebuilt
    assert hashed


@pytest.mark.parametrize("later", [False, True])
def test_a_flipped_bit_is_found_though_a_commit_linked_the_file(tmp_path, later):
    build = _user(tmp_path)
    publish(_source(tmp_path, True, partition="p2"))
    flip_and_keep_the_time(tmp_path / SOURCE / "train/p1_steps.npy")
    if later:
        publish(_source(tmp_path, True, partition="p3"))
    with pytest.raises(InputDamaged, match=r"p1_steps\.npy: sha256"):
        publish(build)


def _records(folder: Path) -> Sequence[Record]:
    return inventory.others(folder, SOURCE, None).records


def test_a_file_that_is_replaced_during_a_commit_gets_no_note(tmp_path):
    publish(_source(tmp_path, True, partition="p1"))
    folder = tmp_path / SOURCE
    before = stamps.unchanged(folder, _records(folder))
    assert before == stamps.read(folder)
    replace_by_a_copy(folder / "train/p1_steps.npy")
    stamps.keep(folder, before, [])
    assert set(before) - set(stamps.read(folder)) == {"train/p1_steps.npy"}


def test_a_file_that_is_gone_has_no_note(tmp_path):
    publish(_source(tmp_path, True, partition="p1"))
    publish(_source(tmp_path, True, partition="p2"))
    paths = set(stamps.read(tmp_path / SOURCE))
    assert {"train/p1_steps.npy", "train/p2_steps.npy"} <= paths
    assert all((tmp_path / SOURCE / path).is_file() for path in paths)
    stamps.keep(tmp_path / SOURCE, {}, ["train/p1_steps.npy", "gone"])
    assert list(json.loads((tmp_path / NOTES).read_text())) == ["train/p1_steps.npy"]


def test_a_record_that_cannot_be_read_leaves_its_files_without_a_note(tmp_path):
    publish(_source(tmp_path, True, partition="p1"))
    publish(_source(tmp_path, True, partition="p2"))
    (tmp_path / SOURCE / "provenance/p1.json").write_text("{")
    assert all(
        "p2" in path for path in stamps.unchanged(tmp_path / SOURCE, _records(tmp_path / SOURCE))
    )
