"""Conversations to Megatron datasets: templates, masks, splits, refusals, parts, and the laws."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.run.parts import PartStore
from gristmill.synth import show
from gristmill.synth.builders import chat, kd_shard
from gristmill.synth.builders.chat import ChatSummary, build_chat_shard
from gristmill.synth.config import ChatKDConfig
from gristmill.synth.format import megatron
from gristmill.synth.format.trace import trace
from gristmill.synth.laws import chat_law
from gristmill.synth.raw import Render
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import of_pinned
from tests.synth.conversations import hashes, plain
from tests.synth.render.talks import TEMPLATES

PLAIN = Render()
OWN = Render("drop:t.jinja", Path("t.jinja"), TEMPLATES["qwen"])
RENDERS = [PLAIN, Render("chatml"), Render("chatgpt_plain"), OWN]
TEXTS = ("messages_json", "synth_id", "spans", "split", "file")


def row(number: int, spans: str = "01202") -> dict[str, Any]:
    """A conversation of two turns, the first answer with a thought."""
    messages = [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": "a thought", "channel": "analysis"},
        {"role": "assistant", "content": "answer", "channel": "final"},
        {"role": "user", "content": "more <|end|>"},
        {"role": "assistant", "content": f"answer {number}", "channel": "final"},
    ]
    values = [json.dumps({"messages": messages}), str(number), spans, "train", "a.jsonl"]
    return {**dict(zip(TEXTS, values, strict=True)), "row": number}


def build(
    folder: Path,
    vocabulary: Path,
    rows: list[dict[str, Any]],
    render: Render = PLAIN,
    parts: PartStore | None = None,
    **config: Any,
) -> tuple[ChatSummary, Path]:
    """The datasets of rows; their laws hold."""
    folder.mkdir(exist_ok=True)
    source, out = folder / "shard_02.parquet", folder / "out"
    schema = pa.schema([*((name, pa.string()) for name in TEXTS), ("row", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema), source, row_group_size=5)
    tokenizer = of_pinned(O200K, vocabulary)
    given = ChatKDConfig(vocabulary, 0.0, render=render.recorded, **config)
    made = build_chat_shard(source, out, given, render, tokenizer, parts)
    laws = chat_law(Subject(out, None, [], config={**vars(given), "vocabulary": "v"}))
    assert list(laws) == []
    return made, out


@pytest.mark.parametrize("render", RENDERS, ids=lambda render: render.template)
def test_conversations_become_datasets_by_every_template(render, vocabulary, tmp_path):
    rows = [row(number) for number in range(12)]
    rows[3]["split"] = rows[7]["split"] = "validation"
    made, out = build(tmp_path / "a", vocabulary, rows, render)
    assert (made.rows, made.train_rows, made.valid_rows) == (12, 10, 2)
    assert made.control_texts == 12
    assert made.dropped_thoughts == (12 if render is OWN else 0)
    assert (made.spans["reasoning"] > 0) == (render is not OWN)
    assert set(hashes(out)) == set(made.files)
    assert [trace(out, "02", "valid", at).synth_id for at in range(2)] == ["3", "7"]
    assert "question" in plain(show.document(out, "02", "valid", 1, vocabulary))


@pytest.mark.parametrize("render", RENDERS[:3], ids=lambda render: render.template)
def test_what_is_not_trained_on_is_masked_and_nothing_else_changes(render, vocabulary, tmp_path):
    _, whole = build(tmp_path / "a", vocabulary, [row(1)], render)
    made, out = build(tmp_path / "b", vocabulary, [row(1, "00002")], render)
    assert made.spans["reasoning"] == 0 < made.spans["final"]
    name = "train/shard_02_"
    assert (out / f"{name}tokens.bin").read_bytes() == (whole / f"{name}tokens.bin").read_bytes()
    span = megatron.read(out / f"{name}span")[0].tolist()
    before = megatron.read(whole / f"{name}span")[0].tolist()
    last = max(at for at, code in enumerate(span) if code)
    first = span.index(2)
    assert span[first : last + 1] == before[first : last + 1]
    assert megatron.read(out / f"{name}lossmask")[0].tolist() == [int(code > 0) for code in span]


def test_each_answer_gets_a_document_where_turns_are_expanded(vocabulary, tmp_path):
    render = Render(OWN.template, OWN.path, OWN.source, expand="turns")
    made, out = build(tmp_path / "a", vocabulary, [row(1), row(2, "00002")], render)
    assert (made.rows, made.dropped_thoughts) == (3, 0)
    assert made.spans["reasoning"] > 0
    assert [trace(out, "02", "train", at).row for at in range(3)] == [1, 1, 2]


def test_rows_that_a_template_refuses_are_set_aside_with_its_words(vocabulary, tmp_path):
    source = (
        "{% if 'question 2' in messages[0].content %}{{ raise_exception('no twos') }}{% endif %}"
        + TEMPLATES["chatml"]
    )
    render = Render("drop:t.jinja", Path("t.jinja"), source)
    rows = [row(1), row(2), row(3, "00000")]
    with pytest.raises(BadInput, match="no twos"):
        build(tmp_path / "no", vocabulary, rows, render)
    made, out = build(tmp_path / "a", vocabulary, rows, render, bad_rows=1)
    assert (made.rows, made.bad_rows) == (2, 1)
    (line,) = next(out.glob("quarantine/*")).read_text().splitlines()
    assert "no twos" in line


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("render", [PLAIN, OWN], ids=lambda render: render.template)
def test_parts_workers_and_kills_change_no_byte(render, workers, vocabulary, tmp_path, monkeypatch):
    rows = [row(number) for number in range(23)]
    _, whole = build(tmp_path / "a", vocabulary, rows, render)
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 5)
    store = tmp_path / "parts"
    store.mkdir()
    _, parted = build(tmp_path / "b", vocabulary, rows, render, PartStore(store), workers=workers)
    assert hashes(parted) == hashes(whole)
    kept = sorted(path for path in store.iterdir() if path.name.startswith("rows_"))
    assert len({path.name[:11] for path in kept}) == 5
    # As after a kill: the first parts are there, and are not made again.
    for path in kept:
        if path.name.startswith("rows_000004"):
            path.unlink()
    made, plain = list[str](), chat.part_of
    monkeypatch.setattr(chat, "part_of", lambda task: made.append("") or plain(task))
    _, again = build(tmp_path / "c", vocabulary, rows, render, PartStore(store))
    assert hashes(again) == hashes(whole)
    assert len(made) == 1


def test_a_damaged_dataset_of_conversations_breaks_a_law(vocabulary, tmp_path):
    _, out = build(tmp_path / "a", vocabulary, [row(1), row(2)], Render("chatml"))
    config = {"render": Render("chatml").recorded, "eod": 199_999, "ids": 201_088}
    for name, offset, law in (
        ("tokens", -4, "EOD at the end"),
        ("lossmask", -1, "mask is span not 0"),
    ):
        path = out / f"train/shard_02_{name}.bin"
        good = path.read_bytes()
        bad = bytearray(good)
        bad[offset] ^= 1
        path.write_bytes(bytes(bad))
        assert law in [each.law for each in chat_law(Subject(out, None, [], config=config))]
        path.write_bytes(good)
    small = {**config, "ids": 1000}
    found = [each.law for each in chat_law(Subject(out, None, [], config=small))]
    assert "tokens in the vocabulary" in found
