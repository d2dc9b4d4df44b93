"""`gristmill forget`: rows leave a drop, all that was made from it, and every file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import forget as command
from gristmill import front, provenance
from gristmill.chess.samples import write_sample
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Request, kind_of_asset
from gristmill.macroxue import StepDataset
from gristmill.macroxue.samples import write_drop as write_logs
from gristmill.mirror import transfers
from gristmill.provenance.find_artifacts import artifacts, readable
from gristmill.puzzles.raw import samples
from gristmill.reasoning.format.index import Numbers
from gristmill.run.locks import locked
from gristmill.synth.samples import write_drop as write_synth
from gristmill.takedowns import plan, work
from gristmill.takedowns.left_out import rows_in
from gristmill.takedowns.search import Search
from tests.commands.drops import Command, land, printed
from tests.json_lines import jsonl
from tests.leaks import plants
from tests.paths import CHECKOUT
from tests.publish.killing import State, wait_for_end

ROWS: list[dict[str, Any]] = [
    {"id": f"r{at}", "kind": f"k{at % 7}", "question": text, "answer": f"It is {at}."}
    for at, text in enumerate(plants.prose(5, 20))
]
KILLS = 16
NAMED = 3
"""The row, from 0, that most tests name."""
RECIPE = 'schema = 1\nname = "own"\nquestion = "question"\nanswer = "answer"\n'
CHAT = 'schema = 1\nkind = "chat"\nmessages = "messages"\nid = "id"\n'


def talk(name: str, text: str) -> dict[str, Any]:
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": f"{name} it is."}]
    return {"id": name, "messages": turns}


def corpus(path: Path) -> None:
    jsonl(path / "train.jsonl", ROWS)
    (path / "corpus.toml").write_text(RECIPE)


@pytest.fixture
def root(data: Path) -> Path:
    """A corpus, and conversations with a copy of a row and with it in a longer text."""
    corpus(data / "drops/reasoning/own")
    text = ROWS[NAMED]["question"]
    talks = [talk(f"t{at}", row["question"]) for at, row in enumerate(ROWS[10:])]
    jsonl(
        data / "drops/chat/talk/a.jsonl",
        [*talks, talk("copy", text), talk("long", f"Hear: {text} Now?")],
    )
    (data / "drops/chat/talk/corpus.toml").write_text(CHAT)
    return data


@pytest.fixture
def built(run: Command, root: Path) -> Path:
    """The same, built, with a cache that holds the text."""
    printed(run("materialize", "reasoning/normalized", "chat/conversations"))
    cache = root / ".gristmill/browse/a.txt"
    cache.parent.mkdir(parents=True)
    cache.write_text(f"cached {ROWS[NAMED]['question']}")
    return root


def state(root: Path) -> dict[str, bytes]:
    """All files but those of takedowns and the key."""
    return {
        str(path): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {"takedowns", "key", "locks"} & {*path.parts}
    }


def holds(root: Path, text: str) -> list[str]:
    found = Search([text]).everywhere(root, {plan.folder_of(root)})
    return sorted({each.path.relative_to(root).as_posix() for each in found})


def report(root: Path) -> dict[str, Any]:
    (path,) = plan.folder_of(root).glob("*.json")
    assert ROWS[NAMED]["question"] not in path.read_text() + path.with_suffix(".txt").read_text()
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


WAYS = {
    "file and number": ("--rows", f"train.jsonl:{NAMED + 1}\n"),
    "id": ("--rows", f"\nr{NAMED}\n"),
    "text": ("--text", f"{ROWS[NAMED]['question'].upper()}\n"),
    "column": ("--where", f"question={ROWS[NAMED]['question']}"),
}


def asked(tmp_path: Path, way: str) -> tuple[str, str]:
    option, given = WAYS[way]
    if option == "--where":
        return option, given
    file = tmp_path / "named.txt"
    file.write_text(given)
    return option, str(file)


@pytest.mark.parametrize("way", WAYS)
def test_a_dry_run_changes_nothing_and_names_all_that_holds_the_text(run, built, tmp_path, way):
    before = state(built)
    said = printed(run("forget", "reasoning/own", *asked(tmp_path, way)))
    assert state(built) == before
    assert f"own: 1 row to leave out of builds, train.jsonl:{NAMED + 1}" in said
    for path in holds(built, ROWS[NAMED]["question"]):
        assert path in said
    assert "stays: drops/chat/talk a.jsonl row 11 holds a text: --containing takes it" in said
    assert "built again: reasoning/normalized own__train" in said
    assert "nothing was changed: --yes does it" in said
    assert "built again: chat" not in said


@pytest.mark.parametrize("way", WAYS)
def test_rows_leave_every_file_and_no_other_row_goes(run, built, tmp_path, way):
    words = ("--containing", "--erase", "--yes", "--reason", "by mail")
    said = printed(run("forget", "reasoning/own", *asked(tmp_path, way), *words))
    assert "reasoning/own: 1 row erased" in said and "by mail" in said
    assert "chat/talk: 2 rows erased" in said
    assert "0 places with a text that went" in said
    assert "removed: .gristmill/browse/a.txt" in said
    assert holds(built, ROWS[NAMED]["question"]) == []
    raw = (built / "drops/reasoning/own/train.jsonl").read_text()
    assert raw == "".join(json.dumps(row) + "\n" for at, row in enumerate(ROWS) if at != NAMED)
    assert len((built / "drops/chat/talk/a.jsonl").read_text().splitlines()) == 10
    found = report(built)
    assert found["counts"]["rebuilt_bytes"] <= 1.1 * found["counts"]["affected_bytes"]
    assert (found["counts"]["rebuilt"], found["stands_still"], found["stale"]) == (2, [], [])
    assert not (plan.folder_of(built) / "plan.json").exists()
    assert provenance.verify(built) == []
    lines = (built / "reasoning/raw/own/train.jsonl").read_text().splitlines()
    assert len(lines) == len(ROWS) - 1
    assert "nothing needed doing" in run("materialize", "reasoning/normalized").output


def test_runs_whose_events_show_a_text_are_listed_and_removed(run, root, instance, tmp_path):
    notes = [f"a private note, {at}" for at in range(len(ROWS))]
    rows = [{**row, "note": note} for row, note in zip(ROWS, notes, strict=True)]
    jsonl(root / "drops/reasoning/own/train.jsonl", rows)
    printed(run("materialize", "reasoning/normalized"))  # its event shows what nothing reads
    (own,) = (each.dagster_run.run_id for each in instance.get_run_records())
    (tmp_path / "named.txt").write_text(f"{notes[0]}\n")
    words = ("forget", "reasoning/own", "--text", str(tmp_path / "named.txt"), "--erase")
    assert f"holds it: run {own}: reasoning/normalized, 1 place" in printed(run(*words))
    assert instance.has_run(own)
    assert f"removed: run {own} of reasoning/normalized" in printed(run(*words, "--yes"))
    assert not instance.has_run(own)


def test_longer_rows_stay_unless_they_are_asked_for(run, built, tmp_path):
    said = printed(run("forget", "reasoning/own", *asked(tmp_path, "id"), "--yes"))
    assert "reasoning/own: 1 row left out of builds" in said
    assert "0 places with a text that went" in said
    assert "stays: drops/chat/talk a.jsonl row 12" in said
    found = report(built)
    assert {each["row"] for each in found["stays"]} == {11, 12}
    assert {each["file"] for each in found["stands_since_rows_stay"]} == {
        "chat/conversations/talk__00/shard_00.parquet",
        "drops/chat/talk/a.jsonl",
        "drops/reasoning/own/train.jsonl",
    }


def test_a_text_of_other_rows_is_not_looked_for(run, built, tmp_path):
    jsonl(
        built / "drops/chat/more/a.jsonl", [talk(f"m{at}", ROWS[0]["question"]) for at in range(3)]
    )
    (built / "drops/chat/more/corpus.toml").write_text(CHAT)
    (tmp_path / "named.txt").write_text("m1\n")
    said = printed(run("forget", "chat/more", "--rows", str(tmp_path / "named.txt"), "--erase"))
    assert "1 text of these rows stand" in said
    assert "chat/more: 1 row to erase, a.jsonl:2" in said
    assert "holds it: drops/reasoning" not in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("reasoning/own",), "give a drop and one of --rows, --text, --where; or --continue"),
        (("--continue", "reasoning/own"), "give a drop and one of"),
        (("reasoning/own", "--where", "a=b", "--state", __file__), "--state goes with --mix"),
        (("--continue",), "no takedown is under way"),
        (("other/own", "--where", "a=b"), "name inbox and drop, as reasoning/gsm8k"),
        (("reasoning/none", "--where", "a=b"), "there is no drop"),
        (("reasoning/own", "--where", "kinds=b"), "has no column kinds: did you mean kind?"),
        (("reasoning/own", "--where", "kind=b"), "no row of reasoning/own has it"),
        (("reasoning/own", "--where", "kind"), "write KEY=VALUE"),
        (("reasoning/own", "--rows", "train.jsonl:99"), "txt:1: reasoning/own has no row train"),
        (("reasoning/own", "--rows", "zero"), "has no row with the id zero"),
        (("reasoning/own", "--rows", "train.jsonl"), "has no row with the id train.jsonl"),
        (("reasoning/own", "--rows", "\n"), "names no row"),
        (("reasoning/own", "--rows", "\udcff"), "is not UTF-8"),
        (("reasoning/own", "--rows", "\n".join(row["id"] for row in ROWS)), "no row would be left"),
        (("reasoning/own", "--text", "short"), "'short' has fewer than 8 bytes"),
    ],
)
def test_what_names_no_row_is_refused(run, root, tmp_path, words, says):
    if words[-1] not in ("a=b", __file__) and words[1:2] in (("--rows",), ("--text",)):
        (tmp_path / "named.txt").write_bytes(words[2].encode(errors="surrogateescape"))
        words = (*words[:2], str(tmp_path / "named.txt"), *words[3:])
    before = state(root)
    done = run("forget", *words)
    assert done.exit_code
    assert says in " ".join(done.output.split())
    assert state(root) == before


def test_rows_that_a_build_reads_as_one_go_together_and_others_stay(run, built, tmp_path):
    row = ROWS[NAMED]
    more = [row | {"id": "other"}, row | {"id": "differs", "answer": "It is another."}]
    jsonl(built / "drops/reasoning/own/train.jsonl", [*ROWS, *more])
    printed(run("materialize", "reasoning/normalized"))
    said = printed(run("forget", "reasoning/own", *asked(tmp_path, "id"), "--erase", "--yes"))
    assert "reasoning/own: 2 rows erased" in said
    assert "1 text of these rows stand in other rows of the drop" in said
    left = [json.loads(each) for each in (built / "drops/reasoning/own/train.jsonl").open()]
    assert left == [*ROWS[:NAMED], *ROWS[NAMED + 1 :], more[1]]
    assert len((built / "reasoning/raw/own/train.jsonl").read_text().splitlines()) == len(left)


def test_a_row_that_was_left_out_as_a_leak_keeps_its_number(run, root, tmp_path):
    kept = [row["question"] for row in (ROWS[1], ROWS[NAMED], ROWS[19])]
    jsonl(root / "drops/evals/set/a.jsonl", [{"question": each} for each in kept])
    (root / "gristmill.toml").write_text('[leaks]\ndrop = ["set"]\n')
    printed(run("materialize", "reasoning/normalized"))

    def numbers() -> dict[str, int]:
        path = root / "reasoning/raw/own/train.jsonl"
        lines = [json.loads(each)["answer"] for each in path.read_text().splitlines()]
        return {answer: Numbers(path).of(at) for at, answer in enumerate(lines)}

    assert numbers() == {f"It is {at}.": at for at in range(20) if at not in (1, NAMED, 19)}
    for names in ("r3\nr5\n", "r1\nr8\n"):
        (tmp_path / "named.txt").write_text(names)
        words = ("--rows", str(tmp_path / "named.txt"), "--erase", "--yes")
        assert "stands still: drops/evals/set/a.jsonl" in printed(
            run("forget", "reasoning/own", *words), 1
        )
    left = {f"It is {at}.": at for at in range(20) if at not in (1, 3, 5, 8, 19)}
    assert numbers() == left


def test_a_linked_drop_is_refused_before_anything_is_changed(run, built, tmp_path):
    drop = built / "drops/chat/talk"
    drop.rename(tmp_path / "real")
    drop.symlink_to(tmp_path / "real")
    before = state(tmp_path / "real")
    (tmp_path / "named.txt").write_text("copy\n")
    words = ("forget", "chat/talk", "--rows", str(tmp_path / "named.txt"), "--erase", "--yes")
    assert "is a link, or behind one" in " ".join(printed(run(*words), 1).split())
    assert state(tmp_path / "real") == before and not plan.under_way(built)


def test_rows_that_come_back_meanwhile_are_erased_again(run, built, tmp_path, monkeypatch):
    raw, build = built / "drops/reasoning/own/train.jsonl", command._build
    old = raw.read_bytes()
    monkeypatch.setattr(command, "_build", lambda *of: (build(*of), raw.write_bytes(old))[0])
    words = ("forget", "reasoning/own", *asked(tmp_path, "id"), "--erase", "--yes", "--containing")
    assert "1 rows are in raw files again" in printed(run(*words), 1)
    monkeypatch.setattr(command, "_build", build)
    assert "0 places with a text that went" in printed(run("forget", "--continue"))
    assert raw.read_text() == "".join(json.dumps(row) + "\n" for row in ROWS if row["id"] != "r3")


def test_a_file_may_have_several_takedowns(run, built, tmp_path):
    file, rows = tmp_path / "named.txt", len(ROWS)
    for name, more in (("r3", ["--erase"]), ("r12", []), ("r1", ["--erase"]), ("r15", [])):
        file.write_text(f"{name}\n")
        said = printed(run("forget", "reasoning/own", "--rows", str(file), "--yes", *more))
        rows -= 1
        assert "0 places with a text that went" in said
        lines = (built / "reasoning/raw/own/train.jsonl").read_text().splitlines()
        assert [json.loads(each)["answer"] for each in lines].count("It is 5.") == 1
        assert len(lines) == rows
    assert len((built / "drops/reasoning/own/train.jsonl").read_text().splitlines()) == 18


def test_who_reads_meanwhile_keeps_what_is_open(run, data, tmp_path):
    folder = land(data, "one")
    printed(run("materialize", "macroxue/pack"))
    land(data, "two", seed=9)
    for file in (data / "drops/macroxue/two").iterdir():
        file.rename(folder / file.name)
    (data / "drops/macroxue/two").rmdir()
    printed(run("materialize", "macroxue/pack"))
    reader = StepDataset(data / "macroxue/packs/one")
    before = [reader[at] for at in range(len(reader))]
    (tmp_path / "named.txt").write_text(min(each.name for each in folder.iterdir()).split(".")[0])
    words = ("--rows", str(tmp_path / "named.txt"), "--erase", "--yes", "--json")
    said = json.loads(run("forget", "macroxue/one", *words).stdout)
    assert (len(said["rows"]["macroxue/one"]), said["stands_still"], said["stale"]) == (2, [], [])
    after = [reader[at] for at in range(len(reader))]
    assert repr(after) == repr(before)
    assert 0 < len(StepDataset(data / "macroxue/packs/one")) < len(before)


def test_a_text_of_no_row_is_listed_with_status_1(run, root, tmp_path):
    (tmp_path / "named.txt").write_text(ROWS[NAMED]["question"].partition(" had ")[2])
    words = ("forget", "reasoning/own", "--text", str(tmp_path / "named.txt"), "--yes")
    said = printed(run(*words), 1)
    assert "reasoning/own: no row is one of the texts" in said
    assert f"stays: drops/reasoning/own train.jsonl row {NAMED + 1} holds a text" in said
    assert "nothing was changed" in said and not plan.under_way(root)


def test_versions_in_a_mirror_are_listed_with_what_removes_them(run, root, tmp_path):
    mirror, text = tmp_path / "mirror", ROWS[NAMED]["question"]
    (root / "gristmill.toml").write_text(f'[mirror]\npush = "file://{mirror}"\n')
    printed(run("materialize", "reasoning/normalized", "chat/conversations"))
    words = ("forget", "reasoning/own", *asked(tmp_path, "id"), "--erase")
    assert "in the mirror: reasoning/raw@own__train, data version" in printed(run(*words))
    assert [*Search([text]).everywhere(mirror, ())]
    made = json.loads(run(*words, "--containing", "--yes", "--json").stdout)["mirrored"]
    assert [each.split(",")[0] for each in made[:2]] == [
        "chat/conversations/talk__00",
        "reasoning/raw@own__train",
    ]
    subprocess.run(["bash", "-c", made[2].removeprefix("to remove them call: ")], check=True)
    assert [*Search([text]).everywhere(mirror, ())] == []
    done = transfers.pull(tmp_path / "pulled", str(mirror))
    assert [each.error for each in done] == [None, None]
    mirror.rename(tmp_path / "gone")
    (tmp_path / "named.txt").write_text("r1\n")
    assert f"not reached: the mirror file://{mirror}" in printed(run(*words))


def test_two_at_once_say_who_is_at_work(run, root, tmp_path):
    with locked(plan.folder_of(root) / "lock", "a takedown"):
        said = printed(run("forget", "reasoning/own", *asked(tmp_path, "id")), 1)
    assert f"another takedown is under way, of process {os.getpid()}" in " ".join(said.split())


class Killed(BaseException):
    """Ends a command where it is, as a kill does."""


_PROGRAM = """import sys; from pathlib import Path; from commands import checkout
checkout.CHECKOUT = Path(sys.argv.pop(1))
from gristmill.cli import main; main()"""


def killed(tmp_path: Path, shim: Path, words: tuple[str, ...], **at: str) -> int:
    """The status of `gristmill` in a process that is killed at a call, or traced."""
    (tmp_path / "shared").write_bytes(bytes(16))
    own = {"KILLPOINT_ROOT": str(tmp_path / "data"), "KILLPOINT_SHARED": str(tmp_path / "shared")}
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), *words],
        cwd=CHECKOUT,
        env={**os.environ, "LD_PRELOAD": str(shim), "KILLPOINT_HOW": "before", **own, **at},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    status = process.wait(120)
    assert wait_for_end(process.pid) == []
    return status


@pytest.mark.slow
def test_a_takedown_that_is_killed_at_any_call_continues_to_the_same_end(
    run, built, tmp_path, shim
) -> None:
    words = ("forget", "reasoning/own", *asked(tmp_path, "text"), "--containing", "--erase")
    start, text, folder = tmp_path / "start", ROWS[NAMED]["question"], plan.folder_of(built)
    shutil.copytree(built, start)
    (tmp_path / "trace").touch()
    assert killed(tmp_path, shim, (*words, "--yes"), KILLPOINT_TRACE=str(tmp_path / "trace")) == 0
    expected, met, calls = State.of(built), Counter[str](), list[tuple[str, int]]()
    for place in (line.split("\t")[0] for line in (tmp_path / "trace").read_text().splitlines()):
        met[place] += 1
        calls.append((place, met[place]))
    statuses = Counter[int]()
    for place, nth in calls[:: len(calls) // KILLS]:
        shutil.rmtree(built)
        shutil.copytree(start, built)
        at = {"KILLPOINT_PLACE": place, "KILLPOINT_NTH": str(nth)}
        statuses[killed(tmp_path, shim, (*words, "--yes"), **at)] += 1
        reports = [*folder.glob("2*.json")]
        assert not reports or holds(built, text) == [], (place, nth)
        if (folder / "plan.json").exists():
            assert "is under way" in run(*words, "--yes").output
            printed(run("forget", "--continue"))
        elif not reports:
            printed(run(*words, "--yes"))
        assert State.of(built).built_as(expected), (place, nth)
        assert holds(built, text) == [] and not (folder / "plan.json").exists()
        assert provenance.verify(built) == []
    assert statuses[-9] >= KILLS / 2 and {*statuses} <= {-9, 0}, statuses


def test_two_processes_at_once_end_as_one(run, built, tmp_path, shim):
    words = ("forget", "reasoning/own", *asked(tmp_path, "id"), "--erase", "--containing", "--yes")
    with ThreadPoolExecutor(2) as threads:
        statuses = [*threads.map(lambda _: killed(tmp_path, shim, words), range(2))]
    assert sorted(statuses) == [0, 1]
    assert holds(built, ROWS[NAMED]["question"]) == [] and len(report(built)["rows"]) == 2


def talks(path: Path) -> None:
    jsonl(path / "a.jsonl", [talk(f"t{at}", each) for at, each in enumerate(plants.prose(3, 12))])
    (path / "corpus.toml").write_text(f"shards = 2\n{CHAT}")


def conversion(path: Path) -> None:
    path.mkdir(parents=True)
    for at, text in enumerate(plants.prose(4, 4)):
        rows = [{"messages_json": json.dumps(text * n), "synth_id": f"{at}-{n}"} for n in (1, 2, 3)]
        pq.write_table(pa.Table.from_pylist(rows), path / f"synth_harmony_shard_0{at}.parquet")
    (path / "manifest.json").write_text('{"schema_version": "synth_harmony_v1"}')
    (path / "metadata.json").write_text("{}")


def kaggle(path: Path) -> None:
    grids = [[[at] * 9 for _ in range(at)] for at in range(1, 7)]
    pairs = [{"input": grid, "output": grid[::-1]} for grid in grids]
    tasks = {f"t{at}": {"train": [pairs[at]], "test": [pairs[at + 3]]} for at in range(3)}
    solutions = {f"t{at}": [pairs[at + 3]["output"]] for at in range(3)}
    path.mkdir(parents=True)
    for kind, value in (("challenges", tasks), ("solutions", solutions)):
        (path / f"arc-agi_training_{kind}.json").write_text(json.dumps(value))


FAMILIES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "macroxue/a": (partial(write_logs, seed=1, games=2, max_moves=30, depth=6), "", "pack"),
    "chess/2024-02.pgn": (partial(write_sample, "2024-02", 12), "2024-02.pgn:1", "valid_games"),
    "chess/own": (
        lambda path: path.mkdir(parents=True) or write_sample("2024-02", 12, path / "a.pgn"),
        *("a.pgn:3", "valid_games"),
    ),
    "synth/raw": (partial(write_synth, files=4, rows=12), "synth_001.parquet:3", "harmony"),
    "synth_harmony/ready": (conversion, "synth_harmony_shard_00.parquet:2", "harmony"),
    "chat/talk": (talks, "a.jsonl:3", "conversations"),
    "puzzles/arc-sample": (samples.write_arc_sample, "frame", "arc"),
    "puzzles/kaggle": (kaggle, "t1", "arc"),
    "puzzles/sudoku-sample": (samples.write_sudoku_sample, "train.csv:5", "sudoku"),
    "puzzles/maze-sample": (samples.write_maze_sample, "train.csv:5", "maze"),
    "puzzles/grid-sample": (samples.write_grid_sample, "train.jsonl:5", "grid"),
}
"""What writes a drop, the row of it that goes, and the asset whose samples are traced."""


@pytest.mark.parametrize("way", ["drop", "build"])
@pytest.mark.parametrize("name", [*FAMILIES, "reasoning/own"])
def test_erased_rows_of_every_family_stay_out_when_their_drop_comes_again(
    run, data, tmp_path, monkeypatch, name, way
):
    (tmp_path / "own").mkdir()
    source, drop = tmp_path / "own" / Path(name).name, data / "drops" / name
    FAMILIES.get(name, [corpus])[0](source)
    monkeypatch.setattr(front, "_published", lambda *_: iter(()))
    words = {
        "drop": ("drop", str(source), "--family", name.split("/")[0]),
        "build": ("build", str(source), "--data-root", str(data)),
    }[way]
    run(*words)
    target = work.target_of(data, name)
    first, *stay = [each.values for each in target.units()]
    units = [each for each in target.units() if each.values == first]
    stay = [each for each in stay if each != first]
    how = {"containing": False, "erase": True, "reason": "asked", "shared": 0}
    made = work.planned(target, units, [], how)
    work.leave_out(data, made)
    assert "taken out" not in run(*words, "--replace").output
    work.erase_rows(data, made)
    for is_gone in (False, True):
        for path in drop.parent.glob(f"{drop.name}*") if is_gone else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        said = run(*words, "--replace").output
        assert f"taken out of it: {len(units)} forgotten on" in " ".join(said.split())
        assert [each.values for each in target.units()] == stay


def traced(root: Path, asset: str) -> set[str]:
    """The raw places of all samples of the artifacts of an asset."""
    kind, found = kind_of_asset(asset), set[str]()
    assert kind is not None and kind.trace is not None
    for item, record, _ in readable(artifacts(root)):
        for sample in map(str, count() if record.asset == asset else ()):
            try:
                steps = [*kind.trace(Request(item.folder, sample, {"shard": record.partition}))]
            except (GristmillError, IndexError):
                break
            facts = [each for step in steps for each in step.facts().items()]
            assert not {"not_traced", "raw_note"} & {name for name, _ in facts}
            found.add(" ".join(f"{name} {value}" for name, value in facts if "raw" in name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_rows_of_every_family_go_by_tombstones_and_by_erasing(run, data, tmp_path, name):
    writes, named, asset = FAMILIES[name]
    drop, asset = data / "drops" / name, f"{name.split('/')[0].split('_')[0]}/{asset}"
    drop.parent.mkdir(parents=True, exist_ok=True)
    writes(drop)
    if "kaggle" in name:
        recipe = 'kind = "arc"\nsources = ["kaggle"]\n[settings]\nevaluation = ["training"]\n'
        (drop.parent / "recipes").mkdir()
        (drop.parent / "recipes/kaggle.toml").write_text(recipe)
    target = work.target_of(data, name)
    (tmp_path / "named.txt").write_text(named or next(target.units()).name)
    units = work.by_rows(target, tmp_path / "named.txt")
    texts, gone = work.own_texts(target, units)[0], [each.values for each in units]
    stay = [each.values for each in target.units() if each.values not in gone]
    talks(data / "drops/chat/copy")
    with (data / "drops/chat/copy/a.jsonl").open("a") as file:
        file.writelines(json.dumps(talk(text, text)) + "\n" for text in texts)
    assets = dict.fromkeys(["chess/elite_pgn"] * ("chess" in name) + [asset, "chat/conversations"])
    printed(run("materialize", *assets))
    files, places = state(data / "drops"), traced(data, asset)
    words = ("forget", name, "--rows", str(tmp_path / "named.txt"), "--containing", "--yes")
    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(command, "_build", lambda *_: (_ for _ in ()).throw(Killed))
        run(*words)
    said = printed(run("forget", "--continue"))
    assert f"; {len(units)} forgotten ({len(units)} 20" in said
    assert "0 places with a text that went" in said
    after = state(data / "drops")
    assert {path: after[path] for path in files} == files and len(after) == len(files) + 2
    # Places are those of the raw files; those of Kaggle's are whole files.
    assert traced(data, asset) < places or "kaggle" in name
    for is_erased in (False, True):
        if is_erased:
            assert "0 places with a text" in printed(run(*words, "--erase"))
            assert holds(data, texts[0]) == [] and rows_in(data, drop) == {}
            assert [each.values for each in target.units()] == stay
        printed(run("verify", str(data), "--rebuild"))
        assert "nothing needed doing" in printed(run("materialize", *assets))
    (data / ".gristmill/key").write_bytes(b"1" * 32)
    with pytest.raises(BadInput, match=r"forgotten.jsonl:1: its hash is of another key"):
        rows_in(data, drop)
