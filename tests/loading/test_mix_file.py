"""Mix files: every family by its folder, and what is refused with file, key and cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.loading.mix_file import read_mix, read_state
from gristmill.macroxue import StepDataset
from tests.sample_root import SampleRoot

D6 = 'path = "macroxue/packs/sample_d6"'
SOURCES = {
    "macroxue/pools/samples": 'held_out = 0.2\nside = "held_out"',
    "chess/dataset/elite_2024-01_game": 'split = "train"\nhorizon = 2',
    "megatron/synth_kd_v1": 'split = "valid"',
    "megatron/chat/talks__00": 'split = "valid"',
    "distill/synth/02": 'split = "train"',
    "distill/chat/talks__00": 'split = "valid"',
    "reasoning/tokenized/gpt2": 'corpora = ["gsm8k"]',
    "reasoning/tokens/mine": 'splits = ["train"]',
    "puzzles/arc-sample": "groups = true",
}


def written(folder: Path, text: str) -> Path:
    file = folder / "mix.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_of_each_family_is_opened(
    sample_root: SampleRoot, tmp_path: Path, path: str
) -> None:
    text = f'seed = 3\n[source.one]\npath = "{path}"\nepochs = 2\n{SOURCES[path]}\n'
    plan = read_mix(written(tmp_path, text), sample_root.data)
    (source,) = plan.sources
    assert source.identity.artifact.partition(" ")[0].endswith(path)
    assert any("raw" in name for step in source.origin(0) for name in step.facts())
    assert (plan.seed, plan.length) == (3, 2 * int(source.cuts[-1]))
    assert plan.at(plan.length - 1 + 0 * source.cuts)[0].tolist() == [0] * len(source.cuts)


def test_a_side_of_a_split_is_that_of_the_reader(sample_root: SampleRoot, tmp_path: Path) -> None:
    sides = []
    for side in ("train", "held_out"):
        text = f'[source.a]\n{D6}\nepochs = 1\nheld_out = 0.3\nside = "{side}"\n'
        sides.append(read_mix(written(tmp_path, text), sample_root.data))
    train, held_out = StepDataset(sample_root.data / "macroxue/packs/sample_d6").split(0.3)
    assert [plan.length for plan in sides] == [len(train), len(held_out)]


def test_several_months_are_one_source(sample_root: SampleRoot, tmp_path: Path) -> None:
    months = [f"chess/dataset/elite_2024-0{month}_game" for month in (1, 2)]
    plan = read_mix(
        written(tmp_path, f"[source.a]\npath = {months}\nepochs = 1\n"), sample_root.data
    )
    assert len(plan.sources[0].cuts) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"has no table \[source.NAME\]"),
        ("source = 3", r"has no table \[source.NAME\]"),
        (f"other = 1\n[source.a]\n{D6}\nepochs = 1", "other is no key: use seed, window"),
        (f"[source.a]\n{D6}", "say one of epochs, tokens, weight"),
        (f"[source.a]\n{D6}\nepochs = 1\ntokens = 2", "say one of epochs, tokens, weight"),
        (f'[source.a]\n{D6}\nepochs = "1"', "source.a: epochs is '1': a number is needed"),
        (f"[source.a]\n{D6}\nepochs = true", "source.a: epochs is True"),
        (f"[source.a]\n{D6}\nepochs = 9", "9.00 epochs, more than 4"),
        (f"[source.a]\n{D6}\nweight = 9", "weights= with samples="),
        (f"[source.a]\n{D6}\ntokens = 9", "its samples have no tokens"),
        (f"[source.a]\n{D6}\nepochs = 1\nsplit = 'x'", "source.a: split: Unexpected keyword"),
        (f"[source.a]\n{D6}\nepochs = 1\nheld_out = '0.2'", "source.a: held_out: Input should be"),
        (f"[source.a]\n{D6}\nepochs = 1\nside = 'left'", "source.a: side: Input should be 'train'"),
        (f"seed = 'x'\n[source.a]\n{D6}\nepochs = 1", "seed is 'x': a whole number"),
        ("[source.a]\npath = 3\nepochs = 1", "source.a: path is 3: a folder or a list"),
        ("[source.a]\npath = []\nepochs = 1", r"source.a: path is \[\]"),
        ('[source.a]\npath = "gone"\nepochs = 1', "gone"),
        ('[source.a]\npath = "chess/raw/elite/2024-01"\nepochs = 1', "takes no artifacts of"),
        (f"[source.a]\n{D6}\nepochs = 1\n[source.b]\n{D6}\nepochs = 1", "is the same data as"),
    ],
)
def test_what_is_no_mix_is_refused(
    sample_root: SampleRoot, tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(GristmillError, match=words):
        read_mix(written(tmp_path, text), sample_root.data)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"batches": []}'])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(GristmillError, match=r"state\.json"):
        read_state(tmp_path / "state.json")
