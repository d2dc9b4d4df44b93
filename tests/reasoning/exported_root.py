"""A data root with a token dataset, its exports and the spans of its splits, as assets publish."""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from gristmill.families import Subject, check
from gristmill.provenance import Record
from gristmill.vocabularies.pinned import PLACED
from tests.reasoning.published_root import built
from tests.tiny_tokenizer import put_recipe, put_tiny

SPLITS = ("train", "test")
FORMATS = ("llm.c", "litdata", "nanochat")
ANSWER = "Half of them is <<{0}/2={1}>>{1}, é = <<{1}+1.5={2}>>{2}."


def write_drop(root: Path, count: int = 12) -> None:
    """The drop gsm8k of two splits; every third record has no annotation, one is refused."""
    drop = root / "drops/reasoning/gsm8k"
    drop.mkdir(parents=True)
    for split in SPLITS:
        rows = []
        for number in range(count):
            answer = ANSWER.format(4 * number, 2 * number, 2 * number + 1.5)
            rows.append({"question": f"{split} {number}?", "answer": answer if number % 3 else "2"})
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (drop / f"{split}.jsonl").write_text(text)
    (drop / ".done").touch()


def build_dataset(root: Path, **values: object) -> None:
    """Publish the splits, the tokenizer tiny and the dataset mine. values: of its recipe."""
    if not values:
        shutil.copytree(_usual().name, root, dirs_exist_ok=True)
        return
    write_drop(root)
    put_tiny(root)
    built(root, PLACED, "tiny")
    for split in SPLITS:
        built(root, "reasoning/normalized", f"gsm8k__{split}")
    publish_dataset(root, "mine", **values)


@cache
def _usual() -> tempfile.TemporaryDirectory[str]:
    """The data root without other values, made once in a process."""
    folder = tempfile.TemporaryDirectory()
    build_dataset(Path(folder.name), seq_len=64)
    return folder


def publish_dataset(root: Path, name: str, **values: object) -> None:
    """Publish a dataset of the splits. values: of its recipe."""
    put_recipe(root, name, **values)
    built(root, "reasoning/tokens", name)


def broken(root: Path, record: Record, shared: bool) -> list[str]:
    """The laws that an artifact breaks, with its inputs."""
    folders = [root / str(item.path) for item in record.inputs if item.data_version]
    subject = Subject(
        root / record.artifact, record.partition if shared else None, folders, config=record.config
    )
    return [f"{each.law}: {each.found}" for each in check(record.asset, subject)]
