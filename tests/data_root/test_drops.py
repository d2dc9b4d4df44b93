"""Drops that may be built from: each state, and how often a file is hashed."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill import families
from gristmill.chess.raw.drops import available
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.data_root import DataRoot, NotReady
from gristmill.data_root.drops import RootSettings
from gristmill.inbox import ARRIVING, GONE, READY, REFUSED, TOML, UNREAD, WAITS, State, look
from gristmill.inbox.copying import Tools, copy_in, source_files
from gristmill.inbox.listing import Account, IsThere, Unread, Waits
from gristmill.macroxue.raw.described import refuse_merged_away, stale_members
from gristmill.provenance import raw_inputs
from gristmill.provenance.raw_inputs import DropHashes
from gristmill.publish import atomic_fs
from gristmill.publish.publish import publish
from gristmill.reasoning.format.published import published_partitions
from gristmill.untrusted.files import REFUSE_LINKS
from tests.marked import mark
from tests.publish.tiny import tiny_build
from tests.toy_inbox import add_inboxes, spy_on_reads, toy_kind


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def refuse(drop: Path) -> str | None:
    return "no grain in it" if drop.is_dir() and not (drop / "grain").exists() else None


def needs(drop: Path, _root: Path, is_there: IsThere) -> None:
    if drop.name == "waits" and not is_there("toy", "d2"):
        raise Waits("waits for d2")
    if drop.name == "unread":
        raise Unread("nothing reads it")


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    add_inboxes(
        monkeypatch, toy=toy_kind(refuse, needs=needs), **{"toy/recipes": toy_kind(shape=TOML)}
    )


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of files are kept as if they had been written long ago."""
    monkeypatch.setattr(raw_inputs, "CLOCK_TICK_NS", 0)


@pytest.fixture
def lake(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of the files of drops that were opened: to be hashed, since the toy opens none."""
    return spy_on_reads(monkeypatch, tmp_path)


def land(lake: DataRoot, key: str, **files: str) -> Path:
    folder = lake.inbox("toy") / key
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (files or {"grain": "oats"}).items():
        (folder / name).write_text(text)
    return folder


def listed(drop: Path, **sums: str) -> None:
    """Write the list of a drop, with these sums, by default those of its files as they are."""
    found = {path.name: digest(path.read_text()) for path in drop.iterdir()}
    lines = [f"{sha256}  {name}\n" for name, sha256 in (found | sums).items()]
    (drop / "SHA256SUMS").write_text("".join(lines))


def not_ready(lake: DataRoot, key: str) -> tuple[str, str]:
    with pytest.raises(NotReady) as caught:
        lake.ready_drop("toy", key)
    assert isinstance(caught.value, NothingToBuild)
    place = f"{lake.inbox('toy') / key}: "
    assert str(caught.value).startswith(place)
    return caught.value.state, str(caught.value).removeprefix(place)


def test_a_drop_that_is_ready_has_its_account_and_one_that_is_gone_says_how_to_forget_it(lake):
    drop = land(lake, "d1")
    assert lake.ready_drop("toy", "d1") == (drop, Account({"": ["d1"]}))
    made: list[Account] = []
    assert lake.judged("toy", drop, made).state == READY
    assert made == [Account({"": ["d1"]})]
    land(lake, "d1")
    state, reason = not_ready(lake, "d2")
    assert state == GONE
    assert reason == ("the drop is gone: bring it back, or forget it with `gristmill retire d2`")
    assert lake.judged("toy", lake.inbox("toy") / "d2").state == GONE
    _, reason = not_ready(lake, "$(reboot)")
    assert reason.endswith("`gristmill retire KEY`")
    (lake.inbox("toy/recipes")).mkdir(parents=True)
    with pytest.raises(NotReady, match=r"gristmill retire -- -r`"):
        lake.ready_drop("toy/recipes", "-r.toml")


def test_a_drop_that_is_arriving_or_that_nothing_reads_is_not_ready(lake):
    (land(lake, "d1") / ".incomplete").touch()
    state, reason = not_ready(lake, "d1")
    assert (state, reason[:11]) == (ARRIVING, ".incomplete")
    drop, made = land(lake, "unread"), list[Account]()
    assert not_ready(lake, "unread") == (UNREAD, "nothing reads it")
    assert lake.judged("toy", drop, made).state == UNREAD
    assert made == [Account({"": ["unread"]})]


def test_a_drop_that_waits_is_ready_when_the_other_one_is_whole(lake):
    land(lake, "waits")
    assert not_ready(lake, "waits") == (WAITS, "waits for d2")
    other = land(lake, "d2")
    (other / ".incomplete").touch()
    assert not_ready(lake, "waits") == (WAITS, "waits for d2")
    (other / ".incomplete").unlink()
    (other / "grain").rename(other / "chaff")
    assert not_ready(lake, "waits") == (WAITS, "waits for d2")
    (other / "chaff").rename(other / "grain")
    assert lake.ready_drop("toy", "waits")[0].name == "waits"


def test_a_drop_that_is_refused_or_has_wrong_settings_is_a_failure(lake):
    drop = land(lake, "d1", chaff="x")
    with pytest.raises(GristmillError) as caught:
        lake.ready_drop("toy", "d1")
    assert str(caught.value) == f"{drop}: no grain in it"
    assert not isinstance(caught.value, NothingToBuild)
    made: list[Account] = []
    assert lake.judged("toy", lake.inbox("toy") / "d1", made).state == REFUSED
    assert made == []
    drop = land(lake, "d1")
    (drop / "gristmill.toml").write_text("[toy.nothing]\n")
    with pytest.raises(GristmillError, match="unknown table"):
        lake.ready_drop("toy", "d1")


def test_a_look_of_a_sensor_waits_for_the_seconds_of_the_other_drop_and_a_person_does_not(lake):
    land(lake, "waits"), land(lake, "d2")
    drop = lake.inbox("toy") / "waits"
    assert lake.asked("toy").refuse(drop) is None
    with pytest.raises(Waits):
        lake.asked("toy", by_person=False).refuse(drop)
    (lake.inbox("toy") / "d2/.done").touch()
    assert lake.asked("toy", by_person=False).refuse(drop) is None


# Sums


def test_a_wrong_sum_is_refused_by_the_build_and_by_each_look_after_it(lake):
    drop = land(lake, "d1", grain="oats", other="rye")
    listed(drop, other=digest("wheat"))
    state = State()
    for _ in range(2):
        seen = look(lake.inbox("toy"), state, lake.asked("toy"), 20, 60.0)
    assert seen.refusals == []  # no look hashes
    assert lake.judged("toy", drop).state == READY
    with pytest.raises(GristmillError) as caught:
        lake.ready_drop("toy", "d1")
    assert str(caught.value) == (
        f"{drop / 'other'}: its sha256 is {digest('rye')[:12]}…, but SHA256SUMS has "
        f"{digest('wheat')[:12]}…: copy the file again"
    )
    found = DataRoot(lake.root).judged("toy", drop)
    assert (found.state, found.reason) == (REFUSED, str(caught.value))
    (drop / "other").write_text("wheat")
    assert lake.judged("toy", drop).state == READY
    assert lake.ready_drop("toy", "d1")[0] == drop


def test_a_file_of_a_list_is_hashed_once_by_the_state_and_the_inputs(lake, read):
    drop = land(lake, "d1", grain="oats", other="rye", third="wheat")
    listed(drop)
    lake.ready_drop("toy", "d1")
    assert sorted(read) == ["grain", "other", "third"]
    lake.ready_drop("toy", "d1")
    files = [drop / name for name in ("grain", "other", "third")]
    made = lake.raw_inputs("toy/d1", files, "toy/raw", "d1")
    assert [item.sha256 for item in made] == [digest(text) for text in ("oats", "rye", "wheat")]
    DataRoot(lake.root).ready_drop("toy", "d1")
    assert len(read) == 3
    (drop / "other").write_text("RYE")
    listed(drop)
    lake.ready_drop("toy", "d1")
    assert read[3:] == ["other"]


def test_a_file_that_is_in_no_list_is_hashed_by_the_inputs_alone(lake, read):
    drop = land(lake, "d1", grain="oats", other="rye")
    (drop / "SHA256SUMS").write_text(f"{digest('oats')}  grain\n")
    lake.ready_drop("toy", "d1")
    assert read == ["grain"]
    lake.raw_inputs("toy/d1", [drop / "grain", drop / "other"], "toy/raw", "d1")
    assert read == ["grain", "other"]
    without = land(lake, "d2")
    lake.ready_drop("toy", "d2")
    lake.raw_inputs("toy/d2", [without / "grain"], "toy/raw", "d2")
    assert read == ["grain", "other", "grain"]


def test_a_drop_whose_sums_the_copy_kept_is_never_hashed_again(lake, read, tmp_path):
    source = tmp_path / "made"
    source.mkdir()
    (source / "grain").write_text("oats")
    lake.inbox("toy").mkdir(parents=True)
    tools = Tools(atomic_fs.place, atomic_fs.exchange, lambda _: None, REFUSE_LINKS)
    place = lake.inbox("toy") / "d1"
    copied = copy_in(source, place, source_files(source, REFUSE_LINKS), tools)
    stamps = {
        name: (sha256, raw_inputs.stamp_of((place / name).stat()))
        for name, sha256 in copied.sums.items()
    }
    DropHashes(lake.root, place).keep(stamps, is_own=True)
    read.clear()  # the copy compared itself
    lake.ready_drop("toy", "d1")
    made = lake.raw_inputs("toy/d1", [place / "grain"], "toy/raw", "d1")
    assert (made[0].sha256, read) == (digest("oats"), [])


@pytest.mark.parametrize("why", ["a moment ago", "no note", "a name that no record can hold"])
def test_a_sum_without_a_note_is_compared_nevertheless(lake, monkeypatch, why):
    """On a full disk, and while another process writes the notes of the drop."""
    drop, name = land(lake, "d1", grain="oats"), os.fsdecode(b"\xff")
    listed(drop, grain=digest("wheat"))
    if why == "a moment ago":
        monkeypatch.setattr(raw_inputs, "CLOCK_TICK_NS", 60_000_000_000)
    elif why == "no note":
        (lake.root / ".gristmill").write_text("a file instead of the folder")
    else:
        (drop / name).write_text("x")
        text = f"{digest('wheat')}  grain\n{digest('x')}  {name}\n"
        (drop / "SHA256SUMS").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(GristmillError, match="grain: its sha256 is"):
        lake.ready_drop("toy", "d1")


def test_the_sum_of_a_file_in_an_inbox_within_another_is_compared(lake, read):
    recipe = lake.inbox("toy/recipes") / "r.toml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text("x = 1")
    (recipe.parent / "r.toml.sha256").write_text(f"{digest('x = 1')}  r.toml\n")
    assert lake.ready_drop("toy/recipes", "r.toml")[0] == recipe
    lake.raw_inputs("toy/r", [recipe], "toy/recipe", "r")
    assert read == ["r.toml"]
    (recipe.parent / "r.toml.sha256").write_text(f"{digest('x = 2')}  r.toml\n")
    with pytest.raises(GristmillError, match="its sha256 is"):
        lake.ready_drop("toy/recipes", "r.toml")


def test_a_list_of_files_that_are_links_is_compared_where_links_are_followed(lake, tmp_path):
    (tmp_path / "gristmill.toml").write_text('[inbox]\nfollow_links = true\nroots = ["store"]\n')
    (tmp_path / "store").mkdir()
    (tmp_path / "store/blob").write_text("oats")
    drop = lake.inbox("toy") / "d1"
    drop.mkdir(parents=True)
    (drop / "grain").symlink_to(tmp_path / "store/blob")
    (drop / "SHA256SUMS").write_text(f"{digest('oats')}  grain\n")
    assert lake.ready_drop("toy", "d1")[0] == drop
    (drop / "SHA256SUMS").write_text(f"{digest('rye')}  grain\n")
    with pytest.raises(GristmillError, match="its sha256 is"):
        lake.ready_drop("toy", "d1")


def test_a_drop_that_goes_while_it_is_judged_is_gone(lake, monkeypatch):
    drop = land(lake, "d1")

    def going(path: Path) -> str | None:
        shutil.rmtree(path)
        raise FileNotFoundError(2, "No such file or directory", str(path))

    add_inboxes(monkeypatch, toy=toy_kind(going))
    assert not_ready(lake, "d1")[0] == GONE
    assert not drop.exists()


def test_a_drop_without_a_list_costs_no_hash_when_it_is_judged(lake, read):
    land(lake, "d1")
    assert lake.judged("toy", lake.inbox("toy") / "d1").state == READY
    assert lake.ready_drop("toy", "d1")[0].name == "d1"
    assert read == []


@pytest.mark.parametrize(
    ("push", "means"),
    [
        ("../barn", "{above}/barn"),
        ("/barn/./grain", "/barn/grain"),
        ("s3://barn/../grain", "s3://barn/../grain"),
        ("", ""),
    ],
)
def test_a_mirror_in_a_folder_is_below_the_data_root(tmp_path, push, means):
    root = tmp_path / "data"
    root.mkdir()
    (root / "gristmill.toml").write_text(f'[mirror]\npush = "{push}"\n')
    assert RootSettings(root).mirror().push == means.format(above=tmp_path)


def test_a_mirror_for_an_asset_that_is_none_is_refused_with_the_nearest(tmp_path):
    (tmp_path / "gristmill.toml").write_text('[mirror]\nassets = ["macroxue/pck"]\n')
    with pytest.raises(BadInput) as caught:
        RootSettings(tmp_path).mirror()
    assert str(caught.value) == (
        f"{tmp_path}/gristmill.toml: [mirror] assets: no asset is "
        '"macroxue/pck": did you mean macroxue/pack?'
    )


@pytest.mark.parametrize("name", ["sudoku-sample", "grid-sample"])
def test_a_changed_file_of_a_sample_is_the_reason(lake, monkeypatch, name):
    monkeypatch.undo()  # the real inboxes
    drop = lake.inbox("puzzles") / name
    drop.parent.mkdir(parents=True)
    families.catalog("puzzles").samples[f"puzzles/{name}"](drop)
    mark(drop)
    assert lake.judged("puzzles", drop, []).state == READY
    for path in sorted(drop.glob("t*")):
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        reason = lake.judged("puzzles", drop, []).reason
        assert f"{path.name} is not as .sample lists it" in reason and "split" not in reason
        path.write_bytes(before)


def test_the_partitions_of_an_asset_are_not_those_of_another_in_its_folder(lake):
    for name, asset in (("b", "a/x"), ("a", "a/x"), ("c", "a/y")):
        publish(tiny_build(lake.root, f"tokens/{name}", partition=name, asset=asset))
    assert lake.partitions_of("a/x", "tokens") == ["a", "b"]


LISTING: dict[str, Callable[[DataRoot], object]] = {
    "tokens": lambda lake: lake.partitions_of("reasoning/tokens", "tokens"),
    "chess/raw": available,
    "macroxue/pools": lambda lake: stale_members(lake, None),
    "macroxue/pools/": lambda lake: refuse_merged_away(lake, "a"),
    "reasoning/normalized": lambda lake: published_partitions(lake, "reasoning/normalized"),
}


@pytest.mark.parametrize("place", LISTING)
def test_a_folder_without_a_record_is_named_and_warned_of_once(lake, caplog, place):
    top = lake.root / place
    for name in ("whole", "lost", "deep/lost", "deep/whole", ".hidden/lost", "whole/part", "empty"):
        (top / name).mkdir(parents=True)
        if name != "empty":
            (top / name / "file").touch()
        if name.endswith("whole"):
            (top / name / "provenance.json").write_text("{}")
    named = [line.partition(": is left out")[0] for line in lake.without_record(place, "none")]
    assert named == [f"{top}/deep/lost", f"{top}/lost"]
    assert lake.without_record(f"{place}/whole") == []
    for _ in range(2):
        with contextlib.suppress(GristmillError):  # the records are no records
            LISTING[place](lake)
    assert [record.message.partition(": is left")[0] for record in caplog.records] == named
