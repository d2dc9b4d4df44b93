"""`load_dataset` gives the rows of every artifact that has rows, streaming too, and writes them."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill import families
from gristmill.cli import main
from gristmill.exports.card import config_name
from gristmill.exports.table import columns_of, fitted
from gristmill.mirror import push
from gristmill.provenance.record import Record, data_version
from tests.consumers.datasets import DATASETS
from tests.hub_server import TOKEN
from tests.mirror.test_hub import URL, hub, repository

__all__ = ["hub"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning"),
]
_OPEN = """
import datasets, json, pathlib, sys
assert datasets.__version__.startswith("5.")
def say(folder, config, split, rows):
    print(json.dumps([folder, config, split, [dict(row) for row in rows]], default=str))
for folder in sys.argv[1:]:
    if pathlib.Path(folder, "dataset_dict.json").exists():
        for split, rows in datasets.load_from_disk(folder).items():
            say(folder, "default", split, rows)
        continue
    for config in datasets.get_dataset_config_names(folder):
        loaded = datasets.load_dataset(folder, config)
        streamed = datasets.load_dataset(folder, config, streaming=True)
        for split in loaded:
            rows = [list(row.items()) for row in loaded[split]]
            assert rows == [list(row.items()) for row in streamed[split]]
            loaded[split].to_parquet("again.parquet")
            again = datasets.Dataset.from_parquet("again.parquet", features=loaded[split].features)
            assert rows == [list(row.items()) for row in again]
            say(folder, config, split, loaded[split])
"""
Rows = dict[tuple[str, str], list[dict[str, object]]]
READ = ["chess/game_dataset", "chess/splice_dataset", "chess/valid_games", "synth/harmony"]
READ += ["chess/subset", "reasoning/normalized", "reasoning/alignment", "reasoning/spans"]
PROJECTED = ["macroxue/pack", "macroxue/pool", "macroxue/values", "synth/kd_shards"]
PROJECTED += ["reasoning/gpt2_shards", "reasoning/tokens", "synth/distill", "chat/distill"]
PROJECTED += [f"puzzles/{kind}" for kind in ("arc", "domino", "grid", "maze", "sudoku")]
MESSAGES = ["chat/conversations", "chat/kd_shards", "synth/harmony", "reasoning/normalized"]
CUT = ["chess/game_dataset", "chess/subset"]
ON_DISK = ["synth/distill", "chat/distill"]


def opened(folders: list[Path | str], home: Path, **environment: str) -> dict[str, Rows]:
    """The rows of each config and split, as the library reads them in its own process."""
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, *map(str, folders)],
        env={
            **{"PATH": os.environ["PATH"], "HF_HOME": str(home)},
            **(environment or {"HF_HUB_OFFLINE": "1"}),
        },
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Rows] = {}
    for folder, config, split, rows in map(json.loads, done.stdout.splitlines()):
        found.setdefault(folder, {})[config, split] = rows
    return found


def command(*words: object) -> None:
    done = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


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


def carded(sample_root, asset: str, out: Path) -> None:
    """Links to the files of an artifact, with its README.md."""
    out.mkdir()
    place = sample_root.record(asset)[0]
    for path in place.iterdir():
        (out / path.name).symlink_to(path)
    command("card", place, "--readme", out / "README.md")


def months(sample_root, asset: str, above: Path) -> list[Path]:
    """Copies of all months, of which the first has no row in one split."""
    listed = [folder for folder, record in sample_root.records() if record.asset == asset]
    for folder in listed:
        shutil.copytree(folder, above / folder.name)
    first = above / listed[0].name
    record = json.loads((first / "provenance.json").read_bytes())
    (first / "val.jsonl").write_bytes(b"")
    for each in record["outputs"]:
        if each["path"] == "val.jsonl":
            each |= {"rows": 0, "bytes": 0, "sha256": hashlib.sha256().hexdigest()}
    emptied = Record.model_validate(record)
    version = {"data_version": data_version(emptied.outputs)}
    sealed = emptied.model_copy(update=version).sealed().to_bytes()
    (first / "provenance.json").write_bytes(sealed)
    return [above / folder.name for folder in listed]


@pytest.fixture(scope="module")
def found(sample_root, tmp_path_factory) -> Callable[[str, str], Rows]:
    """The rows of every artifact in each form, read in one process, and where they lie."""
    root = tmp_path_factory.mktemp("opened")
    folders = {("card", asset): root / f"card-{asset.replace('/', '.')}" for asset in READ}
    for (_, asset), out in folders.items():
        carded(sample_root, asset, out)
    for form, assets in (("parquet", PROJECTED), ("messages", MESSAGES)):
        for asset in assets:
            folders[form, asset] = out = root / f"{form}-{asset.replace('/', '.')}"
            command("project", sample_root.record(asset)[0], out, "--to", form)
    for asset in CUT:
        folders["months", asset] = out = root / f"months-{asset.replace('/', '.')}"
        months(sample_root, asset, out)
        command("card", out, "--readme", out / "README.md")
    for asset in ON_DISK:
        folders["as it stands", asset] = sample_root.record(asset)[0]
    folders["disk", "synth/distill"] = root / "disk"
    above = sample_root.record("synth/distill")[0].parent
    command("project", above, root / "disk", "--to", "disk")
    read = opened([*folders.values()], root / "home")
    return lambda form, asset: (read[str(folders[form, asset])], folders[form, asset])


@DATASETS.opens(*READ, how="the folder, with the README.md of `gristmill card`")
@pytest.mark.parametrize("asset", READ)
def test_a_folder_with_a_card_is_opened(asset, found, sample_root):
    rows, wanted = found("card", asset)[0], expected(asset, sample_root.record(asset)[0])
    if asset == "reasoning/spans":  # it rounds numbers beside objects to ten digits
        logs = [
            [row.pop("log_abs_C") for key in sorted(each) for row in each[key]]
            for each in (rows, wanted)
        ]
        assert logs[0] == pytest.approx(logs[1], abs=1e-9)
    assert rows == wanted


@DATASETS.opens(*CUT, how="all months, with one README.md")
@pytest.mark.parametrize("asset", CUT)
def test_a_card_of_all_months_names_no_split_without_rows(asset, found):
    """A split of one month is emptied: its config and that of all months open without it."""
    rows, above = found("months", asset)
    assert rows == of_all_months(asset, sorted(above.glob("*/")), "{}", "all")


def of_all_months(asset: str, folders: list[Path], name: str, whole: str) -> Rows:
    wanted: Rows = {}
    for folder in folders:
        for (_, split), rows in expected(asset, folder).items():
            if rows:
                wanted[name.format(folder.name), split] = rows
                wanted.setdefault((whole, split), []).extend(rows)
    assert (name.format(folders[0].name), "validation") not in wanted
    return wanted


def raw_turns(asset: str, place: Path, data: Path) -> Iterator[tuple[str, list[str]]]:
    """The split and the texts of each conversation of the raw files, thoughts before answers."""
    if asset.startswith("chat/"):
        splits = pq.read_table(data / "chat/conversations/talks__00/shard_00.parquet")["split"]
        lines = (data / "drops/chat/talks/talks.jsonl").read_bytes().splitlines()
        for split, line in zip(splits.to_pylist(), lines, strict=True):
            question, answer = (each["content"] for each in orjson.loads(line)["messages"])
            yield split, [question, *answer.removeprefix("<think>").split("</think>")]
    elif asset == "synth/harmony":
        for path in sorted((data / "drops/synth/samples").glob("*.parquet")):
            for row in pq.read_table(path).to_pylist():
                names = ("query", "synthetic_reasoning", "synthetic_answer")
                if all(row[name] for name in names):
                    yield "train", [row[name] for name in names]
    else:
        for path in (each for each in place.glob("*/*.jsonl") if each.parent.name != "rejected"):
            for row in map(orjson.loads, path.open("rb")):
                texts = [(row[name] or "").strip() for name in ("question", "cot", "answer")]
                if texts[0] and texts[2]:
                    yield path.stem, [*filter(None, texts)]


@DATASETS.opens(*MESSAGES, how="the folder that `gristmill project --to messages` writes")
@pytest.mark.parametrize("asset", MESSAGES)
def test_messages_are_those_of_the_json_lines_and_the_raw_file(asset, found, sample_root):
    read, out = found("messages", asset)
    texts = []
    for (_, split), rows in read.items():
        for messages in (row["messages"] for row in rows):
            for message in messages:  # type: ignore[attr-defined]
                if message.get("thinking", "") is None:
                    del message["thinking"]
            given = [m for m in messages if m["role"] != "system"]  # type: ignore[attr-defined]
            said = [m.get(name) for m in given for name in ("thinking", "content")]
            texts.append((split, [*filter(None, said)]))
            assert {m["role"]: m.get("train", True) for m in messages}["assistant"]  # type: ignore[attr-defined]
        assert rows == [*map(orjson.loads, (out / f"{split}.jsonl").read_bytes().splitlines())]
    assert {split for _, split in read} == {path.stem for path in out.glob("*.jsonl")}
    assert sorted(texts) == sorted(raw_turns(asset, sample_root.record(asset)[0], sample_root.data))


@DATASETS.opens("synth/distill", how="all shards: the folder of `gristmill project --to disk`")
def test_all_shards_are_one_folder_of_load_from_disk(found, sample_root):
    read, out = found("disk", "synth/distill")
    assert sum(path.stat().st_size for path in out.rglob("*")) < 1 << 16
    wanted: Rows = {}
    for folder in sorted(sample_root.record("synth/distill")[0].parent.glob("0*")):
        for key, rows in expected("synth/distill", folder).items():
            wanted.setdefault(key, []).extend(rows)
    assert read == wanted


@DATASETS.opens(*PROJECTED, how="the folder that `gristmill project` writes")
@DATASETS.opens(*ON_DISK, how="the folder as it stands: `load_from_disk`")
@pytest.mark.parametrize(
    ("form", "asset"),
    [*(("parquet", each) for each in PROJECTED), *(("as it stands", each) for each in ON_DISK)],
)
def test_rows_are_opened(form, asset, found, sample_root):
    assert found(form, asset)[0] == expected(asset, sample_root.record(asset)[0])


@DATASETS.opens(*READ, *PROJECTED, how="the repository of `gristmill push hf://... --parquet`")
def test_a_repository_is_opened(hub, sample_root, tmp_path):
    rows: Rows = {}
    for asset in (*READ, *PROJECTED):
        place, record = sample_root.record(asset)
        for (table, split), own in expected(asset, place, is_decoded=False).items():
            rows[config_name(record.artifact, table.removeprefix("default")), split] = own
    for _ in range(2):
        assert not any(each.error for each in push(sample_root.data, URL, parquet=True))
    assert len(repository(hub).titles) == 1
    read = opened(["me/corpus"], tmp_path / "home", HF_ENDPOINT=hub.address, HF_TOKEN=TOKEN)
    assert {name: read["me/corpus"][name] for name in rows} == rows


@DATASETS.opens(*CUT, how="the repository of `gristmill push hf://...`, its config of all months")
@pytest.mark.parametrize("asset", CUT)
def test_a_repository_has_a_config_of_all_months(asset, hub, sample_root, tmp_path):
    above = tmp_path / "data" / Path(sample_root.record(asset)[1].artifact).parent
    folders = sorted(months(sample_root, asset, above))
    assert not [each.error for each in push(tmp_path / "data", URL) if each.error]
    read = opened(["me/corpus"], tmp_path / "home", HF_ENDPOINT=hub.address, HF_TOKEN=TOKEN)
    prefix = above.relative_to(tmp_path / "data").as_posix().replace("/", ".")
    (whole,) = {name for name, _ in read["me/corpus"] if name.startswith("all.")}
    assert read["me/corpus"] == of_all_months(asset, folders, f"{prefix}.{{}}", whole)
