"""The built-in recipe of SYNTH gives the bytes of `synth/kd_shards` of the same files."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.corpora.raw.chat.messages import account, chat_of
from gristmill.families import Subject
from gristmill.reasoning.builders.conversations import normalize_conversations
from gristmill.reasoning.config import ChatConfig
from gristmill.reasoning.laws.texts import conversation_laws
from gristmill.synth.builders.chat import build_chat_shard
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import ChatKDConfig, HarmonyConfig, KDConfig
from gristmill.synth.format import trace
from gristmill.synth.laws import chat_law
from gristmill.synth.raw import COLUMNS, TEXTS, Render
from gristmill.synth.samples import write_drop
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import of_pinned

HEAD = 'schema = 1\nkind = "chat"\nname = "synth_like"\nrecipe = "synth"\n'
SCHEMA = pa.schema([(name, pa.int64() if name == "words" else pa.string()) for name in COLUMNS])


def by_synth(
    files: Sequence[Path],
    out: Path,
    vocabulary: Path,
    fraction: float = 0.001,
    conversion: HarmonyConfig | None = None,
    shards: int = 4,
) -> list[Path]:
    """The datasets of the shards by `synth/harmony` and `synth/kd_shards`."""
    made = []
    config = conversion or HarmonyConfig(num_shards=shards)
    for number in range(shards):
        harmony, folder = out / f"harmony{number}", out / f"kd{number}"
        to_harmony(files, harmony, number, config)
        path = harmony / f"synth_harmony_shard_{number:02d}.parquet"
        build_kd_shard(path, folder, KDConfig(vocabulary, fraction))
        made.append(folder)
    return made


def by_chat(drop: Path, out: Path, vocabulary: Path, bad_rows: int = 0) -> list[Path]:
    """The datasets of the shards by `chat/conversations` and `chat/kd_shards`; their laws hold."""
    chat = chat_of(drop)
    files = {split: [drop / name for name in names] for split, names in account(drop).taken.items()}
    tokenizer = of_pinned(O200K, vocabulary)
    made = []
    for number, key in enumerate(chat.partitions):
        talks, folder = out / f"talks{number}", out / f"chat{number}"
        config = ChatConfig(recipe=chat.table, bad_rows=bad_rows)
        normalize_conversations(drop, files, talks, key, config)
        assert list(conversation_laws(Subject(talks, config={"recipe": chat.table}))) == []
        kd = ChatKDConfig(vocabulary, 0.0, render=Render().recorded)
        build_chat_shard(talks / f"shard_{number:02d}.parquet", folder, kd, Render(), tokenizer)
        assert list(chat_law(Subject(folder, config=vars(kd)))) == []
        made.append(folder)
    return made


def drop_of(folder: Path, more: str = "", **options: Any) -> list[Path]:
    """The raw files of a drop with the recipe. more: lines of it. options: of `write_drop`."""
    drop = folder / "synth_like"
    files = write_drop(drop, done=False, **options)
    (drop / "corpus.toml").write_text(HEAD + more)
    return files


def datasets(folder: Path) -> dict[str, str]:
    """sha256 of the files of tokens, mask and span."""
    paths = sorted([*folder.rglob("*.bin"), *folder.rglob("*.idx")])
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def origins(folder: Path, number: int) -> list[dict[str, Any]]:
    """The trace, but for the name of the shard that it leads to."""
    table = pq.read_table(folder / trace.path(f"{number:02d}"))
    rows: list[dict[str, Any]] = table.drop_columns(["input"]).to_pylist()
    return rows


def assert_equal(found: Sequence[Path], expected: Sequence[Path]) -> None:
    """All files and traces of the datasets of all shards are equal."""
    assert len(found) == len(expected)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert datasets(one) == datasets(other), number
        assert origins(one, number) == origins(other, number)


def rewritten(
    file: Path, change: Callable[[int, dict[str, Any]], None], schema: pa.Schema = SCHEMA
) -> None:
    """Change the rows of a file."""
    rows = pq.read_table(file).to_pylist()
    for number, row in enumerate(rows):
        change(number, row)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)


@pytest.mark.parametrize(("count", "shards"), [(4, 4), (9, 4), (5, 2), (1, 1)])
def test_the_word_gives_the_bytes_of_synth_s_shards(tmp_path, vocabulary, count, shards):
    more = "" if shards == 4 else f"shards = {shards}\n"
    files = drop_of(tmp_path, f"{more}split = {{ validation = 0.3 }}\n", files=count)
    found = by_chat(files[0].parent, tmp_path, vocabulary)
    expected = by_synth(files, tmp_path, vocabulary, 0.3, shards=shards)
    assert_equal(found, expected)
    assert {name.split("/")[0] for name in datasets(found[0])} == {"train", "valid"}
    assert sum(len(origins(folder, at)) for at, folder in enumerate(found)) < 60 * count


@pytest.mark.real
@pytest.mark.parametrize("each", [1, 2])
def test_real_rows_give_the_bytes_of_the_reference(tmp_path, real, vocabulary, each):
    identity = "You are vpMoE, a large language model trained by Veer Pareek."
    files = drop_of(tmp_path, files=4 * each, rows=1)
    for number in range(4):
        shard = real / f"synth_harmony/synth_harmony_shard_{number:02d}.parquet"
        rows = []
        for row in pq.read_table(shard).to_pylist():
            *_, query, reasoning, answer = json.loads(row["messages_json"])["messages"]
            said = [each["content"][0]["text"] for each in (query, reasoning, answer)]
            rows.append({**row, **dict(zip(TEXTS, said, strict=True))})
        own, size = files[number * each : (number + 1) * each], len(rows) // each
        for at, file in enumerate(own):
            part = rows[at * size : (at + 1) * size]
            pq.write_table(pa.Table.from_pylist(part, schema=SCHEMA), file)
    recipe = files[0].parent / "corpus.toml"
    system = chat_of(recipe.parent).turns["system"]
    assert not isinstance(system, str)
    text = system["constant"].replace("You are a helpful large language model.", identity)
    turns = f"[turns.system]\nconstant = {json.dumps(text)}\n"
    recipe.write_text(f"{HEAD}split = {{ validation = 0.1 }}\n{turns}")
    found = by_chat(recipe.parent, tmp_path, vocabulary)
    config = HarmonyConfig(model_identity=identity)
    assert_equal(found, by_synth(files, tmp_path, vocabulary, 0.1, config))
    golden = [line.split() for line in (real / "golden_sha256.txt").read_text().splitlines()]
    made = {name: digest for folder in found for name, digest in datasets(folder).items()}
    assert len(golden) == 24
    assert {name: made[name] for _, name in golden} == {name: digest for digest, name in golden}


_PIECES = (
    *("a", "b c", " ", "  ", "\n", "\r", "\r\n", "\t", "\ufeff", "\u2028", "\0", "\u3000", "\xa0"),
    *("<think>", "</think>", "<|end|>", "<|start|>user", "{query}", "{", "}}", "\U0001d11e", "é"),
    "You are ",
)
_ALONE = (None, "", " ", "\n\r", "\ufeff", "\ufeff\ufeff a", "\r", "\r\n", "\xa0", "<think>", "x")


def unusual(random: Random) -> str | None:
    """A text, empty and null ones among them."""
    if random.random() < 0.3:
        return random.choice(_ALONE)
    return "".join(random.choices(_PIECES, k=random.randrange(1, 12)))


@pytest.mark.parametrize("seed", range(4))
def test_rows_with_unusual_texts_give_the_same_bytes(tmp_path, vocabulary, seed):
    random = Random(seed)
    files = drop_of(tmp_path, "split = { validation = 0.4 }\n", files=6, rows=80)

    def change(number: int, row: dict[str, Any]) -> None:
        row |= {name: unusual(random) for name in TEXTS}
        marks = random.choice(["{}", " {}", "{}\r\n", "\ufeff{}", "{} é", "{}\t"])
        row["synth_id"] = marks.format(f"id {seed} {random.randrange(400)}")
        row |= {name: random.choice([None, "", "en\r", "x"]) for name in ("language", "exercise")}
        if not all(row[name] for name in TEXTS):
            row["synth_id"] = random.choice([None, "", " ", row["synth_id"]])

    for file in files:
        rewritten(file, change)
    found = by_chat(files[0].parent, tmp_path, vocabulary)
    assert_equal(found, by_synth(files, tmp_path, vocabulary, 0.4))
    assert all(len(origins(folder, at)) > 20 for at, folder in enumerate(found))


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.json_(pa.string()),
    ],
    ids=str,
)
def test_columns_of_any_legal_type_and_unread_ones_give_the_same_bytes(tmp_path, vocabulary, kind):
    files = drop_of(tmp_path, "split = { validation = 0.4 }\n", files=4)
    for file in files:
        table = pq.read_table(file)
        for name in (*TEXTS, "language"):
            own = table.column(name).combine_chunks()
            if isinstance(kind, pa.DictionaryType):
                own = own.dictionary_encode()
            elif isinstance(kind, pa.BaseExtensionType):
                own = pa.ExtensionArray.from_storage(kind, own)
            else:
                own = own.cast(kind)
            table = table.set_column(table.schema.get_field_index(name), name, own)
        numbers = pa.array(range(len(table)), pa.int64())
        table = table.set_column(table.schema.get_field_index("synth_id"), "synth_id", numbers)
        table = table.append_column("tools", pa.array([[b"x"]] * len(table)))
        pq.write_table(table, file)
    found = by_chat(files[0].parent, tmp_path, vocabulary)
    assert_equal(found, by_synth(files, tmp_path, vocabulary, 0.4))


def test_a_file_without_rows_and_a_column_of_nulls_are_read(tmp_path, vocabulary):
    files = drop_of(tmp_path, files=8)
    rewritten(files[1], lambda number, row: None)
    pq.write_table(pq.read_table(files[1]).slice(0, 0), files[1])
    table = pq.read_table(files[2])
    for name in ("language", "model"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.nulls(len(table)))
    pq.write_table(table, files[2])
    found = by_chat(files[0].parent, tmp_path, vocabulary)
    assert_equal(found, by_synth(files, tmp_path, vocabulary))


def test_another_developer_message_or_none_is_a_text_of_turns(tmp_path, vocabulary):
    for number, (said, text) in enumerate(
        [("Be\r\nbrief. ", "# Instructions\n\nBe\r\nbrief. "), (None, "")]
    ):
        folder = tmp_path / str(number)
        more = f"turns.developer = {{ constant = {json.dumps(text)} }}\n"
        files = drop_of(folder, more, files=4)
        found = by_chat(files[0].parent, folder, vocabulary)
        config = HarmonyConfig(developer=said)
        assert_equal(found, by_synth(files, folder, vocabulary, conversion=config))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "row", "rule"),
    [
        ({"synth_id": None}, 4, "its synth_id is None: give the row an id, which chooses its"),
        ({"query": "a" + " " * 100_001}, 4, "more than 100,000 white space characters in a row"),
    ],
)
def test_a_row_that_synth_refuses_is_named_with_its_rule(tmp_path, vocabulary, changed, row, rule):
    files = drop_of(tmp_path, files=4)
    good = dict.fromkeys(TEXTS, "a text")
    rewritten(files[1], lambda number, each: each.update(good | changed if number == 3 else {}))
    with pytest.raises(BadInput, match=rule) as refused:
        by_chat(files[0].parent, tmp_path, vocabulary)
    assert (refused.value.file, refused.value.row) == (str(files[1]), row)
    with pytest.raises(BadInput):
        by_synth(files, tmp_path, vocabulary)
    assert len(by_chat(files[0].parent, tmp_path / "again", vocabulary, bad_rows=1)) == 4


def test_a_file_of_few_rows_of_which_none_is_good_is_refused(tmp_path, vocabulary):
    files = drop_of(tmp_path, files=8, rows=2)
    rewritten(files[1], lambda number, row: row.update(dict.fromkeys(TEXTS, "a"), synth_id=None))
    with pytest.raises(BadInput, match="no row of the file is good") as refused:
        by_chat(files[0].parent, tmp_path, vocabulary, bad_rows=9)
    assert refused.value.file == str(files[1])


def test_too_few_files_and_a_shard_of_rows_that_are_left_out_are_refused(tmp_path, vocabulary):
    files = drop_of(tmp_path, files=3)
    drop = files[0].parent
    rule = "3 files: 4 shards need a file each: write shards = 3 into corpus.toml, or divide"
    with pytest.raises(BadInput, match=rule):
        account(drop)
    (one,) = drop_of(tmp_path / "one", files=1)
    with pytest.raises(BadInput, match="1 file: 4 shards need a file each: write shards = 1"):
        account(one.parent)
    (drop / "corpus.toml").write_text(HEAD + "shards = 3\n")
    rewritten(files[2], lambda number, row: row.update(query=""))
    with pytest.raises(BadInput, match="no record of the split is left") as refused:
        by_chat(drop, tmp_path, vocabulary)
    assert "60 keep:query" in str(refused.value)
