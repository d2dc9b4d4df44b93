"""The command line: what it shows, where it takes its data root from, how it fails."""

import errno
import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from gristmill import cli, families
from gristmill.chess import (
    SpliceConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.chess.samples import write_month
from gristmill.cli import ENTRY_POINTS, GROUPS, OWN, main
from gristmill.contract import GristmillError, Summary
from gristmill.macroxue.builders.pack import pack
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.format.files import read_runs
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, VALUE_ROW_DTYPE
from gristmill.macroxue.samples import write_drop
from gristmill.provenance import Input
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.synth.samples import write_drop as write_raw
from gristmill.vocabularies.pinned import O200K, VOCABULARIES, drop_folder, find, place
from tests.commands.drops import printed
from tests.paths import CHECKOUT, ran
from tests.publish.tiny import tiny_build


def invoke(*words: str | Path, **options: Any) -> Result:
    """`gristmill WORDS`, in this process."""
    return CliRunner().invoke(main, list(map(str, words)), **options)


@dataclass(frozen=True)
class Words:
    """A config without fields."""


def tiny(root: Path, source: Path) -> Build:
    """An artifact of one file, made from one raw file."""

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "words.txt").write_text(source.read_text())
        return Summary(files={})

    return Build(
        root=root,
        artifact="words/one",
        asset="words",
        partition="one",
        code_version="1",
        config=Words(),
        inputs=raw_inputs(root, [source], "drops", "one", {}),
        make=make,
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli")
    write_drop(root / "drop", 3, 2, 30, 6)
    pack(root / "drop", root / "pack", PackConfig(workers=1))
    return root / "pack"


def test_show_and_trace_a_run_from_start_to_end_in_any_terminal(packed):
    said = printed(invoke("show", packed, "5"))
    assert "run 0 · step 5" in said
    by_step = invoke("show", packed, "--run", "0", "--step", "5")
    assert by_step.output == said
    assert "?" in printed(
        CliRunner(charset="latin-1").invoke(main, ["show", str(packed), "--run", "0"])
    )
    said = printed(invoke("show", packed, "--run", "1"))
    first, last = (run.steps for run in read_runs(packed / "metadata.db"))
    titles = [line for line in said.splitlines() if line.startswith("run 1 · step")]
    assert len(titles) == 6
    assert titles[0].startswith("run 1 · step 0 · ")
    assert titles[-1].startswith(f"run 1 · step {last - 1:,} · ")
    assert f"steps: row {first} of {first + last}" in said
    said = printed(invoke("trace", packed, "1"))
    assert "run_id: 1\n" in said
    assert "steps_sha256: " in said


def test_verify_names_what_is_wrong_and_exits_1(tmp_path):
    source = tmp_path / "drops/words.txt"
    source.parent.mkdir()
    source.write_text("grist")
    publish(tiny(tmp_path, source))
    assert "1 artifact is as its record says\n" in printed(invoke("verify", tmp_path))
    done = invoke("verify", tmp_path, "--no-laws")
    assert done.output.endswith("1 artifact is as its record says; not checked: laws\n")
    done = invoke("verify", tmp_path, "--no-laws", "--no-inputs")
    assert done.output.endswith("says; not checked: inputs, laws\n")
    source.write_text("chaff")
    (tmp_path / "words/one/words.txt").write_text("GRIST")
    lines = printed(invoke("verify", tmp_path), 1).splitlines()
    assert any("drops/words.txt: input: sha256" in line for line in lines)
    assert any("words/one/words.txt: output: sha256" in line for line in lines)
    done = invoke("verify", "--no-inputs", tmp_path)
    assert len(done.output.splitlines()) == 1
    assert "no artifact with a provenance record" in printed(
        invoke("verify", tmp_path / "drops"), 1
    )
    done = invoke("verify", tmp_path / "nothing")
    assert (done.exit_code, "nothing: there is no such folder" in done.output) == (2, True)


def test_verify_judges_a_folder_without_a_record_by_its_format(tmp_path):
    rows = np.zeros(2, STEP_ROW_DTYPE)
    np.save(tmp_path / "steps.npy", rows)
    done = invoke("verify", tmp_path)
    lines = done.output.splitlines()
    assert (done.exit_code, lines[:3]) == (
        0,
        [
            "no record: judged as macroxue/pack, by its files (--kind names another)",
            "  steps.npy: 2 rows of 48 bytes",
            "  run_id: uint32, 0 to 0",
        ],
    )
    assert lines[-5:] == [
        "not checked: runs: there is no metadata.db",
        "not checked: row_valuation_type: there is no valuation_types.json",
        "not checked: trace: there is no trace.jsonl",
        "not checked: games: there is no metadata.db",
        "no rule that was checked is broken",
    ]
    rows["move_dir"][1] = 4
    np.save(tmp_path / "steps.npy", rows)
    done = invoke("verify", tmp_path, "--kind", "macroxue/pack")
    lines = done.output.splitlines()
    assert (done.exit_code, lines[0]) == (1, "no record: judged as macroxue/pack")
    assert lines[-1].startswith(f"{tmp_path}: run 0 step 0 (row 1): row_move_dir: (0, 0, 0, ")
    done = invoke("verify", tmp_path, "--kind", "macroxue/values")
    assert (done.exit_code, done.output.splitlines()[-1]) == (
        1,
        f"{tmp_path}: readable: {tmp_path}: holds neither values.npy nor values-*.npy: not a pack",
    )
    np.save(tmp_path / "values.npy", np.zeros(2, VALUE_ROW_DTYPE))
    done = invoke("verify", tmp_path, "--kind", "macroxue/values")
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "no rule was checked")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kind", "a/b"], "--kind a/b: there is none of this name; the kinds are macroxue/pack"),
        (["--kind", "macroxue/pack", "--no-laws"], "--kind: other options go with a record"),
        (["x", "--kind", "macroxue/pack"], "x: there is no such folder"),
    ],
)
def test_verify_refuses_a_kind_that_does_not_apply(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    where = [] if words[0] == "x" else ["."]
    done = invoke("verify", *where, *words)
    assert (done.exit_code, said in done.output) == (2, True)


def test_remove_refuses_where_something_was_made_from_it_or_takes_that_away_too(tmp_path):
    upstream = publish(tiny_build(tmp_path)).record
    made_from = Input(
        asset="test/tiny", partition="p1", data_version=upstream.data_version, path="family/tiny"
    )
    publish(tiny_build(tmp_path, "family/other", inputs=[made_from], asset="test/other"))
    words = ["remove", "test/tiny", "--partition", "p1", "--data-root", str(tmp_path)]
    for more in ([], ["--dry-run"]):
        done = invoke(*words, *more)
        assert (done.exit_code, done.output) == (
            1,
            "Error: family/tiny: not removed, since other artifacts were made from it: "
            "family/other. Add --with-dependents to remove them, too\n",
        )
    words.append("--with-dependents")
    expected = "remove: family/other\nremove: family/tiny\n"
    assert invoke(*words, "--dry-run").output == expected
    assert (tmp_path / "family/tiny").is_dir()
    assert (tmp_path / "family/other").is_dir()
    assert invoke(*words).output == expected
    assert not (tmp_path / "family/tiny").exists()
    assert not (tmp_path / "family/other").exists()
    assert publish(tiny_build(tmp_path)).record.data_version == upstream.data_version
    publish(tiny_build(tmp_path, "family/other", inputs=[made_from], asset="test/other"))
    (tmp_path / "family/tiny").rename(tmp_path / "gone")
    done = invoke("remove", tmp_path / "family/tiny")
    assert (done.exit_code, done.output) == (0, "remove: family/tiny\n")
    assert (tmp_path / "family/other").is_dir()
    (tmp_path / "family/other").rename(tmp_path / "lost")
    done = invoke("verify", tmp_path / "family/other")
    assert (done.exit_code, "family/other: missing: it was published" in done.output) == (1, True)
    done = invoke("remove", tmp_path / "family/other")
    assert (done.exit_code, done.output) == (0, "remove: family/other\n")
    assert "no artifact is here" in printed(invoke("remove", tmp_path / "family/other"), 2)


def test_a_file_in_the_place_of_a_folder_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    said = printed(invoke("samples", tmp_path / "file/data"), 1)
    assert "a file is above it in this path: name a folder" in said
    assert said.count("\n") == 1


def test_a_file_that_the_user_may_not_read_is_one_line(packed, monkeypatch):
    steps = packed / "steps.npy"

    def refused(*words: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(steps))

    monkeypatch.setattr("gristmill.browse.shown.declared_tables", refused)
    said = printed(invoke("show", packed), 1)
    assert said.startswith(f"Error: {steps}: Permission denied: let this user read and")
    assert said.count("\n") == 1


@pytest.mark.usefixtures("games_played_once")
@pytest.mark.parametrize(
    ("drop", "sample"),
    [
        ("chess/lichess_elite_2024-01.pgn", "chess/sample_2024-01.zip"),
        ("synth_harmony/mine", "synth/samples"),
        ("synth/SYNTH-01234567", "synth/samples"),
    ],
)
def test_no_sample_is_written_whose_place_a_drop_has(tmp_path, drop, sample):
    drops = tmp_path / "drops"
    (drops / drop).mkdir(parents=True)
    (drops / drop).with_name("README.md").touch()  # it is no drop
    said = printed(invoke("samples", tmp_path))
    assert not (drops / sample).exists()
    assert (drops / "chess/sample_2024-02.pgn").exists()
    *others, last = said.splitlines()
    assert last == f"{drops / sample}: not written: {drops / drop} has its place"
    assert str(drops / sample) not in others
    (drops / drop).rmdir()
    invoke("samples", tmp_path)
    assert (drops / sample).exists()
    # What is there is left alone, and is no news.
    (drops / drop).mkdir()
    assert "not written" not in invoke("samples", tmp_path).output


def test_tokenizers_in_the_data_root_of_the_environment(tmp_path, vocabulary_root):
    for vocabulary in VOCABULARIES:
        place = tmp_path / "tokenizer" / vocabulary.relative
        place.parent.mkdir(parents=True, exist_ok=True)
        source = vocabulary_root / "drops" / "tokenizers" / vocabulary.file
        place.write_bytes(source.read_bytes())
    said = printed(invoke("tokenizers", env={"GRISTMILL_DATA": str(tmp_path)}))
    for vocabulary in VOCABULARIES:
        path = drop_folder(tmp_path) / vocabulary.file
        assert str(path) in said
        assert path.stat().st_size == vocabulary.bytes
    path.write_bytes(b"broken")
    assert str(path) in printed(invoke("tokenizers", "--data-root", tmp_path), 1)


@pytest.fixture(scope="module")
def chess_month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("chess")
    write_month(root / "lichess_elite_2024-01.pgn", "2024-01", 60, 2)
    validate([root / "lichess_elite_2024-01.pgn"], root / "valid")
    build_game_dataset(root / "valid", root / "elite_2024-01_game")
    dataset = root / "elite_2024-01_game"
    build_splice_cache(dataset, dataset / "runtime_splice_cache")
    build_splice_dataset(root / "valid", root / "splices", SpliceConfig(max_samples_per_game=4))
    return root


def run(*arguments: str) -> str:
    return printed(invoke(*arguments, env={"COLUMNS": "200"}))


def test_show_a_game_and_a_position_of_every_chess_folder(chess_month):
    valid, dataset = chess_month / "valid", chess_month / "elite_2024-01_game"
    row = json.loads((valid / "valid_games.jsonl").read_text().splitlines()[3])
    start = run("show", str(valid), "3", "--ply", "0")
    assert "♜  ♞  ♝  ♛  ♚  ♝  ♞  ♜" in start
    assert "ply 0 · white to move" in start
    end = run("show", str(valid), "3")
    assert row["game_id"] in end
    assert f"headers.White: {row['headers']['White']}" in end
    assert f"ply {len(row['moves'])}" in end
    game = json.loads((dataset / "val.jsonl").read_text().splitlines()[0])
    assert game["game_id"] in run("show", str(dataset), "0", "--split", "val")
    first = run("show", str(dataset / "runtime_splice_cache"), "0")
    assert "ply 8 · " in first
    legacy = json.loads((chess_month / "splices/train.jsonl").read_text().splitlines()[5])
    assert f"next_move: {legacy['next_move']}" in run("show", str(chess_month / "splices"), "5")


def test_trace_leads_to_the_file_and_byte_of_a_game(chess_month):
    data = (chess_month / "lichess_elite_2024-01.pgn").read_bytes()
    dataset = chess_month / "elite_2024-01_game"
    row = json.loads((dataset / "test.jsonl").read_text().splitlines()[1])
    by_row = run("trace", str(dataset), "1", "--split", "test")
    assert by_row in run("trace", str(dataset), row["game_id"])
    traced = dict(line.split(": ", 1) for line in by_row.splitlines())
    assert traced["game_id"] == row["game_id"]
    assert traced["pgn"].startswith("lichess_elite_2024-01.pgn ")
    assert traced["pgn_sha256"] == hashlib.sha256(data).hexdigest()
    offset, size = int(traced["byte_offset"]), int(traced["bytes"])
    assert data[offset : offset + size].startswith(b'[Event "')
    assert data[offset : offset + size].rstrip().endswith(row["result"].encode())


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    """A data root with a vocabulary, a Harmony shard and the datasets made from it."""
    root = tmp_path_factory.mktemp("synth")
    tokenizer = root / "tokenizer"
    place(O200K, find(O200K, vocabulary_root), tokenizer)
    files = write_raw(root / "raw", files=4, rows=20)
    to_harmony(files, root / "synth_harmony", 1, HarmonyConfig(rows_per_group=7))
    shard = root / "synth_harmony/synth_harmony_shard_01.parquet"
    build_kd_shard(shard, root / "kd", KDConfig(tokenizer / "o200k_base.tiktoken", 0.2))
    return root


def test_a_document_and_the_row_it_came_from_show_the_same_tokens(conversations):
    def shard(command: str, folder: str, *words: str) -> str:
        return printed(invoke(command, conversations / folder, *words, "--shard", "01"))

    document = shard("show", "kd", "3")
    traced = dict(line.split(": ", 1) for line in shard("trace", "kd", "3").splitlines())
    assert traced["input"] == "synth_harmony_shard_01.parquet"
    row = shard("show", "synth_harmony", str(int(traced["row"]) - 1))
    assert f"synth_id: {traced['synth_id']}\n" in row
    legend = " prompt   reasoning   final  italic: masked, not in the loss\n"
    tokens, other = (
        shown.partition(legend)[2].partition("\norigin:")[0] for shown in (row, document)
    )
    assert tokens == other
    assert tokens.startswith("<|start|>system<|message|>")
    assert "<|start|>assistant<|channel|>analysis<|message|>" in tokens
    assert tokens.rstrip().endswith("<|endoftext|>")
    valid = shard("show", "kd", "0", "--split", "valid")
    assert valid.startswith("valid/01: row 0 of ")


GAME = "elite_2024-01_game"


@pytest.mark.parametrize(
    ("made", "status", "words", "message"),
    [
        ("packed", 1, "trace . 999", "has no run 999"),
        ("packed", 2, "show . --split train", "it takes --table, --run, --step"),
        ("packed", 2, "show none", "Invalid value for 'PATH': Directory"),
        ("tmp_path", 2, "show .", "is not an artifact of a known asset"),
        ("chess_month", 1, f"show {GAME} 9999", "there is no row 9,999"),
        ("chess_month", 2, f"show {GAME} 0 --ply 999", "--ply 999: the row has"),
        ("chess_month", 1, f"show {GAME}/runtime_splice_cache 9999999", "no row 9,999,999"),
        ("chess_month", 1, "show splices 9999999", "there is no row 9,999,999"),
        ("chess_month", 1, f"trace {GAME} no-such-game", "no game no-such-game"),
        ("conversations", 1, "show kd 5000 --shard 01", "there is no row 5,000"),
        ("conversations", 1, "show synth_harmony 5000 --shard 01", "there is no row 5,000"),
        ("conversations", 1, "trace kd 5000 --shard 01", "no document 5000 in train"),
        ("conversations", 1, "trace kd 0 --shard 02", "shard 02 has no trace"),
        ("conversations", 2, "show kd 0 --ply 3", "it takes --table, --shard, --split"),
        ("conversations", 2, "show kd 0 --split val", "kd has train, valid"),
        ("conversations", 2, "show kd 0 --shard 02", "kd has 01"),
        ("conversations", 2, "show synth_harmony 0 --shard 02", "synth_harmony has 01"),
        ("conversations", 2, "trace kd 0 --split test", "take one of train, valid"),
        ("conversations", 2, "trace kd 0 --run 3", "No such option"),
    ],
)
def test_what_is_not_there_or_does_not_apply_is_named(request, made, status, words, message):
    command, folder, *more = words.split()
    said = printed(invoke(command, request.getfixturevalue(made) / folder, *more), status)
    assert message in said
    assert status == 2 or said.count("\n") == 1


FAILURES = {
    "broken": OSError(5, "Input/output error", "drops/x"),
    "gone": FileNotFoundError(2, "No such file or directory", "drops/x"),
}
COMMANDS = {
    "Begin": ["samples", "tokenizers", "look", "drop", "fetch"],
    "Build": ["materialize", "ui", "build"],
    "Look": ["ls", "show", "browse", "trace", "log", "diff", "audit"],
    "Check": ["verify", "leaks", "doctor"],
    "Train": ["mix", "batch", "replay", "seen", "consumed"],
    "Share": ["push", "pull", "card", "project", "stage"],
    "Clean": ["remove", "forget", "retire", "prune", "adopt", "unstage"],
}


class Point:
    """An entry point, without an installed package."""

    def __init__(self, load: Callable[[], object]) -> None:
        self.load, self.value, self.module = load, "somewhere:command", "somewhere"


def missing(module: str) -> Callable[[], object]:
    def load() -> object:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    return load


def test_help_lists_every_command_without_importing_dagster():
    code = (
        "import sys\nfrom gristmill.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as end:\n    print(end.code, 'dagster' in sys.modules)"
    )
    done = ran([sys.executable, "-c", code], check=True)
    *lines, last = done.stdout.splitlines()
    assert last == "0 False"
    after = [line for line in lines[lines.index("Begin:") :] if line]
    found: dict[str, list[str]] = {}
    for line in after:
        if not line.startswith(" "):
            names = found.setdefault(line.removesuffix(":"), [])
        else:
            name, *words = line.split()
            names.append(name)
            assert words and words[-1].endswith(".")
    assert found == COMMANDS


_OF_RUNS = {"dagster", "sqlalchemy", "alembic", "torch", "rich"}
_OF_BUILDS = _OF_RUNS | {"numpy", "numba", "pyarrow", "polars"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (["--help"], _OF_BUILDS | {"pydantic"}),
        (["show", "--help"], _OF_BUILDS),
        (["trace", "--help"], _OF_BUILDS),
        (["browse", "--help"], _OF_BUILDS),
        (["look", "--help"], _OF_BUILDS | {"pydantic"}),
        (["mix", "--help"], _OF_BUILDS | {"pydantic"}),
        (["push", "--help"], _OF_BUILDS | {"pydantic"}),
        (["card", "--help"], _OF_BUILDS | {"pydantic"}),
        (["ls", "."], _OF_BUILDS),
        (["verify", "."], _OF_RUNS),
        (["doctor", "."], _OF_BUILDS),
    ],
)
def test_a_command_imports_what_it_needs_alone(words, unused, tmp_path):
    code = (
        "import sys\nfrom gristmill.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = ran([sys.executable, "-P", "-c", code], check=True, cwd=tmp_path, env=environment)
    imported = set(done.stdout.splitlines()[-1].split())
    assert "gristmill" in imported
    assert imported & unused == set()


def test_every_command_has_a_group_and_what_the_command_line_lacks_is_an_entry_point():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][ENTRY_POINTS]
    listed = [name for lines in GROUPS.values() for name in lines]
    assert len(set(listed)) == len(listed)
    assert set(listed) == {*main.commands, *OWN, *points}
    for name, module in OWN.items():
        assert cli._load_own(name, module).name == name
    for name, value in points.items():
        command = metadata.EntryPoint(name, value, ENTRY_POINTS).load()
        assert isinstance(command, click.Command)
        assert command.name == name
        assert command.help


@pytest.mark.parametrize("module", ["commands", "dagster", ""])
def test_a_command_that_is_not_installed_names_the_extra(monkeypatch, module):
    points = {"materialize": Point(missing(module))} if module else {}
    monkeypatch.setattr(cli, "_entry_points", lambda: points)
    said = printed(invoke("materialize", "--all"), 1)
    assert said.count("\n") == 1
    assert 'pip install -e ".[pipeline,chess]"' in said
    assert not module or f"No module named '{module}'" in said


def test_a_command_of_another_package_is_called_from_its_entry_point(monkeypatch):
    @click.command("weigh-mill")
    def weigh() -> None:
        click.echo("the mill weighs 9")

    point = Point(lambda: weigh)
    monkeypatch.setattr(cli, "_entry_points", lambda: {"weigh-mill": point})
    assert "weigh-mill" in invoke("--help").output
    assert invoke("weigh-mill").output == "the mill weighs 9\n"


def test_an_unknown_command_is_a_usage_error():
    assert "No such command 'materialise'. Did you mean 'materialize'?" in printed(
        invoke("materialise"), 2
    )
    done = invoke("qqq")
    assert (done.exit_code, done.output.splitlines()[-1]) == (2, "Error: No such command 'qqq'.")


@pytest.mark.parametrize("command", ["ls", "doctor", "audit"])
def test_a_data_root_that_nobody_gave_is_asked_for(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = " ".join(printed(invoke(command, env={"GRISTMILL_DATA": None}), 2).split())
    assert "Directory 'data' does not exist. Give the data root, or set GRISTMILL_DATA" in said
    assert "env var" not in said
    given = invoke(command, env={"GRISTMILL_DATA": "gone"})
    assert "'gone' does not exist." in given.output
    assert "Give the data root" not in given.output


def own(monkeypatch: pytest.MonkeyPatch, **members: object) -> None:
    """Have a family with the command `weigh-drop`, whose module has these members."""
    module = ModuleType("a_family_commands")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    line = "Weigh a drop."
    monkeypatch.setattr(
        families,
        "commands",
        lambda: {"weigh-drop": families.OwnCommand(module.__name__, "Look", line)},
    )


def test_a_command_of_a_family_is_listed_without_its_module_and_called_from_it(monkeypatch):
    @click.command("weigh-drop")
    @click.argument("drop")
    def weigh(drop: str) -> None:
        if drop == "none":
            raise GristmillError("there is no drop")
        if drop in FAILURES:
            raise FAILURES[drop]
        click.echo(f"{drop} weighs 3")

    own(monkeypatch)
    listed = invoke("--help")
    assert "weigh-drop   Weigh a drop." in listed.output
    own(monkeypatch, weigh_drop=weigh)
    assert invoke("weigh-drop", "a").output == "a weighs 3\n"
    failed = invoke("weigh-drop", "none")
    assert (failed.exit_code, failed.output) == (1, "Error: there is no drop\n")
    failed = invoke("weigh-drop", "broken")
    assert failed.exit_code == 1 and failed.output.startswith(
        "Error: drops/x: Input/output error: the disk or the network failed (see `dmesg`): mend it"
    )
    assert invoke("weigh-drop", "gone").exception is FAILURES["gone"]


def test_a_command_that_a_catalog_names_and_its_module_lacks_is_an_error(monkeypatch):
    own(monkeypatch, weigh_drop=len)
    done = invoke("weigh-drop")
    assert isinstance(done.exception, TypeError)
    assert "a_family_commands: weigh-drop" in str(done.exception)


def test_a_family_shadows_no_other_command_and_defines_what_its_catalog_names():
    context = click.Context(main)
    for name, (_, group, line) in families.commands().items():
        assert group in GROUPS
        assert name not in {*main.commands, *(late for lines in GROUPS.values() for late in lines)}
        _, command, _ = main.resolve_command(context, [name])
        assert command is not None
        assert (command.name, command.get_short_help_str(80)) == (name, line)


def completion(instruction: str, *words: str) -> str:
    """What the installed command prints for a shell."""
    done = ran(
        [Path(sys.executable).with_name("gristmill")],
        env={
            **os.environ,
            "_GRISTMILL_COMPLETE": instruction,
            "COMP_WORDS": " ".join(("gristmill", *words)),
            "COMP_CWORD": str(len(words)),
        },
    )
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _gristmill_completion gristmill"),
        ("zsh", "compdef _gristmill_completion gristmill"),
        ("fish", "complete --no-files --command gristmill"),
    ],
)
def test_the_completion_script_of_a_shell_is_printed(shell, line):
    assert line in completion(f"{shell}_source")


@pytest.mark.slow
def test_commands_and_their_options_are_completed():
    assert sorted(completion("bash_complete", "re").split()) == [
        "plain,remove",
        "plain,replay",
        "plain,retire",
    ]
    assert completion("bash_complete", "prune", "--p").split() == ["plain,--parts"]


def test_an_interrupt_of_any_command_is_one_line(monkeypatch):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gristmill.vocabularies.placing.fetch", stop)
    done = invoke("tokenizers")
    assert (done.exit_code, done.output) == (130, "interrupted\n")
