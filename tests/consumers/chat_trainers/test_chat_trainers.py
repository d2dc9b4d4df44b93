import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from tests.consumers.chat_trainers import LLAMA_FACTORY, MEGATRON_LM, NANOCHAT_SFT

pytestmark = pytest.mark.slow
ASSETS = ("chat/conversations", "chat/kd_shards", "synth/harmony", "reasoning/normalized")
HOW = "the files of `gristmill project --to messages --thoughts tags`"
Pairs = list[tuple[str, str]]


def raw_turns(asset: str, place: Path, data: Path) -> dict[str, list[Pairs]]:
    """Of each split the roles and texts of what it was made from, thoughts in tags."""
    found: dict[str, list[Pairs]] = {}
    if asset.startswith("chat/"):
        splits = pq.read_table(data / "chat/conversations/talks__00/shard_00.parquet")["split"]
        lines = (data / "drops/chat/talks/talks.jsonl").read_bytes().splitlines()
        for split, line in zip(splits.to_pylist(), lines, strict=True):
            pairs = [(each["role"], each["content"]) for each in orjson.loads(line)["messages"]]
            found.setdefault(split, []).append(
                [
                    (
                        role,
                        said.replace("<think>", "<think>\n").replace("</think>", "\n</think>\n\n"),
                    )
                    for role, said in pairs
                ]
            )
    elif asset == "synth/harmony":
        rows = [
            row
            for path in sorted((data / "drops/synth/samples").glob("*.parquet"))
            for row in pq.read_table(path).to_pylist()
        ]
        for row in rows:
            texts = [row[name] for name in ("query", "synthetic_reasoning", "synthetic_answer")]
            if all(texts):
                answer = f"<think>\n{texts[1]}\n</think>\n\n{texts[2]}"
                found.setdefault("train", []).append([("user", texts[0]), ("assistant", answer)])
    else:
        for path in (each for each in place.glob("*/*.jsonl") if each.parent.name != "rejected"):
            for row in map(orjson.loads, path.open("rb")):
                question, thought, answer = (
                    (row[name] or "").strip() for name in ("question", "cot", "answer")
                )
                if question and answer:
                    said = f"<think>\n{thought}\n</think>\n\n{answer}" if thought else answer
                    pairs = [("user", question), ("assistant", said)]
                    found.setdefault(path.stem, []).append(pairs)
    return found


def by_llama_factory(folder: Path) -> dict[str, list[Pairs]]:
    """The turns of each dataset; None of a conversation that it skips with a warning."""
    found = {}
    for name, said in json.loads((folder / "dataset_info.json").read_bytes()).items():
        assert said["formatting"] == "sharegpt"
        tags, listed = said["tags"], []
        odd, even = (tags["user_tag"], tags["observation_tag"]), (tags["assistant_tag"],)
        for row in map(orjson.loads, (folder / said["file_name"]).open("rb")):
            messages = row[said["columns"]["messages"]]
            if messages[0][tags["role_tag"]] == tags["system_tag"]:
                messages = messages[1:]
            for number, each in enumerate(messages):
                assert each[tags["role_tag"]] in (odd, even)[number % 2]
            assert len(messages) % 2 == 0
            listed.append(
                [(each[tags["role_tag"]], each[tags["content_tag"]]) for each in messages]
            )
        found[name] = listed
    return found


def by_megatron(folder: Path) -> dict[str, list[Pairs]]:
    """Role and content of all messages behind the system message, which it adds where it lacks."""
    found = {}
    for path in folder.glob("*.jsonl"):
        rows = [orjson.loads(line)["messages"] for line in path.open("rb")]
        assert all(isinstance(each["content"], str) for row in rows for each in row)
        found[path.stem] = [
            [(each["role"], each["content"]) for each in row if each["role"] != "system"]
            for row in rows
        ]
    return found


def by_nanochat(folder: Path) -> dict[str, list[Pairs]]:
    """The turns of user and assistant; a system message becomes part of the first question."""
    found = {}
    for path in folder.glob("*.jsonl"):
        listed = found.setdefault(path.stem, list[Pairs]())
        for row in map(orjson.loads, path.open("rb")):
            messages: list[dict[str, Any]] = row["messages"]
            if messages[0]["role"] == "system":
                assert messages[1]["role"] == "user"
                messages = messages[1:]
            for number, each in enumerate(messages):
                assert each["role"] == ("user", "assistant")[number % 2]
                assert isinstance(each["content"], str)
            listed.append([(each["role"], each["content"]) for each in messages])
    return found


@LLAMA_FACTORY.opens(*ASSETS, how=HOW)
@MEGATRON_LM.opens(*ASSETS, how=HOW)
@NANOCHAT_SFT.opens(*ASSETS, how=HOW)
@pytest.mark.parametrize("asset", ASSETS)
def test_every_text_is_that_of_the_raw_file(asset, sample_root, tmp_path):
    place, _ = sample_root.record(asset)
    words = ["project", str(place), str(tmp_path / "out"), "--to", "messages"]
    done = CliRunner().invoke(main, [*words, "--thoughts", "tags"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    wanted = raw_turns(asset, place, sample_root.data)
    for read in (by_llama_factory, by_megatron, by_nanochat):
        found = read(tmp_path / "out")
        assert {name: sorted(rows) for name, rows in found.items()} == {
            name: sorted(rows) for name, rows in wanted.items()
        }
