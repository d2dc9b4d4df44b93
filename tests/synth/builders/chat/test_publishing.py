"""From a drop of conversations to a batch, published in a data root, and the way back."""

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gristmill.asset import Wanted, declared
from gristmill.browse.opening import Files, open_table
from gristmill.browse.shown import show
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.corpora.raw import rows as read_rows
from gristmill.data_root import DataRoot
from gristmill.data_root.states import DropStates, of_artifacts
from gristmill.exports.messages import rows_of
from gristmill.exports.project import project
from gristmill.families import Request
from gristmill.provenance import read_record, record_path, verify
from gristmill.provenance.list_artifacts import list_artifacts
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.reasoning.format import reports
from gristmill.reasoning.read.trace import traced as traced_row
from gristmill.reasoning.show import tables
from gristmill.run.parts import PartStore
from gristmill.synth.laws import notes
from gristmill.synth.raw import TEXTS
from gristmill.synth.read import distill
from gristmill.synth.read.documents import HARMONY, Own, ShardFiles, contradiction
from gristmill.synth.read.origins import traced
from gristmill.synth.samples import write_drop
from gristmill.vocabularies.encode import encoding
from gristmill.vocabularies.pinned import O200K, PLACED, place
from tests.later import later
from tests.paths import CHECKOUT
from tests.synth.render.talks import TEMPLATES
from tests.tiny_tokenizer import put_tiny

reader = later("gristmill.synth.read.dataset", "torch", "megatron.core")
test_dataset = later("tests.synth.read.test_dataset", "torch", "megatron.core")


@dataclass(frozen=True)
class Nothing:
    """A vocabulary has nothing to choose."""


HEAD = 'schema = 1\nkind = "chat"\nname = "mine"\nmessages = "m"\nshards = 2\nid = "n"\n'
RENDER = '[render]\ntemplate = "drop:t.jinja"\n'


@pytest.fixture(scope="module")
def with_vocabulary(tmp_path_factory: pytest.TempPathFactory, vocabulary: Path) -> DataRoot:
    """A data root for all tests, since the vocabulary of each path is loaded for itself."""
    root = DataRoot(tmp_path_factory.mktemp("data"))
    publish(
        Build(
            root=root.root,
            artifact="tokenizer",
            asset=f"tokenizers/{O200K.name}",
            partition=O200K.name,
            code_version="1",
            config=Nothing(),
            inputs=[],
            make=lambda attempt: place(O200K, vocabulary, attempt.out),
            laws=lambda _: (),
            shared=True,
        )
    )
    return root


@pytest.fixture
def root(with_vocabulary: DataRoot) -> Iterator[DataRoot]:
    """This data root with a drop of 60 conversations alone."""
    root = with_vocabulary
    drop = root.root / "drops/chat/mine"
    drop.mkdir(parents=True)
    (drop / "corpus.toml").write_text(HEAD + "split = { validation = 0.3 }\n" + RENDER)
    (drop / "t.jinja").write_text(TEMPLATES["chatml"])
    rows = [
        {
            "n": f"id{number}",
            "m": [
                {"role": "user", "content": f"q{number}"},
                {"role": "assistant", "content": f"<think>t</think>a{number}"},
            ],
        }
        for number in range(60)
    ]
    (drop / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (drop / ".done").touch()
    yield root
    for each in root.root.iterdir():
        if each.name != "tokenizer":
            shutil.rmtree(each)


def built(root: DataRoot, asset: str, key: str = "mine__01", **chosen: Any) -> Any:
    """Publish a partition, and return how it came out."""
    kind = declared()[asset]
    return publish(kind.build(Wanted(kind, root, key, chosen)))


@pytest.mark.slow
def test_a_drop_is_published_and_each_document_leads_back_to_its_row(root):
    built(root, "chat/conversations")
    built(root, "chat/kd_shards")
    folder = root.root / "megatron/chat/mine__01"
    record = read_record(record_path(folder, None, shared=False))
    assert (record.partition, record.config["eod"]) == ("mine__01", 199_999)
    assert {Path(str(item.path)).name for item in record.outputs} >= {"trace_01.parquet"}
    found = [
        list(traced("chat/kd_shards", Request(folder, str(at), {"split": split, "shard": None})))
        for split in ("train", "valid")
        for at in range(int(record.counts[f"{split}_rows"]))
    ]
    assert len(found) == 30
    for document, raw in found:
        row = int(str(document.facts()["synth_id"])[2:])
        assert raw.facts()["raw_row"] == row + 1
        assert raw.facts()["raw_file"] == "drops/chat/mine/a.jsonl"


@pytest.mark.parametrize("template", [RENDER, ""])
def test_rows_of_a_distill_dataset_lead_back_to_those_of_the_drop(root, template):
    recipe = root.root / "drops/chat/mine/corpus.toml"
    recipe.write_text(recipe.read_text().replace(RENDER, template))
    built(root, "chat/conversations")
    counts = built(root, "chat/distill", keep=0.8).record.counts
    folder = root.root / "distill/chat/mine__01"
    assert counts["left_out/share"] + counts["rows"] == 30
    for split in ("train", "valid"):
        assert counts[f"{split}_rows"] > 0
        for number in range(int(counts[f"{split}_rows"])):
            row = distill.row(folder, split, number)
            request = Request(folder, str(number), {"split": split, "shard": None})
            document, raw = traced("chat/kd_shards", request)
            assert row["id"] == f"mine:{document.facts()['synth_id']}"
            assert row["id"] == f"mine:id{int(str(raw.facts()['raw_row'])) - 1}"
            words = encoding(root.root / "tokenizer" / O200K.relative)
            answer = [label for label in row["labels"] if 0 <= label < 199_998]
            assert words.decode(answer).endswith(f"a{row['id'].removeprefix('mine:id')}")
            assert sum(row["spans"].values()) == len(row["input_ids"])
            assert f": row {request.number} of" in str(next(show(request)).plain)


SEVERAL = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "first?"},
    {"role": "assistant", "content": "<think>early</think>One."},
    {"role": "user", "content": "second?"},
    {"role": "assistant", "content": "Two.", "weight": 0},
    {"role": "user", "content": "third?"},
    {"role": "assistant", "content": "<think>late</think>Three."},
]


def put_several(root: DataRoot, template: str) -> None:
    """Add conversations of several answers, of which the second is not trained on."""
    recipe = root.root / "drops/chat/mine/corpus.toml"
    text = recipe.read_text().replace(RENDER, template)
    recipe.write_text(text.replace('id = "n"', 'id = "n"\nkeys = { weight = "weight" }'))
    rows = [{"n": f"id{number}", "m": SEVERAL} for number in range(60)]
    (root.root / "drops/chat/mine/a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


@pytest.mark.parametrize("template", [RENDER, ""])
def test_all_answers_that_are_trained_on_have_labels_where_that_is_set(root, template):
    put_several(root, template)
    built(root, "chat/conversations")
    folder = root.root / "distill/chat/mine__01"
    words = encoding(root.root / "tokenizer" / O200K.relative)
    found = {}
    for turns in ("last", "all"):
        record = built(root, "chat/distill", turns=turns).record
        (note,) = [*notes(record, folder)] if turns == "last" else [None]
        row = distill.row(folder, "train", 0)
        found[turns] = words.decode([label for label in row["labels"] if 0 <= label < 199_998])
        both = zip(row["labels"], row["input_ids"], strict=True)
        assert all(label in (-100, token) for label, token in both)
        held = sum(label != -100 for label in row["labels"]) * int(record.counts["rows"])
        counted = (record.counts["labelled_tokens"], record.counts["trained_tokens"])
        assert counted[0] == held
        assert (counted[0] < counted[1]) == (turns == "last")
        if note is not None:
            assert f"{held:,} of {counted[1]:,} tokens" in note.found
    assert "early" not in found["last"]
    assert found["last"].index("late") < found["last"].index("Three.")
    for text in ("early", "One.", "late", "Three."):
        assert text in found["all"]
    for text in ("Be kind.", "first?", "Two.", "third?"):
        assert text not in found["all"]


@pytest.mark.parametrize("is_tagged", [False, True])
def test_messages_are_those_of_the_drop_and_of_the_documents(root, is_tagged, tmp_path):
    put_several(root, RENDER)
    for asset in ("chat/conversations", "chat/kd_shards"):
        for number in ("00", "01"):
            built(root, asset, f"mine__{number}")
    files = {}
    for name in ("chat/conversations", "megatron/chat"):
        out = tmp_path / name.replace("/", "_")
        project(root.root / name, out, "messages", is_tagged=is_tagged)
        files[name] = {path.name: path.read_text() for path in sorted(out.glob("*.jsonl"))}
        for path in out.glob("*.jsonl"):
            rows = [json.loads(line) for line in path.open()]
            (parquet,) = out.glob(f"data/{path.stem}-*.parquet")
            read = pq.read_table(parquet).to_pylist()
            for row in read:
                for message in row["messages"]:
                    assert message.pop("thinking", None) or "thinking" not in message
            assert [row["id"] for row in read] == [row["id"] for row in rows]
        assert (out / "dataset_info.json").exists() == is_tagged
    one, other = files.values()
    assert {name: sorted(text.splitlines()) for name, text in one.items()} == {
        name: sorted(text.splitlines()) for name, text in other.items()
    }
    rows = [json.loads(line) for text in one.values() for line in text.splitlines()]
    assert sorted(int(row["id"][2:]) for row in rows) == [*range(60)]
    for message, raw in zip(rows[0]["messages"], SEVERAL, strict=True):
        said = str(raw["content"])
        if is_tagged:
            said = said.replace("<think>", "<think>\n").replace("</think>", "\n</think>\n\n")
        else:
            said = said.partition("</think>")[2] or said
        assert (message["role"], message["content"]) == (raw["role"], said)
        assert message["train"] == (raw["role"] == "assistant" and raw.get("weight", 1) == 1)
    thoughts = [message.get("thinking") for message in rows[0]["messages"]]
    assert thoughts == ([None] * 7 if is_tagged else [None, None, "early", *[None] * 3, "late"])


def said_of(root: DataRoot) -> tuple[str, str]:
    """What `ls` says of the tokens of the drop, those alone that are not current."""
    found = list_artifacts(root.root, state_of=lambda above: DropStates(above).of)
    others = {each.state for each in found if each.asset != "chat/kd_shards"}
    (tokens,) = (each for each in found if each.asset == "chat/kd_shards")
    assert others == {"current"}
    return tokens.state, tokens.why


def test_a_change_of_the_template_builds_tokens_and_no_conversations(root):
    for asset in ("chat/conversations", "chat/kd_shards"):
        built(root, asset)
        assert not built(root, asset).rebuilt
    (root.root / "drops/chat/mine/t.jinja").write_text(TEMPLATES["llama"])
    assert said_of(root) == ("input changed", "drops/chat/mine/t.jinja")
    assert not built(root, "chat/conversations").rebuilt
    assert built(root, "chat/kd_shards").rebuilt
    assert said_of(root) == ("current", "")
    recipe = root.root / "drops/chat/mine/corpus.toml"
    recipe.write_text(recipe.read_text().replace("drop:t.jinja", "chatml"))
    state, why = said_of(root)
    assert state == "input changed" and "render: template is chatml now, was drop:t.jinja" in why
    assert of_artifacts(root.root) == ([], [why])
    assert not built(root, "chat/conversations").rebuilt
    assert built(root, "chat/kd_shards").rebuilt
    assert said_of(root) == ("current", "")
    recipe.write_text(recipe.read_text().replace('id = "n"', 'train = "last"'))
    assert built(root, "chat/conversations").rebuilt


def test_a_placed_tokenizer_encodes_its_conversations(root):
    file = put_tiny(root.root) / ".done"
    file.touch()
    built(root, PLACED, "tiny")
    recipe = root.root / "drops/chat/mine/corpus.toml"
    text = recipe.read_text().replace("drop:t.jinja", "chatml")
    recipe.write_text(f'{text}tokenizer = "tiny"\n')
    built(root, "chat/conversations")
    built(root, "chat/kd_shards")
    folder = root.root / "megatron/chat/mine__01"
    record = read_record(record_path(folder, None, shared=False))
    assert (record.tokenizer and record.tokenizer.name, record.config["eod"]) == ("tiny", 264)
    files = ShardFiles(folder / "train/shard_01_tokens", "hash")
    assert files.tokenizer == Own.of(record.config)
    assert files.tokenizer.eod == 264
    row = open_table(folder, name="train/01").rows(0, 1)[0]
    shown = [(token.text, token.span) for token in row.tokens()]
    text = "".join(text for text, _ in shown)
    assert text.startswith("<|im_start|>user⏎q") and text.endswith("<|endoftext|>\n")
    assert "".join(text for text, span in shown if span == "final").startswith("a")
    assert str(row.cells["text"]).startswith("<|im_start|>user\nq")
    tokens = np.fromfile(folder / "train/shard_01_tokens.bin", np.int32)
    assert tokens[-1] == tokens.max() == 264


def test_what_cannot_be_built_says_why(root):
    with pytest.raises(GristmillError, match="mine__01"):
        built(root, "chat/kd_shards")
    with pytest.raises(ValueError, match="has shards = 2"):
        built(root, "chat/conversations", "mine__02")
    with pytest.raises(NothingToBuild, match="there is no drop drops/chat/yours"):
        built(root, "chat/conversations", "yours__00")
    recipe = root.root / "drops/chat/mine/corpus.toml"
    text = recipe.read_text()
    recipe.write_text(HEAD + 'licence = { id = "X", train = false }\n' + RENDER)
    with pytest.raises(NothingToBuild, match=r"allow_terms = true in \[chat.conversations\]"):
        built(root, "chat/conversations")
    built(root, "chat/conversations", allow_terms=True)
    recipe.write_text(text + 'tokenizer = "qwen"\n')
    with pytest.raises(GristmillError, match="qwen"):
        built(root, "chat/kd_shards")
    recipe.write_text(text.replace("drop:t.jinja", "drop:u.jinja"))
    with pytest.raises(BadInput, match="there is no such file beside the recipe"):
        built(root, "chat/kd_shards")
    shutil.rmtree(recipe.parent)
    with pytest.raises(GristmillError, match="mine"):
        built(root, "chat/kd_shards")


def test_a_training_job_with_another_tokenizer_is_refused():
    own = Own.of({"render": '{"tokenizer": "qwen"}', "eod": 151_643, "ids": 151_936})
    assert (own.name, own.eod) == ("qwen", 151_643)
    assert Own.of({}) == HARMONY

    class Job:
        eod, vocab_size = 151_643, 152_000

    assert contradiction(Job(), -1, own) is None
    assert "o200k_harmony" in str(contradiction(Job(), -1))
    assert "tokenizer.pad is 7" in str(contradiction(Job(), 7, own))
    Job.vocab_size = 151_000
    assert "vocab_size is 151000" in str(contradiction(Job(), -1, own))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_reader_gives_batches_with_mask_and_span(root, tmp_path):
    built(root, "chat/conversations", "mine__00")
    built(root, "chat/kd_shards", "mine__00")
    prefix = root.root / "megatron/chat/mine__00/train/shard_00_tokens"
    made = test_dataset.dataset(prefix, test_dataset.config(tmp_path / "cache"))
    sample = made[0]
    assert np.array_equal(sample["loss_mask"].numpy() > 0, sample["span_id"].numpy() > 0)
    assert set(sample["span_id"].tolist()) == {0, 1, 2}
    assert made._own == HARMONY


def test_a_shard_by_the_recipe_of_synth_is_made_from_its_files_and_leads_back_to_their_rows(root):
    drop = root.root / "drops/chat/own"
    files = write_drop(drop, files=6)
    recipe = 'schema = 1\nkind = "chat"\nname = "own"\nrecipe = "synth"\n'
    (drop / "corpus.toml").write_text(f"{recipe}split = {{ validation = 0.3 }}\n")
    conversations = built(root, "chat/conversations", "own__01").record
    own = [f"drops/chat/own/{file.name}" for file in files[2:4]]
    assert [item.path for item in conversations.inputs] == own
    counts = built(root, "chat/kd_shards", "own__01").record.counts
    rows = [
        (f"drops/chat/own/{file.name}", number, row)
        for file in files[2:4]
        for number, row in enumerate(pq.read_table(file).to_pylist(), 1)
        if all(row[name] for name in TEXTS)
    ]
    assert counts["rows"] == len(rows)
    spoken = Counter(row["language"] for _, _, row in rows)
    assert {name: counts[f"languages/{name}"] for name in spoken} == spoken
    found = []
    for split in ("train", "valid"):
        assert counts[f"{split}_rows"] > 0
        for number in range(int(counts[f"{split}_rows"])):
            folder = root.root / "megatron/chat/own__01"
            request = Request(folder, str(number), {"split": split, "shard": None})
            document, raw = (origin.facts() for origin in traced("chat/kd_shards", request))
            names = ("synth_id", "language", "exercise")
            found.append((raw["raw_file"], raw["raw_row"], [document[name] for name in names]))
    expected = [
        (file, number, [row[name] for name in ("synth_id", "language", "exercise")])
        for file, number, row in rows
    ]
    assert sorted(found) == sorted(expected)


KILLED = """
import os, signal, sys
from pathlib import Path
from gristmill.asset import Wanted, declared
from gristmill.corpora.raw import rows as read_rows
from gristmill.data_root import DataRoot
from gristmill.publish.publish import publish
from gristmill.reasoning.format import reports
from gristmill.reasoning.read.trace import traced as traced_row
from gristmill.reasoning.show import tables
from gristmill.run.parts import PartStore
from tests.synth.builders.chat import test_publishing as own

root, where, left, workers = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
own.make_small(setattr)
owner = own.WRITERS[where]
write = getattr(owner, where)

def killed(self, *given):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(self, *given)

setattr(owner, where, killed)
own.built(DataRoot(Path(root)), "chat/conversations", "mine__00", workers=workers)
"""
WRITERS = {"add": reports.ShardWriter, "finished": PartStore, "notes": reports.ShardWriter}
"""What writes a row group, what looks for a part, and what is done at the end."""


def make_small(change: Any) -> None:
    """Make row groups, pieces and files that have some small, by what sets an attribute."""
    change(reports, "GROUP_ROWS", 20)
    change(read_rows, "_PIECE_BYTES", 4000)
    change(read_rows, "_LEAST_BYTES", 1)


def put_parted(root: DataRoot, part_bytes: int, count: int = 600) -> list[Any]:
    """Put 600 conversations into the drop, one of which is refused; returns its rows."""
    drop = root.root / "drops/chat/mine"
    head = HEAD.replace("shards = 2\nid", f"part_bytes = {part_bytes}\n#")
    (drop / "corpus.toml").write_text(head + RENDER)
    said = [("user", "Who is {}? "), ("assistant", "<think>{} is said</think>It is {}.")]
    rows = [
        {"m": [{"role": role, "content": text.format(n, n) * (1 + n % 7)} for role, text in said]}
        for n in range(count)
    ]
    rows[7]["m"] = rows[7]["m"][1:]
    (drop / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def outputs_of(folder: Path) -> dict[str, bytes]:
    """The payload of an artifact."""
    named = read_record(record_path(folder, None, shared=False)).outputs
    return {each.path: (folder / each.path).read_bytes() for each in named if each.payload}


def test_conversations_in_parts_become_what_one_file_becomes(root, monkeypatch, tmp_path):
    make_small(monkeypatch.setattr)
    folders = [root.root / f"{each}/chat/mine__00" for each in ("megatron", "distill")]
    talks, found = root.root / "chat/conversations/mine__00", list[Any]()
    for part_bytes in (1 << 30, 5000):
        rows = put_parted(root, part_bytes)
        for asset in ("chat/conversations", "chat/kd_shards", "chat/distill"):
            built(root, asset, "mine__00", **({"bad_rows": 1} if "conv" in asset else {}))
        project(talks, tmp_path / str(part_bytes), to="messages")
        made = [outputs_of(each) for each in folders]
        trained = (tmp_path / str(part_bytes) / "train.jsonl").read_bytes()
        found.append((made, trained, [*rows_of(reports.shards(talks), ("messages_json", "row"))]))
    assert found[0] == found[1]
    parts = reports.shards(talks)
    assert len(parts) > 5 and parts == sorted((talks / "shard_00").iterdir())
    shown = tables("chat/conversations", talks, Files(talks))
    assert verify(root.root) == [] and len(shown) == len(parts)
    first = shown[3].open().read(0, 1, 60.0)[0]
    assert shown[3].sample is not None and shown[3].name == "00__00003"
    number, _ = shown[3].sample(first)
    traced_talk = partial(traced_row, "chat/conversations")
    talk = next(iter(traced_talk(Request(talks, number)))).facts()
    assert (talk["file"], talk["row"]) == ("shard_00/00003.parquet", 1)
    dice = Random(5)
    for number in dice.sample(range(len(rows) - 1), 200):
        row, raw = (each.facts() for each in traced_talk(Request(talks, str(number))))
        line = (root.root / str(raw["raw_file"])).read_bytes().split(b"\n")[int(raw["raw_row"]) - 1]
        text = json.loads(line)["m"][0]["content"]
        (group,) = pq.read_table(talks / str(row["file"])).slice(int(row["row"]) - 1, 1).to_pylist()
        assert json.loads(group["messages_json"])["messages"][0]["content"] == text
        assert rows[number + (number > 6)]["m"][0]["content"] == text
    for at in dice.sample(range(500), 50):
        *_, raw = traced("chat/kd_shards", Request(folders[0], str(at), {"split": "train"}))
        assert int(str(raw.facts()["raw_row"])) == 1 + at + (at > 6)
    parts[2].unlink()
    for read in (
        lambda: reports.shards(talks),
        lambda: [*traced_row("chat/conversations", Request(talks, "300"))],
    ):
        with pytest.raises(
            BadInput, match=r"00002\.parquet: is missing.*build the partition again"
        ):
            read()


PLACES = [*(("add", n, 1 + n % 2) for n in (1, 2, 9, 17, 30)), ("notes", 1, 1)]
PLACES += [("finished", n, 1) for n in (1, 2, 11, 25)]


@pytest.mark.slow
@pytest.mark.parametrize(("where", "count", "workers"), PLACES)
def test_a_build_in_parts_that_was_killed_goes_on(root, monkeypatch, where, count, workers):
    monkeypatch.setenv("GRISTMILL_PARTS_SECONDS", "0")
    put_parted(root, 5000)
    recipe = root.root / "drops/chat/mine/gristmill.toml"
    recipe.write_text("[chat.conversations]\nbad_rows = 1\n")
    command = [sys.executable, "-c", KILLED, str(root.root), where, str(count), str(workers)]
    assert subprocess.run(command, cwd=CHECKOUT, check=False).returncode == -signal.SIGKILL
    make_small(monkeypatch.setattr)
    done = built(root, "chat/conversations", "mine__00", workers=2)
    assert any("taken over" in note for note in done.notes) == ((where, count) != ("finished", 1))
    resumed = outputs_of(done.folder)
    monkeypatch.undo()
    make_small(monkeypatch.setattr)
    kind = declared()["chat/conversations"]
    publish(kind.build(Wanted(kind, root, "mine__00")), rebuild=True)
    assert outputs_of(done.folder) == resumed and len(resumed) > 5
