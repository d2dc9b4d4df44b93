"""Every state of a drop at every entrance, in every inbox: one reason, one state, no other bytes.

See also `drop_world.py`: the entrances, and `inbox_cases.py`: a drop of each inbox.
"""

import gzip
import itertools
import os
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gristmill.inbox import ARRIVING, GONE, READY, REFUSED, UNREAD, WAITS, Judgement
from gristmill.inbox.marks import DONE
from gristmill.provenance import raw_inputs
from resources import Lake
from tests import budget
from tests.assets.puzzles.drops import put_recipe, put_tasks
from tests.commands.drop_world import World, new_world, one_line, opened
from tests.commands.drops import printed, spoil
from tests.commands.inbox_cases import (
    CASES,
    CONVERTED,
    DOMINO,
    MONTH,
    PACK,
    POOL,
    QUESTIONS,
    READY_SYNTH,
    SYNTH,
    TALKS,
    TASKS,
    Case,
)
from tests.run_folder import RunFolder
from tests.sensors.ticks import partitions_of

TOGETHER = tuple(case for case in CASES if case is not READY_SYNTH)
"""The cases that fit into one data root: there is one Harmony dataset."""
OF_CONFIG = (POOL, DOMINO)
"""The cases whose file is no input in a record, only a part of the config."""
LOCAL = ("reasoning/normalized", "puzzles/arc", "puzzles/domino")
"""The assets of the cases that `gristmill build` takes."""
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.inbox)


def _copy(source: Path, folder: Path) -> Path:
    shutil.copytree(source, folder, symlinks=True, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def bare(run_folder: RunFolder, vocabulary_root: Path) -> Path:
    """A data root with the vocabularies alone."""

    def make(folder: Path) -> None:
        new_world(folder)
        _copy(vocabulary_root / "drops", folder / "data/drops")
        with opened(folder) as world:
            printed(world.run("materialize", "--all"))

    return run_folder.once("drop_states_bare", make)


@pytest.fixture(scope="module")
def built(run_folder: RunFolder, bare: Path) -> Path:
    """A data root in which a drop of each inbox is built, but of finished conversions."""

    def make(folder: Path) -> None:
        _copy(bare, folder)
        with opened(folder) as world:
            for case in TOGETHER:
                case.put(world.data)
            printed(world.run("materialize", *(case.asset for case in TOGETHER), "macroxue/values"))
            printed(world.run("materialize", "synth/harmony_manifest"))
            shutil.copytree(world.data / "synth_harmony", folder / CONVERTED)
            for case in (SYNTH, MONTH, QUESTIONS, TALKS):
                world.count_as_built(case)

    return run_folder.once("drop_states_built", make)


@pytest.fixture(scope="module")
def imported(run_folder: RunFolder, bare: Path, built: Path) -> Path:
    """A data root in which a finished conversion is built."""

    def make(folder: Path) -> None:
        _copy(bare, folder)
        _copy(built / CONVERTED, folder / CONVERTED)
        with opened(folder) as world:
            READY_SYNTH.put(world.data)
            printed(world.run("materialize", READY_SYNTH.asset))

    return run_folder.once("drop_states_imported", make)


@pytest.fixture
def empty(bare: Path, built: Path, tmp_path: Path) -> Iterator[World]:
    """A data root without drops."""
    _copy(built / CONVERTED, tmp_path / CONVERTED)
    with opened(_copy(bare, tmp_path)) as world:
        yield world


@pytest.fixture
def full(built: Path, tmp_path: Path) -> Iterator[World]:
    """A data root in which the drops of `TOGETHER` are built."""
    with opened(_copy(built, tmp_path)) as world:
        yield world


@pytest.fixture(params=CASES, ids=lambda case: case.inbox)
def one_built(
    request: pytest.FixtureRequest, built: Path, imported: Path, tmp_path: Path
) -> Iterator[tuple[World, Case]]:
    """A data root in which drops are built, and the case of one of them."""
    source = imported if request.param is READY_SYNTH else built
    with opened(_copy(source, tmp_path)) as world:
        yield world, request.param


def _entrances(world: World, case: Case, state: str, status: int) -> str:
    """Ask every entrance about a drop that was built before; return its reason."""
    before = world.bytes_of()
    found = world.judged(case)
    assert found.state == state
    reason = one_line(found.reason)
    # As a line says it that names the drop before.
    words = reason.removeprefix(f"{case.drop(world.data)}: ")

    tick = world.settled_tick(case)
    assert case.asset not in _requested(tick), "the sensor asked for a run"
    skipped = one_line(str(tick.skip_reason.skip_message if tick.skip_reason else ""))
    said = f"still arriving: {case.key}" if state == ARRIVING else f"{case.key} "
    assert said in skipped and (state == ARRIVING or reason[:200] in skipped), skipped
    passed, rows = world.arrivals(case)
    assert not passed and rows[case.key][0] == state
    assert one_line(rows[case.key][1]) == reason

    text = one_line(printed(world.run("materialize", case.asset, "--partition", case.partition), 1))
    assert words in text
    assert ("failed " in text) == (state == REFUSED), text
    assert words in one_line(printed(world.run("materialize", case.asset), status))
    if case.asset in LOCAL:
        assert words in one_line(printed(world.run("build", case.asset, case.partition), 1))
        assert words in one_line(printed(world.run("build", case.asset), status))

    run = world.button(case)
    assert run.success == (state != REFUSED)
    assert world.built_check(case) == (state != REFUSED)
    whole = one_line(world.run("ls", str(world.data)).output)
    assert f"drops/{case.shown}: {state}: {reason}" in whole, whole
    listed, why = world.listed(case)
    shown = WAITS if state == READY else f"drop {state}"
    assert (listed, one_line(why)) == (shown, reason)
    assert reason in one_line(printed(world.run("verify", str(world.data)), int(state == REFUSED)))
    assert world.bytes_of() == before, "something was published"
    return reason


def _requested(tick: Any) -> set[str]:
    return {
        asset.to_user_string()
        for request in tick.run_requests or ()
        for asset in request.asset_selection or ()
    }


def _words_to_copy(world: World, tmp_path: Path, case: Case) -> tuple[str, ...]:
    if case is POOL:
        PACK.put(world.data)
        printed(world.run("materialize", PACK.asset))
    outside = World(tmp_path / "outside")
    (outside.folder / "data").mkdir(parents=True)
    if case is READY_SYNTH:
        _copy(world.folder / CONVERTED, outside.folder / CONVERTED)
    case.put(outside.data)
    (SYNTH.drop(outside.data) / "gristmill.toml").unlink(missing_ok=True)
    return "drop", str(case.drop(outside.data)), "--family", case.inbox


@each_case
def test_a_ready_drop_is_taken_by_its_sensor_and_ready_at_every_entrance(empty, tmp_path, case):
    words = _words_to_copy(empty, tmp_path, case)
    copied = printed(empty.run(*words))
    assert copied.splitlines()[-1].startswith("ready: its sensor takes it within a minute")
    assert empty.judged(case) == Judgement(READY)
    untaken = "its sensor has not taken it yet: see its last tick"
    assert empty.arrivals(case) == (False, {case.key: (READY, untaken)})
    tick = empty.settled_tick(case)
    assert case.asset in _requested(tick)
    asked = [key for request in tick.run_requests or () for key in partitions_of(request)]
    assert case.partition in asked
    assert empty.arrivals(case) == (True, {})
    listed = empty.run("ls", str(empty.data)).output
    assert f"{case.shown}: ready: nothing is built of it" in listed
    again = printed(empty.run(*words))
    assert "there already" in again
    assert "ready" in again or "taken" in again


@pytest.mark.slow
def test_an_arriving_drop_leaves_its_artifact_and_is_no_failure(one_built):
    world, case = one_built
    case.mark(world.data, "incomplete").touch()
    reason = _entrances(world, case, ARRIVING, status=0)
    assert "says that it is not complete: remove that file" in reason


@pytest.mark.slow
def test_a_drop_that_its_family_refuses_leaves_its_artifact_and_fails_every_entrance(one_built):
    world, case = one_built
    case.spoil(case.drop(world.data))
    assert case.word in _entrances(world, case, REFUSED, status=1)


def _write(octets: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(octets)


def _replace(make: Callable[[Path], object]) -> Callable[[Path], object]:
    """What removes a file and makes something else in its place."""
    return lambda file: (file.unlink(), make(file))


SPOILS: dict[str, Callable[[Path], object]] = {
    "empty": _write(b""),
    "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "noise": _write(random.Random(3).randbytes(4096)),
    "page": _write(b"<!DOCTYPE html><html><body>404 Not Found</body></html>"),
    "pointer": _write(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
    "UTF-16": lambda file: file.write_bytes(b"\xff\xfe\x00" + file.read_bytes()),
    "gzip": lambda file: file.write_bytes(gzip.compress(file.read_bytes())[:-6]),
    "deep": _write(b"[" * 100_000),
    "magic": _write(b"PAR1"),
    "NUL": _write(b"a,b\n1,\x002\n"),
}
INSTEAD: dict[str, Callable[[Path], object]] = {
    "link": _replace(lambda file: file.symlink_to("nowhere")),
    "loop": _replace(lambda file: file.symlink_to(file)),
    "pipe": _replace(os.mkfifo),
    "folder": _replace(Path.mkdir),
}
SPOILT = [
    (case, how)
    for case in CASES
    for how in (SPOILS if case.name.endswith((".pgn", ".toml")) else SPOILS | INSTEAD)
]
"""A drop that is a folder, with each; what is no file has not the key of a drop that is a file."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "how"),
    budget.some(SPOILT, each=2, least=30),
    ids=lambda given: given if isinstance(given, str) else given.inbox,
)
def test_a_spoilt_file_gets_one_answer_and_changes_nothing(built, imported, tmp_path, case, how):
    with opened(_copy(imported if case is READY_SYNTH else built, tmp_path)) as world:
        drop = case.drop(world.data)
        files = [drop, *sorted(path for path in drop.rglob("*") if path.suffix != ".toml")]
        (SPOILS | INSTEAD)[how](
            max(filter(Path.is_file, files), key=lambda file: file.stat().st_size)
        )
        before = world.bytes_of()
        if world.judged(case).state == REFUSED:
            _entrances(world, case, REFUSED, status=1)
            return
        found = world.run("materialize", case.asset, "--partition", case.partition)
        assert isinstance(found.exception, SystemExit | None), found.exception
        assert "does not expect this error" not in found.output
        assert world.button(case).success == (found.exit_code == 0)
        assert found.exit_code == 0 or world.bytes_of() == before


@pytest.mark.slow
def test_a_drop_that_is_gone_leaves_an_intact_artifact_green(one_built):
    world, case = one_built
    before = world.bytes_of()
    drop = case.drop(world.data)
    shutil.rmtree(drop) if drop.is_dir() else drop.unlink()
    assert world.judged(case).state == GONE
    assert not _requested(world.settled_tick(case))
    passed, rows = world.arrivals(case)
    assert not passed and rows[case.key][0] == GONE
    assert f"`gristmill retire {case.key}`" in rows[case.key][1]
    named = world.run("materialize", case.asset, "--partition", case.partition)
    if case is MONTH:  # its PGN is the artifact, and needs no drop
        assert named.exit_code == 0 and "unchanged" in named.output
    else:
        assert named.exit_code == 1 and "not built" in named.output, named.output
        assert "failed" not in named.output
        cure = f"bring it back, or forget it with `gristmill retire {case.key}`"
        assert case is not PACK or cure in one_line(named.output)
    assert world.button(case).success
    checks = world.evaluated(case)
    assert [checks.get(name) for name in ("built", "intact", "lawful")] == [True, True, True]
    assert world.listed(case)[0] == "current (inputs gone)"
    every = printed(world.run("materialize", case.asset))
    assert "failed" not in every
    verified = printed(world.run("verify", str(world.data)))
    row = rf"not built(, since they have no drop:.*)? {case.asset} ([^;]*, )?{case.partition}\b"
    assert case is MONTH or re.search(row, one_line(every)), every
    assert f"drops/{case.inbox}/{case.name}: gone: " in verified, verified
    assert world.bytes_of() == before


@pytest.mark.slow
def test_drops_that_are_all_arriving_are_named_by_all_and_nothing_is_built(empty):
    for case in TOGETHER:
        case.put(empty.data)
        case.mark(empty.data, "incomplete").touch()
    (empty.data / "drops/macroxue/two/.incomplete").touch()
    before = empty.bytes_of()
    said = printed(empty.run("materialize", "--all"))
    for case in TOGETHER:
        reason = one_line(empty.judged(case).reason)
        assert f"{case.shown}: {reason}" in one_line(said), case.inbox
    assert empty.bytes_of() == before


@pytest.mark.slow
def test_a_list_that_differs_refuses_each_drop_and_one_command_names_all(full):
    for case in TOGETHER:
        lacks = "0" * 64 + (
            "  lost.file\n" if case.drop(full.data).is_dir() else f"  {case.name}\n"
        )
        case.mark(full.data, "sums").write_text(lacks)
    before = full.bytes_of()
    said = printed(full.run("materialize", *{case.asset for case in TOGETHER}), 1)
    for case in TOGETHER:
        found = full.judged(case)  # a wrong sum is known since the command hashed the file
        assert (found.state == REFUSED and "bring it, or" in found.reason) or (
            "copy the file again" in found.reason
        ), found
        assert one_line(found.reason) in one_line(said), case.inbox
        assert full.arrivals(case)[1][case.key] == (REFUSED, found.reason)
        assert full.listed(case) == ("drop refused", found.reason)
        assert case.asset not in _requested(full.settled_tick(case))
        assert not full.button(case).success
        assert full.built_check(case) is False
    assert full.run("verify", str(full.data)).exit_code == 1
    assert full.bytes_of() == before


def test_a_game_that_is_cut_fails_its_build_and_leaves_the_artifact(full):
    games = spoil(PACK.drop(full.data))
    before = full.bytes_of()
    said = printed(full.run("materialize", PACK.asset), 1)
    assert f"failed macroxue/pack one: {games}:2: not JSON" in said
    assert not full.button(PACK).success
    assert full.built_check(PACK) is False
    assert full.bytes_of() == before


@pytest.mark.slow
def test_a_pool_waits_for_a_pack_that_is_not_built(full):
    POOL.drop(full.data).write_text('members = ["one", "three"]\n')
    found = _entrances(full, POOL, READY, status=0)
    assert found.endswith("waits for macroxue/pack three, which is not built: bring its drop")


@pytest.mark.slow
def test_a_drop_waits_for_the_other_source_of_its_recipe_and_the_recipe_waits_too(full):
    recipe = put_recipe(
        Lake(data_root=str(full.data)), "arc-sample", "arc", ["arc-sample", "other"]
    )
    waits = "waits for drops/puzzles/other: bring it, or write a recipe without it"
    found = _entrances(full, TASKS, READY, status=0)
    assert found.endswith(f"the recipe arc-sample {waits}")
    of_recipe = full.lake.judged("puzzles/recipes", recipe)
    assert (of_recipe.state, waits in of_recipe.reason) == (READY, True)
    assert full.arrivals(DOMINO)[1]["arc-sample"] == (READY, of_recipe.reason)
    put_tasks(full.lake, "other")
    assert full.lake.judged("puzzles/recipes", recipe) == Judgement(READY)
    assert full.judged(TASKS) == Judgement(READY)


def test_a_puzzle_drop_that_no_recipe_reads_is_unread_and_says_what_to_write(empty, tmp_path):
    outside = put_tasks(Lake(data_root=str(tmp_path / "outside")), "strange")
    copied = empty.run("drop", str(outside), "--family", "puzzles")
    drop = empty.data / "drops/puzzles/strange"
    reason = empty.lake.judged("puzzles", drop).reason
    assert copied.exit_code == 0
    assert f"unread: {reason}" in one_line(copied.output)
    assert 'sources = ["strange"]' in reason and "/NAME.toml" in reason
    assert empty.arrivals(TASKS) == (False, {"strange": (UNREAD, reason)})
    tick = empty.settled_tick(TASKS)
    assert not tick.run_requests and tick.skip_reason
    assert f"strange is unread: {one_line(reason)}" in str(tick.skip_reason.skip_message)
    said = printed(empty.run("materialize", "--all"))
    assert f"unread puzzles/strange: {reason}" in one_line(said)
    assert "built" not in said.replace("not built", "")
    listed = empty.run("ls", str(empty.data)).output
    assert f"drops/puzzles/strange: unread: {reason}" in one_line(listed)
    build = empty.run("build", TASKS.asset)
    assert f"unread drops/puzzles/strange: {reason}" in one_line(build.output)
    put_recipe(empty.lake, "mine", "arc", ["strange"], num_aug=1)
    assert empty.lake.judged("puzzles", drop).state == READY


@pytest.mark.slow
def test_of_two_conversations_the_one_that_is_not_named_is_unread(full):
    shutil.copytree(SYNTH.drop(full.data), full.data / "drops/synth/second")
    found = _entrances(full, SYNTH, UNREAD, status=0)
    assert "several drops are complete (synth/first, synth/second)" in found
    with (full.data / "gristmill.toml").open("a") as settings:
        settings.write('[synth.harmony]\ndrop = "synth/first"\n')
    assert full.judged(SYNTH).state == READY
    second = full.lake.judged("synth", full.data / "drops/synth/second")
    assert (second.state, "synth/first is the drop in use" in second.reason) == (UNREAD, True)
    assert full.arrivals(SYNTH)[1]["second"] == (UNREAD, second.reason)
    assert "nothing needed doing" in printed(full.run("materialize", SYNTH.asset))


def test_conversations_that_arrive_beside_others_do_not_stop_them(full):
    second = full.data / "drops/synth/second"
    shutil.copytree(SYNTH.drop(full.data), second)
    (second / ".incomplete").touch()
    assert full.judged(SYNTH).state == READY
    said = printed(full.run("materialize", SYNTH.asset))
    assert "nothing needed doing" in said
    assert "arriving synth/second: .incomplete says" in one_line(said)


def _files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]


def _raw_files(world: World) -> list[Path]:
    return _files_of(world.data / "drops")


@pytest.mark.slow
def test_what_was_built_and_did_not_change_is_current_everywhere_after_new_times_too(full):
    before = full.bytes_of()
    for times in ("as they were", "new"):
        if times == "new":
            for path in _raw_files(full):
                os.utime(path)
        first = full.listing()  # before a command looks at what stands
        said = printed(
            full.run("materialize", *(case.asset for case in TOGETHER), "macroxue/values")
        )
        assert "nothing needed doing" in said
        for case, listed in itertools.product(TOGETHER, (first, full.listing())):
            assert listed[case.asset, case.partition] == ("current", "")
        for case in TOGETHER:
            assert full.judged(case) == Judgement(READY)
            asked = full.settled_tick(case).run_requests
            # A recipe or a pool with new times is compared by a run, which finds it unchanged.
            assert not asked or (case in OF_CONFIG and times == "new"), (times, case.inbox)
            assert full.arrivals(case) == (True, {}), (times, case.inbox)
        assert len(printed(full.run("verify", str(full.data))).splitlines()) == 1
    assert full.bytes_of() == before


def test_one_command_names_each_of_many_partitions(full):
    (full.data / "drops/macroxue/one/.incomplete").touch()
    PACK.spoil(full.data / "drops/macroxue/two")
    shutil.copytree(PACK.drop(full.data), full.data / "drops/macroxue/three")
    (full.data / "drops/macroxue/three/.incomplete").unlink()
    said = printed(full.run("materialize", PACK.asset), 1)
    text = one_line(said)
    assert "not built macroxue/pack one: " in text and ".incomplete says" in text
    assert "failed macroxue/pack two: " in text and "no game in it" in text
    assert "1 built in" in text and "1 not built, 1 failed" in text, said
    months = printed(full.run("materialize", MONTH.asset))
    assert "unchanged" in months
    assert "since they have no drop" not in one_line(months), "a month that nobody asked for"


@pytest.mark.slow
@pytest.mark.parametrize("case", [PACK, QUESTIONS], ids=lambda case: case.inbox)
def test_all_builds_what_a_drop_of_one_family_gives_and_nothing_of_others(empty, case):
    before = set(empty.bytes_of())
    case.put(empty.data)
    printed(empty.run("materialize", "--all"))
    new = {name.partition("/")[0] for name in set(empty.bytes_of()) - before}
    assert new == {case.inbox}


_OPENED: list[Callable[[str], None]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _OPENED and isinstance(arguments[0], str | bytes | os.PathLike):
        _OPENED[-1](os.fsdecode(arguments[0]))


sys.addaudithook(_hook)  # it cannot be taken away: without a listener it does nothing


@pytest.fixture
def opened_files() -> Iterator[list[str]]:
    """The names of all files that this process opens."""
    names: list[str] = []
    _OPENED.append(lambda path: names.append(path.rpartition("/")[2]))
    yield names
    _OPENED.pop()


@pytest.mark.slow
def test_no_tick_and_no_listing_of_an_unchanged_root_opens_a_raw_file(full, opened_files):
    for case in TOGETHER:
        full.settled_tick(case)
    full.run("ls", str(full.data))  # the copy of the root has other inodes
    raw = {path.name for path in _raw_files(full) if path.suffix not in (".toml", ".tiktoken")}
    raw -= {DONE}  # a mark, which is empty or has a hash
    assert len(raw) > 10
    opened_files.clear()
    for case in TOGETHER:
        full.tick(case)
    assert not raw.intersection(opened_files)
    heads = {path.name for case in (TASKS, MONTH) for path in _files_of(case.drop(full.data))}
    full.run("ls", str(full.data))  # it may look into heads, where names do not say enough
    assert not (raw - heads).intersection(opened_files)
    opened_files.clear()
    (full.data / "drops/reasoning/gsm8k/train.jsonl").read_bytes()
    assert raw.intersection(opened_files) == {"train.jsonl"}  # the hook does see


@pytest.mark.slow
@each_case
def test_nothing_is_hashed_again_after_a_drop_was_words_to_copy(empty, tmp_path, case, monkeypatch):
    printed(empty.run(*_words_to_copy(empty, tmp_path, case)))
    hashed: list[str] = []
    real = raw_inputs.sha256_of
    monkeypatch.setattr(
        raw_inputs, "sha256_of", lambda file: hashed.append(str(file.name)) or real(file)
    )
    empty.settled_tick(case)
    assert empty.button(case).success
    if case in (SYNTH, READY_SYNTH):  # the other shards, and the files beside them
        printed(empty.run("materialize", case.asset, "synth/harmony_manifest"))
    again = empty.run("materialize", case.asset)
    assert "nothing needed doing" in again.output, again.output
    assert empty.listed(case) == ("current", "")
    assert hashed == []
