"""`load_dataset` gives the rows of every artifact that has rows, streaming too."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from gristmill import families
from gristmill.cli import main
from gristmill.exports.card import config_name
from gristmill.exports.table import columns_of, fitted
from gristmill.mirror import push
from tests.consumers.datasets import DATASETS
from tests.hub_server import TOKEN
from tests.mirror.test_hub import URL, hub, repository
from tests.requirements import cannot_run

__all__ = ["hub"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning"),
]
_OPEN = """
import json, sys, datasets
assert datasets.__version__.startswith("5.")
for folder in sys.argv[1:]:
    for config in datasets.get_dataset_config_names(folder):
        loaded = datasets.load_dataset(folder, config)
        streamed = datasets.load_dataset(folder, config, streaming=True)
        for split in loaded:
            rows = [list(row.items()) for row in loaded[split]]
            assert rows == [list(row.items()) for row in streamed[split]]
            said = [folder, config, split, [dict(row) for row in loaded[split]]]
            print(json.dumps(said, default=str))
"""
_FROM_DISK = """
import json, sys, datasets
found = datasets.load_from_disk(sys.argv[1])
print(json.dumps({split: [dict(row) for row in rows] for split, rows in found.items()}))
"""
Rows = dict[tuple[str, str], list[dict[str, object]]]
READ = ["chess/game_dataset", "chess/splice_dataset", "chess/valid_games", "synth/harmony"]
READ += ["chess/subset", "reasoning/normalized", "reasoning/alignment"]
READ += ["reasoning/spans"]
PROJECTED = ["macroxue/pack", "macroxue/pool", "macroxue/values", "synth/kd_shards"]
PROJECTED += ["reasoning/gpt2_shards", "reasoning/tokens", "synth/distill", "chat/distill"]
PROJECTED += [f"puzzles/{kind}" for kind in ("arc", "domino", "grid", "maze", "sudoku")]


def run_python(code: str, folder: Path | str, home: Path, **environment: str) -> str:
    """What code prints in a process with the library."""
    python = os.environ.get("GRISTMILL_DATASETS", sys.executable)
    if python == sys.executable and find_spec("datasets") is None:
        cannot_run(
            "datasets", "the library datasets is not installed: see tests/consumers/datasets"
        )
    done = subprocess.run(
        [python, "-c", code, str(folder)],
        env={"PATH": os.environ["PATH"], "HF_HOME": str(home), **environment},
        cwd=home.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def opened(folder: Path | str, home: Path, **environment: str) -> Rows:
    """The rows of each config and split, as the library reads them in its own process."""
    said = run_python(_OPEN, folder, home, **(environment or {"HF_HUB_OFFLINE": "1"}))
    lines = [json.loads(line) for line in said.splitlines()]
    return {(config, split): rows for _, config, split, rows in lines}


def command(*words: object) -> str:
    done = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def expected(asset: str, place: Path, is_decoded: bool = True) -> Rows:
    """The rows that the family declares; what is JSON in a text is decoded."""
    found: Rows = {}
    splits = list(families.splits_of(asset, place))
    for each in splits:
        schema = columns_of(other for other in splits if other.table == each.table)
        coded = [item.name for item in schema if item.metadata and is_decoded]
        rows = found.setdefault((each.table or "default", each.name), [])
        for row in (row for batch in each.batches() for row in fitted(batch, schema).to_pylist()):
            rows.append(row | {name: orjson.loads(row[name]) for name in coded if row[name]})
    return found


@DATASETS.opens(*READ, how="the folder, with the README.md of `gristmill card`")
@pytest.mark.parametrize("asset", READ)
def test_a_folder_with_a_card_is_opened(asset, sample_root, tmp_path):
    place, _ = sample_root.record(asset)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in place.iterdir():
        (copy / path.name).symlink_to(path)
    command("card", place, "--readme", copy / "README.md")
    found, wanted = opened(copy, tmp_path / "home"), expected(asset, place)
    if asset == "reasoning/spans":  # it rounds numbers beside objects to ten digits
        logs = [
            [row.pop("log_abs_C") for key in sorted(rows) for row in rows[key]]
            for rows in (found, wanted)
        ]
        assert logs[0] == pytest.approx(logs[1], abs=1e-9)
    assert found == wanted


@DATASETS.opens("chess/game_dataset", "chess/subset", how="all months, with one README.md")
@pytest.mark.parametrize("asset", ["chess/game_dataset", "chess/subset"])
def test_a_card_of_all_months_names_no_split_without_rows(asset, sample_root, tmp_path):
    """A split of one month is emptied: its config and that of all months open without it."""
    folders = [folder for folder, record in sample_root.records() if record.asset == asset]
    above = tmp_path / "months"
    for folder in folders:
        shutil.copytree(folder, above / folder.name)
    record = json.loads((above / folders[0].name / "provenance.json").read_bytes())
    (above / folders[0].name / "val.jsonl").write_bytes(b"")
    for each in record["outputs"]:
        if each["path"] == "val.jsonl":
            each["rows"] = 0
    (above / folders[0].name / "provenance.json").write_text(json.dumps(record))
    command("card", above, "--readme", above / "README.md")
    wanted: Rows = {}
    for folder in folders:
        for (_, split), rows in expected(asset, above / folder.name).items():
            if rows:
                wanted[folder.name, split] = rows
                wanted.setdefault(("all", split), []).extend(rows)
    assert opened(above, tmp_path / "home") == wanted
    assert (folders[0].name, "validation") not in wanted


MESSAGES = ["chat/conversations", "chat/kd_shards", "synth/harmony", "reasoning/normalized"]


@DATASETS.opens(*MESSAGES, how="the folder that `gristmill project --to messages` writes")
@pytest.mark.parametrize("asset", MESSAGES)
def test_messages_are_opened_and_are_those_of_the_json_lines(asset, sample_root, tmp_path):
    place, _ = sample_root.record(asset)
    command("project", place, tmp_path / "out", "--to", "messages")
    found = opened(tmp_path / "out", tmp_path / "home")
    for (_, split), rows in found.items():
        for row in rows:
            for message in row["messages"]:  # type: ignore[attr-defined]
                if message.get("thinking", "") is None:
                    del message["thinking"]
        lines = (tmp_path / f"out/{split}.jsonl").read_bytes().splitlines()
        assert rows == [*map(orjson.loads, lines)]
    assert {split for _, split in found} == {
        path.stem for path in (tmp_path / "out").glob("*.jsonl")
    }


@DATASETS.opens("synth/distill", how="all shards: the folder of `gristmill project --to disk`")
def test_all_shards_are_one_folder_of_load_from_disk(sample_root, tmp_path):
    (above,) = {f.parent for f, record in sample_root.records() if record.asset == "synth/distill"}
    command("project", above, tmp_path / "out", "--to", "disk")
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 1 << 16
    wanted: dict[str, list[object]] = {}
    for folder in sorted(above.glob("0*")):
        for (_, split), rows in expected("synth/distill", folder).items():
            wanted.setdefault(split, []).extend(rows)
    done = run_python(_FROM_DISK, tmp_path / "out", tmp_path / "home", HF_HUB_OFFLINE="1")
    assert json.loads(done) == wanted


@DATASETS.opens(*PROJECTED, how="the folder that `gristmill project` writes")
@pytest.mark.parametrize("asset", PROJECTED)
def test_a_projection_is_opened(asset, sample_root, tmp_path):
    place, _ = sample_root.record(asset)
    command("project", place, tmp_path / "out")
    assert opened(tmp_path / "out", tmp_path / "home") == expected(asset, place)


@DATASETS.opens(*READ, *PROJECTED, how="the repository of `gristmill push hf://... --parquet`")
def test_a_repository_is_opened(hub, sample_root, tmp_path):
    rows = {}
    for asset in (*READ, *PROJECTED):
        place, record = sample_root.record(asset)
        for (table, split), found in expected(asset, place, is_decoded=False).items():
            rows[config_name(record.artifact, table.removeprefix("default")), split] = found
    for _ in range(2):
        assert not any(each.error for each in push(sample_root.data, URL, parquet=True))
    assert len(repository(hub).titles) == 1
    home = tmp_path / "home"
    found = opened("me/corpus", home, HF_ENDPOINT=hub.address, HF_TOKEN=TOKEN)
    assert {name: found[name] for name in rows} == rows
