"""The commands of training, over runs of the samples."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gristmill.cli import main
from gristmill.loading import Loader, commands, read_mix
from tests.loading.numbered import Numbered
from tests.loading.test_mix_file import SOURCES, written
from tests.sample_root import SampleRoot

D6, D7 = (f"macroxue/packs/sample_d{n}" for n in (6, 7))
MIX = f"""seed = 7
[source.a]
path = "{D6}"
epochs = 1
[source.b]
path = "{D7}"
epochs = 2
"""

_MASK = "italic: masked, not in the loss"
DRAWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "macroxue/pools/samples": (('"branch_evs"',), ("→ right", "board_eval")),
    "chess/dataset/elite_2024-01_game": (("[Event ", "1. "), ("a  b  c  d", "ply ")),
    "megatron/synth_kd_v1": (('"synthetic_answer": "',), (_MASK, "<|channel|>analysis")),
    "megatron/chat/talks__00": ((), (_MASK, "One·more.")),
    "distill/synth/02": (('"synthetic_answer": "',), (_MASK, "<|channel|>analysis")),
    "distill/chat/talks__00": ((), (_MASK, "One·more.")),
    "reasoning/tokenized/gpt2": (("#### ",), ("tokens",)),
    "reasoning/tokens/mine": (('"question": ',), ("tokens",)),
    "puzzles/arc-sample": ((), ("train",)),
}
"""What the raw text of a sample has, and its picture; conversations and tasks name no bytes."""


@pytest.fixture
def folder(sample_root: SampleRoot, tmp_path: Path) -> Path:
    """A mix file and the state of a run after 12 steps."""
    (tmp_path / "mix.toml").write_text(MIX)
    loader = Loader(read_mix(tmp_path / "mix.toml", sample_root.data), 50, form="numpy")
    for _ in zip(range(12), loader, strict=False):
        pass
    (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
    return tmp_path


def run(folder: Path, root: SampleRoot, *words: str) -> Result:
    named = [
        str(folder / word) if word.endswith((".json", ".toml", ".npz")) else word for word in words
    ]
    return CliRunner().invoke(main, named, env={"GRISTMILL_DATA": str(root.data)})


def loader(folder: Path, root: SampleRoot) -> Loader:
    return Loader(read_mix(folder / "mix.toml", root.data), 50, form="numpy")


def test_a_mix_says_what_each_source_gives_and_refuses_the_same_data_twice(folder, sample_root):
    lines = run(folder, sample_root, "mix", "mix.toml").output.splitlines()
    plan = loader(folder, sample_root).plan
    first, second = plan.segments[0][1]
    assert lines[0].startswith(f"{D6}: {first:,} samples, 1.00 epochs, ")
    assert lines[1].startswith(f"{D7}: {second:,} samples, 2.00 epochs, ")
    assert lines[2] == f"{first + second:,} samples in the run"
    (folder / "twice.toml").write_text(MIX.replace(D7, D6))
    done = run(folder, sample_root, "mix", "twice.toml")
    assert done.exit_code == 1
    assert "is the same data as" in done.output


def test_a_batch_has_the_samples_of_the_step_with_their_raw_files(folder, sample_root):
    words = "batch state.json --mix mix.toml --step 3 --rank 1 --world 25"
    lines = run(folder, sample_root, *words.split()).output.splitlines()
    numbers = loader(folder, sample_root).numbers(3)[2:4]
    named = [line for line in lines if not line.startswith(" ")]
    assert named == [f"{(D6, D7)[source]}: sample {number}" for source, number in numbers]
    assert sum(line.startswith("  raw_unpacked_bytes: ") for line in lines) == 2


@pytest.mark.parametrize("path", SOURCES)
def test_a_batch_shows_its_samples_and_their_raw_text(sample_root, tmp_path, path):
    mix = f'[source.one]\npath = "{path}"\nepochs = 1\n{SOURCES[path]}\n'
    plan = read_mix(written(tmp_path, mix), sample_root.data)
    (tmp_path / "state.json").write_text(json.dumps(Loader(plan, 1, form="numpy").state_dict()))
    words = ("batch", "state.json", "--mix", "mix.toml", "--step", "0")
    plain = run(tmp_path, sample_root, *words).output.splitlines()
    shown = run(tmp_path, sample_root, *words, "--show")
    assert shown.exit_code == 0, shown.output
    raw = [line for line in shown.output.splitlines() if line.startswith("  | ")]
    assert all(part in "\n".join(raw) for part in DRAWN[path][0])
    pictures = shown.output.splitlines()
    for line in [*plain, *raw]:
        pictures.remove(line)
    assert all(part in "\n".join(pictures) for part in DRAWN[path][1])


def test_samples_of_packed_rows_are_shown_document_by_document(sample_root, tmp_path):
    path = "megatron/synth_kd_v1"
    mix = f'[source.one]\npath = "{path}"\nepochs = 1\nseq_len = 1024\n'
    plan = read_mix(written(tmp_path, mix), sample_root.data)
    (tmp_path / "state.json").write_text(json.dumps(Loader(plan, 1, form="numpy").state_dict()))
    words = ("batch", "state.json", "--mix", "mix.toml", "--step", "0", "--show")
    output = run(tmp_path, sample_root, *words).output
    (source,) = plan.sources
    documents = len(list(source.shown(int(plan.at(np.arange(1))[1][0]))))  # type: ignore[attr-defined]
    assert documents > 1
    assert output.count("italic: masked, not in the loss") == documents


def test_a_source_of_ones_own_shows_nothing(sample_root):
    commands._show(Numbered("one", [0, 3]), 1)


def test_a_replay_writes_the_arrays_of_the_step_each_time_the_same(folder, sample_root):
    words = ("replay", "state.json", "--mix", "mix.toml", "--step", "3", "--out")
    for name in ("one.npz", "two.npz"):
        assert run(folder, sample_root, *words, name).exit_code == 0
    assert (folder / "one.npz").read_bytes() == (folder / "two.npz").read_bytes()
    with np.load(folder / "one.npz") as found:
        batch = loader(folder, sample_root)[3]
        assert set(found) == set(batch)
        assert all(np.array_equal(found[name], batch[name]) for name in found)
    for name, reason in (("one.npz", "File exists"), ("gone/one.npz", "No such file or directory")):
        refused = run(folder, sample_root, *words, name)
        assert refused.exit_code == 2
        assert f"{name}: {reason}: name a new file" in refused.output


def test_seen_names_the_steps_that_gave_a_sample(folder, sample_root):
    made = loader(folder, sample_root)
    source, number = made.numbers(4)[7]
    words = ("seen", "state.json", (D6, D7)[source], str(number), "--mix", "mix.toml")
    lines = run(folder, sample_root, *words).output.splitlines()
    assert "step 4, position 207" in lines
    later = next(n for n in made.numbers(20) if not made.plan.seen(*n, until=600))
    words = ("seen", "state.json", (D6, D7)[later[0]], str(later[1]), "--mix", "mix.toml")
    assert run(folder, sample_root, *words).output == "no step of the first 12 gave it\n"


@pytest.mark.parametrize("path", ["megatron/synth_kd_v1", "reasoning/tokenized/gpt2"])
def test_seen_takes_a_place_in_the_root_wherever_the_root_is(sample_root, tmp_path, path):
    mix = f'[source.one]\npath = "{path}"\nepochs = 1\n{SOURCES[path]}\n'
    made = Loader(read_mix(written(tmp_path, mix), sample_root.data), 1, form="numpy")
    next(iter(made))
    (tmp_path / "state.json").write_text(json.dumps(made.state_dict()))
    ((_, number),) = made.numbers(0)
    moved = sample_root.copy(tmp_path / "deep/and/elsewhere")
    name = made.plan.sources[0].identity.artifact
    assert name.partition(" ")[0] == path
    words = ("seen", "state.json", name, str(number), "--mix", "mix.toml")
    for root in (sample_root, moved):
        assert run(tmp_path, root, *words).output == "step 0, position 0\n"


def test_consumed_needs_the_state_alone(folder, sample_root):
    lines = run(folder, sample_root, "consumed", "state.json").output.splitlines()
    drawn = loader(folder, sample_root).plan.drawn(600)
    assert sum(drawn) == 600
    for line, name, count in zip(lines, (D6, D7), drawn, strict=True):
        assert line.startswith(f"{name}: {count:,} samples, 0.0")


def test_two_corpora_of_one_folder_have_names_of_their_own(sample_root, tmp_path):
    shards = "reasoning/tokenized/gpt2"
    (tmp_path / "mix.toml").write_text(
        "".join(
            f'[source.{name}]\npath = "{shards}"\ncorpora = ["{name}"]\nepochs = 1\n'
            for name in ("gsm8k", "trip")
        )
    )
    made = Loader(read_mix(tmp_path / "mix.toml", sample_root.data), 2, form="numpy")
    next(iter(made))
    (tmp_path / "state.json").write_text(json.dumps(made.state_dict()))
    lines = run(tmp_path, sample_root, "consumed", "state.json").output.splitlines()
    names = [line.partition(":")[0] for line in lines]
    assert [name.partition("__")[0] for name in names] == [f"{shards} gsm8k", f"{shards} trip"]
    source, number = made.numbers(0)[0]
    words = ("seen", "state.json", names[source], str(number), "--mix", "mix.toml")
    assert run(tmp_path, sample_root, *words).output == "step 0, position 0\n"
    mixed = run(tmp_path, sample_root, "mix", "mix.toml").output
    assert all(mixed.count(f"{name}: ") == 1 for name in names)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("batch", "state.json", "--mix", "mix.toml", "--step", "99999"), "no step 99999"),
        (
            ("batch", "state.json", "--mix", "mix.toml", "--step", "0", "--rank", "1"),
            "--rank 1 of --world 1: ranks count from 0",
        ),
        (("seen", "state.json", "x", "0", "--mix", "mix.toml"), 'x is no source: it is "macroxue/'),
        (("seen", "state.json", D6, "99999999", "--mix", "mix.toml"), "no sample 99999999"),
    ],
)
def test_what_is_not_in_the_run_is_refused(folder, sample_root, words, text):
    done = run(folder, sample_root, *words)
    assert done.exit_code == 2
    assert text in done.output
