"""Where renameat2 is refused, a commit flips a link: old or new, whole, at every kill."""

import ctypes
import errno
import fcntl
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.hashing import sha256_file
from gristmill.provenance import find_artifacts
from gristmill.provenance.inventory import Entry, missing
from gristmill.publish import atomic_fs, remove, storage
from gristmill.publish.build import lock_of_folder
from gristmill.publish.publish import publish
from gristmill.publish.remove import named, remove_published
from gristmill.publish.storage import Abilities
from gristmill.run import locks
from tests import budget
from tests.mirror.roots import pulled, pushed
from tests.publish.killing import REFUSED, Kill, Killer, State, in_two_threads, kills_at_every_place
from tests.publish.scenarios import SCENARIOS, _nested
from tests.publish.test_atomic_fs import Disk
from tests.publish.tiny import TinyConfig, garbage, snapshot, tiny_build
from tests.report_day import day_of
from tests.sample_root import SampleRoot

CONVERTED = ("replace", "shared replace")


@pytest.fixture(autouse=True)
def linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(storage.VARIABLE, "link")


@pytest.fixture(scope="module")
def converter(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killer]:
    """What stands before is a real folder, made where exchange was possible."""
    folder = tmp_path_factory.mktemp("converted").resolve()
    made = Killer(shim, folder, more=REFUSED, converts=True, scenarios=CONVERTED)
    yield made
    made.close()


def _commit_kills(killer: Killer, scenario: str) -> list[Kill]:
    """Kills at the calls from the first one in the store of versions on."""
    calls = killer.trace(scenario, 1)
    first = next(n for n, call in enumerate(calls) if "/versions" in call.path)
    return list(kills_at_every_place(scenario, calls[first:], every=False))


def test_a_kill_at_each_step_of_a_rebuild(link_killer):
    kills = _commit_kills(link_killer, "replace")
    assert len(kills) > 8
    found = in_two_threads(lambda kill: link_killer.kill(kill, 1), kills)
    assert set(found) == {"old", "new"}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_every_place(link_killer, scenario):
    kills = list(kills_at_every_place(scenario, link_killer.trace(scenario, 1), every=False))
    sampled = budget.some(kills, each=0.3, share=1 / len(SCENARIOS), least=4)
    found = set(in_two_threads(lambda kill: link_killer.kill(kill, 1), sampled))
    assert found == {"old", "new"} or (found and not budget.is_whole())


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("fault", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.__getitem__)
def test_a_call_that_fails(link_killer, scenario, fault):
    places = sorted({call.place for call in link_killer.trace(scenario, 1)})
    kills = [Kill(scenario, place, how=str(fault)) for place in places]
    sampled = budget.some(kills, each=0.3, share=0.5 / len(SCENARIOS), least=4)
    assert set(in_two_threads(lambda k: link_killer.kill(k, 1), sampled)) <= {"old", "new"}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", CONVERTED)
@pytest.mark.parametrize("how", ["before", str(errno.EIO)])
def test_a_real_folder_becomes_a_version(converter, scenario, how):
    kills = [Kill(k.scenario, k.place, how=how) for k in _commit_kills(converter, scenario)]
    assert set(in_two_threads(lambda k: converter.kill(k, 1), kills)) == {"old", "new"}


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "nested fresh"])
def test_all_is_flushed_before_the_link_names_it(link_killer, scenario):
    disk, version, flips = Disk(), "", 0
    for call in link_killer.trace(scenario, 2):
        into_store = "/versions/tiny/" in call.path
        if call.name == "create" and into_store and call.path.endswith("/next"):
            disk.dirty.add(str(Path(call.path).parent))  # a link is a name, without data
            continue
        if call.name == "rename" and call.path == "family/tiny":
            flips += 1
            above = {str(path) for path in Path(version).parents} - {"."}
            assert version and disk.below(version) == set() and disk.dirty.isdisjoint(above)
        elif call.name == "rename" and into_store:
            version = call.path
        disk.see(call)
    assert flips == 1
    assert disk.dirty.isdisjoint({"family", "."})


def _convert_half(root: Path) -> None:
    """End a conversion, as a kill does, between its two renames."""
    store = storage.store_of(root / "family/tiny")
    store.mkdir(parents=True)
    storage._link(root / "family/tiny", store / ("a" * 32), store / "converting")
    (root / "family/tiny").rename(store / ("a" * 32))


@pytest.mark.parametrize("ended_by", ["prune", "build", "other partition", "removal"])
def test_a_killed_conversion_is_ended(tmp_path, monkeypatch, ended_by):
    shared = ended_by == "other partition"
    monkeypatch.setenv(storage.VARIABLE, "exchange")
    publish(tiny_build(tmp_path, partition="p0", shared=shared))
    before = State.of(tmp_path)
    monkeypatch.setenv(storage.VARIABLE, "link")
    _convert_half(tmp_path)
    slot = tmp_path / "family/.gristmill/slots" / ("tiny@p0" if shared else "tiny")
    slot.mkdir(parents=True)
    assert State.of(tmp_path) == State()
    if ended_by == "prune":
        remove.clean_slot(slot)
        assert State.of(tmp_path) == before
    elif ended_by == "removal":
        remove_published(tmp_path, Entry("family/tiny"))
        assert State.of(tmp_path) == State()
    else:
        partition = "p1" if shared else "p0"
        publish(tiny_build(tmp_path, partition=partition, shared=shared))
        if shared:
            remove.clean_slot(slot)
        found = State.of(tmp_path)
        assert before.files.items() <= found.files.items()
        assert before.records.items() <= found.records.items()
    assert _is_well(tmp_path)


@pytest.mark.parametrize("there", ["nothing", "folder", "link"])
def test_no_link_is_flipped_and_no_version_swept_under_a_lost_lock(tmp_path, there):
    folder, staged, lock = tmp_path / "it", tmp_path / "staged", tmp_path / "locks" / "it"
    for path in (folder, staged):
        path.mkdir()
        (path / "file").write_text(path.name)
    if there == "nothing":
        shutil.rmtree(folder)
    elif there == "link":
        folder.rename(tmp_path / "first")
        storage.flip(tmp_path / "first", folder)
    with locks.locked(lock, "it"):
        lock.unlink()
        with pytest.raises(locks.LostLock):
            storage.flip(staged, folder)
        versions = sorted(storage.store_of(folder).iterdir())
        storage.sweep(folder, None)  # its follower's now
        assert sorted(storage.store_of(folder).iterdir()) == versions
    assert os.path.lexists(folder) == (there != "nothing")
    assert folder.is_symlink() == (there == "link")
    assert there == "nothing" or (folder / "file").read_text() == "it"


def test_what_a_kill_left_is_in_nobodys_way(tmp_path, monkeypatch):
    folder = tmp_path / "family/tiny"
    publish(tiny_build(tmp_path, partition="p0", shared=True))
    (storage.store_of(folder) / "next").symlink_to("nowhere")
    published = publish(tiny_build(tmp_path, partition="p1", shared=True))
    version = storage.version_of(published.folder)
    assert version is not None
    (folder.parent / "other").symlink_to(folder.readlink())
    assert storage.version_of(folder.parent / "other") is None  # that of another name
    (folder.parent / "other").unlink()
    assert _is_well(tmp_path)
    remove_published(tmp_path, Entry("family/tiny", "p0"))
    remove_published(tmp_path, Entry("family/tiny", "p1"))
    monkeypatch.setenv(storage.VARIABLE, "exchange")
    publish(tiny_build(tmp_path))
    _convert_half(tmp_path)
    folder.symlink_to("elsewhere")  # a folder that came meanwhile is not replaced
    storage.mend(folder)
    assert str(folder.readlink()) == "elsewhere"


def test_the_first_version_of_a_killed_partition_is_not_missed(tmp_path):
    publish(tiny_build(tmp_path, partition="p0", shared=True))
    if (child := os.fork()) == 0:  # killed before the link names the version
        storage._link = lambda *_: os._exit(9)
        publish(tiny_build(tmp_path, partition="p1", shared=True))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    publish(tiny_build(tmp_path, partition="p2", shared=True))
    assert {item.partition for item in find_artifacts.artifacts(tmp_path)} == {"p0", "p2"}
    assert provenance.verify(tmp_path) == []
    publish(tiny_build(tmp_path, partition="p1", shared=True))
    assert _is_well(tmp_path)


def _is_well(root: Path) -> bool:
    """Whether nothing is damaged, missing or left behind."""
    stands = any(find_artifacts.artifacts(root))
    wrong = provenance.verify(root) if stands else missing(root)
    return wrong == [] and garbage(root) == []


def test_both_forms_hold_the_same_bytes(tmp_path, monkeypatch):
    states, digests = [], []
    for form in ("exchange", "link"):
        monkeypatch.setenv(storage.VARIABLE, form)
        published = publish(tiny_build(tmp_path / form))
        states.append(State.of(tmp_path / form))
        digests.append((published.record.data_version, published.record.fingerprint))
        assert (published.folder.is_symlink()) is (form == "link")
        assert [item.folder for item in find_artifacts.artifacts(tmp_path / form)] == [
            published.folder
        ]
    assert states[0].built_as(states[1]) and digests[0] == digests[1]


def test_forms_may_change_between_builds(tmp_path, monkeypatch):
    for seed, form in enumerate(("link", "exchange", "link", "link"), start=1):
        monkeypatch.setenv(storage.VARIABLE, form)
        published = publish(tiny_build(tmp_path, config=TinyConfig(seed=seed)))
        assert published.rebuilt
        assert (storage.version_of(published.folder) is not None) is (form == "link")
        assert provenance.verify(tmp_path) == []
        assert garbage(tmp_path) == []


def _root_of_both_forms(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Publish two artifacts, the first as a real folder; returns all published files."""
    for form, name in (("exchange", "folder"), ("link", "linked")):
        monkeypatch.setenv(storage.VARIABLE, form)
        publish(tiny_build(root, f"family/{name}"))
    return _published(root)


def _published(root: Path) -> dict[str, bytes]:
    return {
        f"{name}/{path}": data
        for name in ("folder", "linked")
        for path, data in snapshot(root / "family" / name).items()
    }


def test_a_root_of_both_forms_goes_through_a_mirror(tmp_path, monkeypatch):
    held = _root_of_both_forms(tmp_path / "a", monkeypatch)
    listed = [item.folder.name for item in find_artifacts.artifacts(tmp_path / "a")]
    assert sorted(listed) == ["folder", "linked"]
    assert len(pushed(tmp_path / "a", tmp_path / "m")) == 2
    for form in ("link", "exchange", "link"):
        monkeypatch.setenv(storage.VARIABLE, form)
        assert all(each.error is None for each in pulled(tmp_path / "b", tmp_path / "m"))
        assert _published(tmp_path / "b") == held
        assert _is_well(tmp_path / "b")


@pytest.mark.parametrize("symlinks", [True, False], ids=["links as links", "links followed"])
def test_a_copy_of_a_root_needs_no_build_and_takes_the_next(tmp_path, monkeypatch, symlinks):
    _root_of_both_forms(tmp_path / "a", monkeypatch)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "a", copy, symlinks=symlinks)
    shutil.rmtree(tmp_path / "a")
    assert (copy / "family/linked").is_symlink() is symlinks
    assert provenance.verify(copy) == []
    for name in ("folder", "linked"):
        assert not publish(tiny_build(copy, f"family/{name}")).rebuilt
        assert publish(tiny_build(copy, f"family/{name}", config=TinyConfig(seed=2))).rebuilt
        assert (copy / "family" / name).is_symlink()
    assert _is_well(copy)


def test_removal_takes_the_version_along_and_of_a_shared_folder_its_partition_alone(tmp_path):
    publish(tiny_build(tmp_path))
    publish(_nested(tmp_path, TinyConfig()))
    publish(_nested(tmp_path, TinyConfig(seed=2)))
    assert provenance.verify(tmp_path) == []
    remove_published(tmp_path, Entry("family/tiny"))
    assert not (tmp_path / "family/tiny").is_symlink()
    assert State.of(tmp_path) == State()
    assert _is_well(tmp_path)
    for partition in ("p0", "p1"):
        publish(tiny_build(tmp_path, partition=partition, shared=True))
    for partition, links in (("p0", True), ("p1", False)):
        root, entry = named(str(tmp_path / "family/tiny"), partition, data_root=tmp_path)
        remove_published(root, entry)
        assert (tmp_path / "family/tiny").is_symlink() is links
        assert _is_well(tmp_path)


STORE = ".gristmill/versions/tiny"


@pytest.mark.parametrize(
    "target", ["{aside}", "../aside", f"{STORE}/../aside", f"{STORE}/{'a' * 33}"]
)
def test_a_link_of_another_kind_is_not_built(tmp_path, target):
    aside = tmp_path / "aside"
    (tmp_path / "root/family").mkdir(parents=True)
    publish(tiny_build(tmp_path / "root"))
    folder = tmp_path / "root/family/tiny"
    folder.unlink()
    folder.symlink_to(target.format(aside=aside))
    with pytest.raises(GristmillError, match="is a link to"):
        publish(tiny_build(tmp_path / "root", config=TinyConfig(seed=2)), rebuild=True)
    assert folder.is_symlink()
    assert storage.version_of(folder) is None


def test_a_renamed_artifact_keeps_its_version(tmp_path):
    folder, kept = tmp_path / "family/tiny", tmp_path / "family/kept"
    publish(tiny_build(tmp_path, config=TinyConfig(seed=1)))
    before = snapshot(folder)
    folder.rename(kept)
    (tmp_path / "family/link").symlink_to("nowhere")
    store = storage.store_of(folder)
    for seed in (2, 3):
        publish(tiny_build(tmp_path, config=TinyConfig(seed=seed)))
        assert snapshot(kept) == before != snapshot(folder)
        assert len(list(store.iterdir())) == 2
    remove_published(tmp_path, Entry("family/tiny"))
    assert not os.path.lexists(folder) and snapshot(kept) == before
    kept.unlink()
    publish(tiny_build(tmp_path, config=TinyConfig(seed=4)))
    publish(tiny_build(tmp_path, config=TinyConfig(seed=5)))
    assert list(store.iterdir()) == [storage.version_of(folder)]
    (tmp_path / "other").mkdir()
    folder.rename(tmp_path / "other/tiny")
    (found,) = provenance.verify(tmp_path)
    assert str(found).startswith(f"{folder}: missing: it was published and is gone")


def _renamed(root: Path) -> tuple[Path, Path]:
    """An artifact that a person renamed, beside a later one with the first name."""
    folder, kept = root / "family/tiny", root / "family/kept"
    publish(tiny_build(root, config=TinyConfig(seed=1)))
    folder.rename(kept)
    publish(tiny_build(root, config=TinyConfig(seed=2)))
    return folder, kept


def _versions(folder: Path) -> int:
    return len(list(storage.store_of(folder).iterdir()))


def test_only_a_link_that_was_renamed_names_the_version_of_another(tmp_path):
    folder, kept = _renamed(tmp_path)
    assert storage.renamed_from(kept) == folder
    assert storage.renamed_from(folder) is None
    assert storage.renamed_from(tmp_path / "family") is None
    for target in ("nowhere", f".gristmill/versions/tiny/{'g' * 32}", "../family/tiny"):
        (tmp_path / "family/link").unlink(missing_ok=True)
        (tmp_path / "family/link").symlink_to(target)
        assert storage.renamed_from(tmp_path / "family/link") is None


@pytest.mark.parametrize("stands", [True, False])
def test_a_renamed_artifact_that_is_removed_frees_its_version(tmp_path, stands):
    folder, kept = _renamed(tmp_path)
    if not stands:
        remove_published(tmp_path, Entry("family/tiny"))
        assert _versions(folder) == 1
    remove_published(tmp_path, Entry("family/kept"))
    assert not os.path.lexists(kept)
    if stands:
        assert _versions(folder) == 1 and provenance.verify(folder) == []
    else:
        assert not storage.store_of(folder).exists()


def test_a_version_of_what_is_being_built_stays_until_its_build_ends(tmp_path):
    folder, kept = _renamed(tmp_path)
    with locks.locked(lock_of_folder(folder), "tiny"):
        remove_published(tmp_path, Entry("family/kept"))
        assert not os.path.lexists(kept) and _versions(folder) == 2
        assert list(remove.abandoned_versions(tmp_path)) == []
        remove.sweep_versions(folder)
        assert _versions(folder) == 2
    assert list(remove.abandoned_versions(tmp_path)) == [(folder, 1)]
    remove.sweep_versions(folder)
    assert _versions(folder) == 1 and provenance.verify(folder) == []
    assert list(remove.abandoned_versions(tmp_path)) == []


def test_a_link_that_goes_while_it_is_looked_at_harms_no_build(tmp_path, monkeypatch):
    folder, kept = _renamed(tmp_path)
    read = Path.readlink

    def gone(path: Path) -> Path:
        if path == kept:
            path.unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(Path, "readlink", gone)
    assert publish(tiny_build(tmp_path, config=TinyConfig(seed=3))).rebuilt
    assert _versions(folder) == 1


def test_a_reader_in_parallel_sees_old_or_new(tmp_path):
    publish(tiny_build(tmp_path))
    record = tmp_path / "family/tiny" / provenance.RECORD
    seen: set[str] = set()
    ended = threading.Event()
    wrong: list[BaseException] = []

    def read() -> None:
        while not ended.is_set():
            try:
                seen.add(provenance.read_record(record).data_version)
            except BaseException as error:  # noqa: BLE001 - the test reports it
                wrong.append(error)
                return

    thread = threading.Thread(target=read)
    thread.start()
    made = set()
    for seed in range(2, 8):
        made.add(publish(tiny_build(tmp_path, config=TinyConfig(seed=seed))).record.data_version)
    ended.set()
    thread.join()
    assert not wrong
    first = publish(tiny_build(tmp_path), rebuild=True).record.data_version
    assert seen and seen <= {*made, first}


def test_the_form_is_tried_once_and_may_be_forced(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_exchanges", {})
    monkeypatch.delenv(storage.VARIABLE)
    tried: list[Path] = []

    def refuse(place: Path) -> bool:
        tried.append(place)
        return False

    monkeypatch.setattr(atomic_fs, "can_exchange", refuse)
    assert storage.is_used(tmp_path) and storage.is_used(tmp_path)
    assert len(tried) == 1
    monkeypatch.setenv(storage.VARIABLE, "exchange")
    assert not storage.is_used(tmp_path)
    monkeypatch.setenv(storage.VARIABLE, "other")
    with pytest.raises(GristmillError, match="GRISTMILL_PUBLISH_FORM is 'other'"):
        storage.is_used(tmp_path)


Refuse = Callable[[pytest.MonkeyPatch, int], None]


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_known", {})


def refuse_renameat2(monkeypatch: pytest.MonkeyPatch, number: int, flag: int) -> None:
    """Let the kernel refuse one flag of renameat2."""
    libc = ctypes.CDLL(None, use_errno=True)

    class Libc:
        def renameat2(self, *arguments: object) -> int:
            if getattr(arguments[4], "value", None) == flag:
                ctypes.set_errno(number)
                return -1
            return int(libc.renameat2(*arguments))

    monkeypatch.setattr(atomic_fs.ctypes, "CDLL", lambda *_, **__: Libc())


def refuse_flush(monkeypatch: pytest.MonkeyPatch, number: int, *, folders: bool) -> None:
    """Let fsync of files, or of folders, fail."""
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) == folders:
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)


def refuse_call(monkeypatch: pytest.MonkeyPatch, number: int, *, owner: object, name: str) -> None:
    """Let one function fail."""

    def failing(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(owner, name, failing)


REFUSALS: dict[str, Refuse] = {
    "place": lambda patch, number: refuse_renameat2(patch, number, 1),
    "exchange": lambda patch, number: refuse_renameat2(patch, number, 2),
    "rename_over": lambda patch, number: refuse_call(patch, number, owner=Path, name="replace"),
    "hard_links": lambda patch, number: refuse_call(patch, number, owner=os, name="link"),
    "locks": lambda patch, number: refuse_call(patch, number, owner=fcntl, name="flock"),
    "flush_files": lambda patch, number: refuse_flush(patch, number, folders=False),
    "flush_folders": lambda patch, number: refuse_flush(patch, number, folders=True),
    "links": lambda patch, number: refuse_call(patch, number, owner=Path, name="symlink_to"),
}
NUMBERS = [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.ENOLCK]


def refused(found: Abilities) -> set[str]:
    return {field.name for field in fields(found) if getattr(found, field.name) is not None}


def test_a_local_file_system_gives_all_keeps_nothing_and_is_tried_once(tmp_path, monkeypatch):
    assert refused(storage.abilities(tmp_path)) == set()
    storage.state(tmp_path)
    assert list(tmp_path.iterdir()) == []
    first = storage.abilities(tmp_path)
    refuse_renameat2(monkeypatch, errno.EINVAL, 2)
    (tmp_path / "below").mkdir()
    assert storage.abilities(tmp_path / "below") is first


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("ability", REFUSALS)
def test_a_refused_call_is_one_ability_less(tmp_path, monkeypatch, ability, number):
    REFUSALS[ability](monkeypatch, number)
    found = storage.abilities(tmp_path)
    monkeypatch.undo()
    assert refused(found) == {ability}
    assert getattr(found, ability)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_a_second_holder_gets_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert storage.abilities(tmp_path).locks == "a second holder gets the lock, too"


def test_calls_that_answer_and_do_nothing_are_seen(tmp_path, monkeypatch):
    symlink_to = Path.symlink_to
    monkeypatch.setattr(atomic_fs, "_renameat2", lambda *_: None)
    monkeypatch.setattr(Path, "replace", lambda *_: None)
    monkeypatch.setattr(os, "link", lambda _, new: Path(new).write_bytes(b"x"))
    monkeypatch.setattr(Path, "symlink_to", lambda link, _: symlink_to(link, "elsewhere"))
    found = refused(storage.abilities(tmp_path))
    assert found == {"place", "exchange", "rename_over", "hard_links", "links"}


def test_names_that_differ_in_case_alone_may_be_one(tmp_path, monkeypatch):
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: exists(path) or path.name == "NAME")
    assert refused(storage.abilities(tmp_path)) == {"case"}


def test_a_folder_that_a_killed_process_left_is_removed_when_it_is_old(tmp_path):
    for name, age in (("old", 2 * 3600), ("new", 60)):
        left = tmp_path / f".gristmill-probe-{name}"
        (left / "exchange").mkdir(parents=True)
        now = left.stat().st_mtime
        os.utime(left, (now - age, now - age))
    storage.state(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".gristmill-probe-new"]


@pytest.mark.parametrize("ahead", [-100.0, 0.0, 100.0])
def test_the_clock_of_the_file_system_is_compared(tmp_path, monkeypatch, ahead):
    clock = storage.time.time_ns
    monkeypatch.setattr(storage.time, "time_ns", lambda: clock() - int(ahead * 1e9))
    assert storage.state(tmp_path).ahead_seconds == pytest.approx(ahead, abs=5)


def test_the_free_room_is_that_of_the_file_system(tmp_path, monkeypatch):
    room = os.statvfs_result((4096, 512, 100, 90, 80, 0, 0, 0, 0, 143))
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    found = storage.state(tmp_path)
    assert (found.free_bytes, found.free_inodes, found.longest_name) == (80 * 512, None, 143)


def test_the_mount_is_the_deepest_and_the_last_one(tmp_path):
    inside = tmp_path / "a b" / "data"
    inside.mkdir(parents=True)
    here = str((tmp_path / "a b").resolve())
    table = tmp_path / "mountinfo"
    lines = [
        "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/x rw",
        "2 1 0:5 / HERE rw - tmpfs tmpfs rw",
        "3 1 0:6 / HERE rw,noatime - nfs4 s:/d rw,local_lock=none",
        "4 1 0:7 / HEREx rw - xfs /dev/y rw",
        "broken",
    ]
    table.write_text("\n".join(lines).replace("HERE", here.replace(" ", "\\040")))
    found = storage.mount(inside, table)
    assert found is not None
    assert (found.kind, found.point) == ("nfs4", here)
    assert found.options == {"rw", "noatime", "local_lock=none"}
    outside = storage.mount(tmp_path, table)
    assert outside is not None and outside.kind == "ext4"
    assert storage.mount(inside, tmp_path / "none") is None


def _payload(root: SampleRoot) -> dict[str, Any]:
    """Data version and payload of each artifact partition, manifests without their times."""
    return {
        f"{record.artifact} {record.partition}": (
            record.data_version,
            {
                item.path: item.content_sha256 or sha256_file(folder / item.path)
                for item in record.outputs
                if item.payload
            },
        )
        for folder, record in root.records()
    }


def _without_paths_of_versions(root: SampleRoot) -> bool:
    """Whether no published text names a version, which the next build removes."""
    names = [folder / item.path for folder, record in root.records() for item in record.outputs]
    texts = [path for path in names if path.suffix in (".json", ".jsonl", ".md", ".html", ".txt")]
    assert len(texts) > 50
    return all(b".gristmill/versions" not in path.read_bytes() for path in texts)


@pytest.mark.slow
def test_all_samples_in_link_form(
    sample_root, vocabulary_root, sample_drops, tmp_path, monkeypatch
):
    monkeypatch.setenv(storage.VARIABLE, "link")
    day = day_of(sample_root.data)
    linked = SampleRoot.build(tmp_path, vocabulary_root, sample_drops, day)
    folders = {folder for folder, _ in linked.records()}
    assert folders and all(
        folder.is_symlink() or any(above.is_symlink() for above in folder.parents)
        for folder in folders
    )
    assert _payload(linked) == _payload(sample_root)
    assert _without_paths_of_versions(linked)
    assert "nothing needed doing" in linked.command("materialize", "--all")
    assert "are as their records say" in linked.command("verify", str(linked.data))
    listed = json.loads(linked.command("ls", str(linked.data), "--json"))
    assert len(listed) == len(linked.records())
    assert {item["state"] for item in listed} == {"current"}
