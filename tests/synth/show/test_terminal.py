"""Conversations in a terminal: colours, errors with file and rule."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.families import Request
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import trace
from gristmill.synth.show import preview, terminal, tokens
from gristmill.vocabularies.pinned import O200K
from tests.synth.conversations import as_json, conversation
from tests.synth.damage import broken_laws, set_value

HI = as_json(conversation("hi you\n", "well", "ok"))
SHOWN = """
user
<|start|>user<|message|>hi·you⏎
<|end|>

analysis
<|start|>assistant<|channel|>analysis<|message|>well<|end|>

final
<|start|>assistant<|channel|>final<|message|>ok<|return|>

end
<|endoftext|>
"""


def test_a_row_and_its_document_are_shown_alike(
    write_rows: Callable[..., Path], vocabulary: Path, tmp_path: Path
) -> None:
    shard = write_rows([("a", HI), ("b", HI), ("c", HI)], row_group_size=2)
    build_kd_shard(shard, tmp_path / "kd", KDConfig(vocabulary, 0.0))
    of_row = terminal.row_text(shard.parent, "07", 2, vocabulary)
    of_document = terminal.document_text(tmp_path / "kd", "07", "train", 2, vocabulary)
    legend = " prompt   reasoning   final  italic: masked, not in the loss\n"
    title = "synth_harmony_shard_07.parquet row 3 · c · 22 tokens\n"
    assert of_row.plain == title + legend + SHOWN
    first, _, rest = of_document.plain.partition("\n")
    assert first == "train document 2 · c · 22 tokens · synth_harmony_shard_07.parquet row 3"
    assert rest == legend + SHOWN
    # Equal styles after the titles and the legend.
    styles = [
        [(span.end - span.start, span.style) for span in text.spans][4:]
        for text in (of_row, of_document)
    ]
    assert styles[0] == styles[1]
    assert styles[0][1] == (9, "bold black on grey85 italic")
    assert (4, "not bold black on light_goldenrod2") in styles[0]
    assert (2, "not bold black on dark_sea_green2") in styles[0]


@pytest.mark.parametrize("row", [-1, 3])
def test_a_row_that_is_not_there_is_refused(
    write_rows: Callable[..., Path], vocabulary: Path, row: int
) -> None:
    shard = write_rows([("a", HI), ("b", HI), ("c", HI)], row_group_size=2)
    with pytest.raises(BadInput, match=f"has rows 0 to 2, not {row}"):
        terminal.row_text(shard.parent, "07", row, vocabulary)
    with pytest.raises(BadInput, match="there is no such shard"):
        terminal.row_text(shard.parent, "01", 0, vocabulary)


def test_a_document_that_is_not_there_is_refused(kd_root: Path, vocabulary: Path) -> None:
    with pytest.raises(BadInput, match=r"has documents 0 to \d+, not 9999"):
        terminal.document_text(kd_root, "00", "train", 9999, vocabulary)
    with pytest.raises(BadInput, match="not -1"):
        terminal.document_text(kd_root, "00", "train", -1, vocabulary)
    with pytest.raises(BadInput, match="shard 01 has no documents in valid"):
        terminal.document_text(kd_root, "01", "valid", 0, vocabulary)


def test_a_person_who_names_neither_sees_shard_00_and_train(
    kd_root: Path, harmony: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(O200K.variable, str(vocabulary))
    (row,) = terminal.show_row(Request(harmony.parent, "1"))
    assert row == terminal.row_text(harmony.parent, "00", 1, vocabulary)
    for split, given in (("train", {}), ("valid", {"shard": "00", "split": "valid"})):
        (document,) = terminal.show_document(Request(kd_root, "1", given))
        assert document == terminal.document_text(kd_root, "00", split, 1, vocabulary)
    with pytest.raises(BadInput, match="shard 01 has no documents in train"):
        list(terminal.show_document(Request(kd_root, "0", {"shard": "01"})))


@pytest.mark.parametrize("kind", ["bin", "idx"])
def test_the_error_names_a_missing_file(kd_copy: Path, vocabulary: Path, kind: str) -> None:
    (kd_copy / f"train/shard_00_span.{kind}").unlink()
    assert "readable" in broken_laws(kd_copy)
    with pytest.raises(BadInput, match=rf"shard_00_span\.{kind}: the file is missing"):
        terminal.document_text(kd_copy, "00", "train", 0, vocabulary)


@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [
        ("tokens", "<i4", -1),
        ("tokens", "<i4", 201_088),
        ("lossmask", "u1", 2),
        ("span", "u1", 3),
    ],
)
def test_a_damaged_document_is_not_shown(
    kd_copy: Path, vocabulary: Path, name: str, dtype: str, value: int
) -> None:
    set_value(kd_copy / f"train/shard_00_{name}.bin", dtype, 3, value)
    with pytest.raises(BadInput, match=rf"shard_00_{name}\.bin: document 0 is damaged"):
        terminal.document_text(kd_copy, "00", "train", 0, vocabulary)


def test_control_characters_in_an_id_are_drawn_and_written_without_harm(
    kd_copy: Path, vocabulary: Path
) -> None:
    path = kd_copy / trace.path("00")
    table = pq.read_table(path)
    ids = pa.array(["\x00\x1b[31m\ufffe<b>"] * len(table))
    pq.write_table(table.set_column(4, "synth_id", ids), path)
    drawn = preview.svg([tokens.conversation(kd_copy, "00", "train", 0, vocabulary)])
    assert "<b>" not in drawn
    ElementTree.fromstring(drawn)
    assert "\x1b" not in terminal.document_text(kd_copy, "00", "train", 0, vocabulary).plain
    ran = CliRunner().invoke(main, ["trace", str(kd_copy), "0"])
    assert "synth_id: ��[31m�<b>\n" in ran.output


def test_the_first_number_beyond_the_documents_is_refused(
    write_rows: Callable[..., Path], vocabulary: Path, tmp_path: Path
) -> None:
    build_kd_shard(write_rows([("a", HI), ("b", HI)]), tmp_path / "kd", KDConfig(vocabulary, 0.0))
    assert terminal.document_text(tmp_path / "kd", "07", "train", 1, vocabulary)
    with pytest.raises(BadInput, match="has documents 0 to 1, not 2"):
        terminal.document_text(tmp_path / "kd", "07", "train", 2, vocabulary)
    with pytest.raises(BadInput, match="not -1"):
        terminal.document_text(tmp_path / "kd", "07", "train", -1, vocabulary)


def test_a_character_of_several_tokens_is_printed_whole_and_marked(
    write_rows: Callable[..., Path], vocabulary: Path
) -> None:
    shard = write_rows([("a", as_json(conversation("q \U0001d11e\n", "👨\u200d👩", "f 🫠")))])
    text = terminal.row_text(shard.parent, "07", 0, vocabulary).plain
    assert "\ufffd" not in text
    for char in ("\U0001d11e", "👨", "👩", "🫠"):
        assert char in text
    assert "\U0001d11e›₃" in text
