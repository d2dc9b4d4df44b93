"""Programs themselves over the forms that `gristmill project` writes, compared with the raw files.

GRISTMILL_CHECKOUTS names a folder with a checkout of each at the commit of `PROGRAMS`, and
GRISTMILL_CHECKOUTS_PYTHON a Python with what they import: docs/consumers.md names it.
"""

import json
import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.data_root import DataRoot
from gristmill.families import splits_of
from tests.consumers.programs import BLOCK, PROGRAMS, SEPARATOR, modded_nanogpt
from tests.requirements import cannot_run
from tests.synth.builders.chat.test_publishing import built
from tests.synth.render.talks import TEMPLATES

pytestmark = pytest.mark.slow
HARD = ("", " deux\n\nlignes", "日本 🙂", "{{ x }} <b>", "a\tb\\n\"c'")
HEAD = 'schema = 1\nkind = "chat"\nname = "turns"\nmessages = "m"\nid = "n"\n'
HEAD += 'split = { validation = 0.1 }\n[render]\ntemplate = "drop:t.jinja"\n'
SOURCES = {"disk": "synth/distill", "parquet": "synth/distill", "nanochat": "reasoning/normalized"}
SOURCES["puzzles/"] = "puzzles/arc"


def conversation(number: int) -> list[tuple[str, str, str]]:
    """Roles, thoughts and texts of a conversation of one to three questions."""
    hard = HARD[number % len(HARD)]
    said = [("system", "", f"Be brief {number}.{hard}")] if number % 2 else []
    for turn in range(1 + number // 2 % 3):
        thought = f"It is {number}:{turn}." if (number + turn) % 3 == 0 else ""
        said.append(("user", "", f"What is {number} + {turn}?{hard}"))
        said.append(("assistant", thought, f"It is {number + turn}, of {number}.{hard}"))
    return said


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty conversations, from their drop to the artifact."""
    root = DataRoot(tmp_path_factory.mktemp("data"))
    drop = root.root / "drops/chat/turns"
    drop.mkdir(parents=True)
    (drop / "corpus.toml").write_text(HEAD)
    (drop / "t.jinja").write_text(TEMPLATES["chatml"])
    with (drop / "a.jsonl").open("w") as file:
        for number in range(60):
            said = [
                {"role": role, "content": f"<think>{thought}</think>{text}" if thought else text}
                for role, thought, text in conversation(number)
            ]
            file.write(json.dumps({"n": f"id{number}", "m": said}) + "\n")
    (drop / ".done").touch()
    built(root, "chat/conversations", "turns__00")
    return root.root / "chat/conversations"


def texts_of(folder: Path, is_one: bool) -> dict[str, list[str]]:
    """The texts of each conversation of train in order, by those that are trained on."""
    found = {}
    for line in (folder / "train.jsonl").open("rb"):
        said = conversation(int(json.loads(line)["id"].removeprefix("id")))
        texts = [f"<think>\n{t}\n</think>\n\n{text}" if t else text for _, t, text in said]
        roles = [role for role, _, _ in said]
        trained = [text for role, text in zip(roles, texts, strict=True) if role == "assistant"]
        if not is_one or roles == ["user", "assistant"]:
            found["".join(trained)] = texts
    return found


@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=lambda at: PROGRAMS[at].read.__name__)
def test_a_program_reads_what_the_raw_file_has(number, talks, sample_root, tmp_path):
    program, form = PROGRAMS[number], PROGRAMS[number].form
    checkout = Path(os.environ.get("GRISTMILL_CHECKOUTS", "none"), program.folder)
    if not checkout.is_dir():
        cannot_run("checkouts", f"GRISTMILL_CHECKOUTS names no folder with {program.folder}")
    if form.startswith("messages"):
        place = talks
    else:
        asset = SOURCES.get(form, form if "/" in form else "reasoning/gpt2_shards")
        place = sample_root.record(asset)[0]
        place = place.parent if asset in ("synth/distill", "puzzles/arc") else place
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    if "/" not in form:
        words = ["project", str(place), str(out), "--to", *form.split()]
        done = CliRunner().invoke(main, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    script = [
        os.environ["GRISTMILL_CHECKOUTS_PYTHON"],
        "-P",
        Path(__file__).with_name("programs.py"),
    ]
    done = subprocess.run(
        [*script, str(number), checkout, place if "/" in form else out, scratch],
        cwd=scratch,
        env={"PATH": os.environ["PATH"], "HF_HOME": str(scratch / "home"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((scratch / "rows.json").read_bytes())
    if form.startswith("messages"):
        wanted = texts_of(out, program.one)
        plain = [
            (whole, re.sub(r"<\|(im|assistant)_end\|>\s*", "", trained)) for whole, trained in rows
        ]
        assert sorted(trained for _, trained in plain) == sorted(wanted)
        for whole, trained in plain:
            at = 0
            for text in wanted[trained]:
                at = whole.index(text, at) + len(text)
    elif place.name == "synth":
        assert sorted(rows) == sorted(
            [row["id"], row["input_ids"], row["labels"]]
            for folder in place.glob("0*")
            for each in splits_of("synth/distill", folder)
            for batch in each.batches()
            for row in batch.to_pylist()
        )
        assert len({row[0] for row in rows}) == len(rows) > 400
    elif form == "puzzles/":
        wanted = []
        for folder in sorted(place.glob("*-sample")):
            inputs, labels = (np.load(folder / f"test/all__{n}.npy") for n in ("inputs", "labels"))
            ignored = json.loads((folder / "test/dataset.json").read_bytes())["ignore_label_id"]
            labels = labels if ignored is None else np.where(labels == ignored, -100, labels)
            wanted += [[*row] for row in zip(inputs.tolist(), labels.tolist(), strict=True)]
        assert rows == wanted
    elif form == "chess/game_dataset":
        games = [json.loads(line)["moves"] for line in (place / "train.jsonl").open("rb")]
        assert rows == [
            [" ".join(moves[:at]), moves[at]] for moves in games for at in range(8, len(moves))
        ]
    elif form == "macroxue/training_view":
        names = ("board", "move_dir", "branch_evs")
        steps = np.load(place / "train/steps.npy")
        assert rows == [[row[name].tolist() for name in names] for row in steps]
    elif form == "nanochat":
        splits = [*splits_of("reasoning/normalized", place)]
        assert rows == [
            [short, text]
            for name, short in (("train", "train"), ("validation", "val"))
            for each in splits
            if each.name == name
            for texts in each.texts()
            for text in texts.to_pylist()
        ]
    else:
        listed = [
            tokens[begin:end].tolist()
            for each in splits_of("reasoning/gpt2_shards", place)
            if each.name == "train"
            for tokens, bounds in each.tokens.batches()
            for begin, end in pairwise(bounds)
        ]
        if form == "llm.c":
            listed = [[SEPARATOR, *each[:-1]] for each in listed]
        stream = [token for each in listed for token in each]
        blocks = [stream[at : at + BLOCK] for at in range(0, len(stream) - BLOCK + 1, BLOCK)]
        assert sorted(rows) == sorted(listed if program.read is modded_nanogpt else blocks)
