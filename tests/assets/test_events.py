"""What events say of partitions that are published, and of those that are not built."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._serdes import serialize_value

from assets.events import (
    COLUMNS,
    MOST_NUMBERS,
    ROWS,
    Problem,
    Target,
    bounded_numbers,
    column_schema,
    drop_rows,
    event_metadata,
    problem_of,
)
from gristmill import families, markdown, provenance
from gristmill.asset import declared
from gristmill.browse import Picture, source
from gristmill.browse.columns import of_values
from gristmill.browse.opening import open_stored
from gristmill.browse.source import Stored
from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.corpora import records
from gristmill.inbox.hub import HubError
from gristmill.inbox.listing import ColumnState
from gristmill.macroxue.format import files as side_files
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, VALUE_ROW_DTYPE
from gristmill.provenance import Input, Record
from gristmill.provenance.record import Accounted
from gristmill.publish.build import LawsBroken, Published
from gristmill.puzzles import show as tables
from gristmill.reasoning.format import align, index
from gristmill.run.locks import Busy
from gristmill.synth.builders.harmony import schema_of
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.trace import schema
from tests.assets.helpers import MOST_BYTES
from tests.paths import CHECKOUT
from tests.puzzles.small_datasets import SMALL, write

TABLES = [
    *("macroxue/pack", "macroxue/pool", "macroxue/values", "macroxue/training_view"),
    *("synth/harmony", "synth/kd_shards", "synth_smoke/kd_shards", "chat/kd_shards"),
    *("synth/distill", "chat/distill"),
    *("chess/valid_games", "chess/game_dataset", "chess/splice_cache", "chess/splice_dataset"),
    "chess/subset",
    *("reasoning/normalized", "chat/conversations", "reasoning/gpt2_shards", "reasoning/alignment"),
    *("reasoning/tokens", "reasoning/exports", "reasoning/spans", "audits/leaks"),
    *("puzzles/arc", "puzzles/sudoku", "puzzles/maze", "puzzles/domino", "puzzles/grid"),
]
ASSETS = [kind.asset for catalog in families.catalogs() for kind in catalog.kinds]


class SmallRecord(SimpleNamespace):
    """As much of a record as an event needs."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return {"asset": self.asset, "counts": self.counts, **self.more}


def published(
    counts: Mapping[str, int | float] | None = None, more: dict[str, Any] | None = None, **rest: Any
) -> Published:
    record = SmallRecord(
        asset="corn/mill",
        counts=dict(counts or {}),
        outputs=[SimpleNamespace(path="a", bytes=5), SimpleNamespace(path="b", bytes=7)],
        seconds=1.5,
        peak_memory_bytes=2_000_000,
        data_version="b",
        artifact="corn",
        partition=None,
        config={},
        inputs=[],
        inputs_file=None,
        tokenizer=None,
        more=more or {},
        account=rest.pop("accounted", None),
    )
    fields = {"folder": Path("/data/corn"), "rebuilt": True, "notes": [], "before": None}
    fields |= {"account": "", "not_checked": "", **rest}
    return SimpleNamespace(record=record, **fields)  # type: ignore[return-value]


def stored(metadata: dict[str, Any]) -> int:
    return len(serialize_value(dg.AssetMaterialization("a", metadata=metadata)))


def value(metadata: dict[str, Any], name: str) -> Any:
    return getattr(metadata[name], "value", metadata[name])


def drawing(length: int) -> str:
    """An SVG whose Markdown has a number of characters."""
    return "<svg>" + "x" * (length - len(markdown.image("t", "<svg></svg>"))) + "</svg>"


@pytest.mark.parametrize(
    ("length", "is_shown"), [(markdown.INLINE, True), (markdown.INLINE + 1, False)]
)
def test_a_picture_stands_first_if_dagster_shows_it_inline(monkeypatch, length, is_shown):
    rows = [{"n": n} for n in range(9)]
    asked: list[int] = []

    def pictures(row: source.Record) -> list[Picture]:
        asked.append(row.values["n"])
        return [Picture("t", drawing(length))]

    stored = Stored("t", lambda: of_values(Path("x"), rows), pictures=pictures)
    table = open_stored(Path("x"), "corn/mill", stored)
    monkeypatch.setattr("gristmill.browse.opening.pictured_table", lambda *_: table)
    metadata = event_metadata(published({"rows": 3}), lambda _: 7)
    assert asked == [7]
    assert (next(iter(metadata)) == "picture") == ("picture" in metadata) == is_shown
    assert "picture" not in event_metadata(published({"rows": 3}), lambda _: 9)


def test_a_damaged_folder_has_no_picture_and_its_event_goes_on(tmp_path):
    folder = write(tmp_path / "sudoku", SMALL["sudoku"]())
    some = published({"rows": 60}, folder=folder)
    some.record.asset, some.record.outputs = "puzzles/sudoku", []
    assert "picture" in event_metadata(some, tables.sample)
    (folder / "train/dataset.json").unlink()
    (folder / "train/dataset.json").mkdir()
    with pytest.raises(IsADirectoryError):
        tables.sample(folder)
    metadata = event_metadata(some, tables.sample)
    assert "picture" not in metadata and metadata["rows"] == 60


HOSTILE = [f"{'ü😀' * 500}{n}" for n in range(300)]


def test_an_event_is_bounded_whatever_a_drop_or_a_config_holds():
    counts = {f"languages/{name}": 1 for name in HOSTILE} | {"rows": 3}
    more = {
        "config": {"model_identity": "😀" * 400_000, "names": HOSTILE},
        "inputs": [{"path": name} for name in HOSTILE],
        "outputs": [{"path": f"p{n}", "sha256": "0" * 64} for n in range(5000)],
    }
    metadata = event_metadata(published(counts, more, notes=HOSTILE))
    assert stored(metadata) <= MOST_BYTES
    assert metadata["rows"] == 3
    assert value(metadata, "notes").startswith(HOSTILE[0])
    shards = published({f"languages/{name}": 1 for name in HOSTILE}, notes=HOSTILE)
    shards.record.asset = "synth/harmony"
    shards.record.config = {"model_identity": HOSTILE[0] * 50, "developer": HOSTILE[1] * 50}
    metadata = event_metadata(shards)
    assert "config/developer" in metadata and stored(metadata) <= MOST_BYTES
    shards = published({"examples": 12, "shards": 1, "bytes": 12})
    shards.record.asset = "reasoning/gpt2_shards"  # its rows are its examples
    metadata = event_metadata(shards)
    assert "counts/bytes" not in metadata
    assert (metadata["examples"], metadata[ROWS]) == (12, 12)
    other = published({"bytes": 7})
    assert event_metadata(other)["counts/bytes"] == 7


@pytest.mark.parametrize(("field", "name"), [("not_checked", "not checked"), ("account",) * 2])
def test_what_was_not_checked_and_the_account_of_a_drop_are_lines_of_their_own(field, name):
    metadata = event_metadata(published({"rows": 3}, **{field: "2 files taken; 3 rows"}))
    assert value(metadata, name) == "2 files taken; 3 rows"
    assert name not in event_metadata(published({"rows": 3}))
    assert stored(event_metadata(published(**{field: "x" * 1_000_000}))) <= MOST_BYTES


def test_what_becomes_of_columns_is_a_row_and_names_from_drops_take_no_name_of_an_event():
    states = [ColumnState("q", "read", "question"), ColumnState("why", "unread", "as 1")]
    metadata = event_metadata(published(accounted=Accounted(columns=states)))
    assert value(metadata, "columns") == "read: q (question)\nnot read: why (as 1)"
    assert "columns" not in event_metadata(published(accounted=Accounted(files=["1 file taken"])))
    many = [ColumnState("x" * 99, "unread", keep="k" * 9999)] * 99
    assert stored(event_metadata(published(accounted=Accounted(columns=many)))) <= MOST_BYTES
    counts = {"path": 1, "status": 2, "seconds": 3, ROWS: 4, "notes": 5}
    metadata = event_metadata(published(counts))
    assert value(metadata, "path") == "/data/corn"
    assert metadata["status"] == "built"
    assert metadata["seconds"] == 1.5
    assert metadata[f"counts/{ROWS}"] == 4
    assert metadata["counts/path"] == 1
    assert metadata["counts/notes"] == 5


def test_counts_named_by_what_was_built_from_are_one_line_and_no_plots():
    counts = {"rows": 3, "languages/en": 1200, "languages/d\x1be": 2, "languages/la": 0}
    some = published({**counts, "spans/final": 4})
    some.record.asset = "synth/kd_shards"
    metadata = event_metadata(some)
    assert metadata["languages"] == "en: 1,200, d\ufffde: 2"
    assert metadata["spans/final"] == 4
    assert not any(name.startswith("languages/") for name in metadata)
    assert "languages" not in metadata.get("counts of 0", "")
    some.record.counts = {"rows": 3} | {f"languages/{name}": 1 for name in HOSTILE}
    assert len(event_metadata(some)["languages"]) < 1100
    some.record.counts = {"rows": 3, "languages/la": 0}
    assert "languages" not in event_metadata(some)


def test_every_listed_group_is_one_that_the_samples_have(sample_root):
    listed = {(asset, group) for asset, each in declared().items() for group in each.listed}
    paths = [path for path in sample_root.data.rglob("*.json") if "drops" not in path.parts]
    found = set()
    for path in paths:
        record = json.loads(path.read_bytes())
        if isinstance(record, dict) and "data_version" in record:
            groups = {name.split("/")[0] for name in record["counts"] if "/" in name}
            found |= {(record["asset"], group) for group in groups}
    # Keys of rows are counted for corpora of drops, which the samples have none of.
    own = ("reasoning/normalized", "chat/conversations")
    assert listed - found == {(asset, "unknown_keys") for asset in own}


def test_numbers_are_bounded_and_those_of_the_builder_come_first():
    counts = {f"languages/{n}": n for n in range(1000)} | {"rows": 7}
    numbers = bounded_numbers(counts)
    assert list(numbers)[:2] == ["rows", "languages/0"]
    assert len(numbers) == MOST_NUMBERS + 1
    assert numbers["counts left out"] == "851; all are in the record on disk"
    long = bounded_numbers({"languages/" + "x" * 200: 1, "languages/a\x1b\n": 2})
    assert list(long) == [
        f"languages/{'x' * 90}… and 110 more characters",
        "languages/a\ufffd\ufffd",
    ]
    same = bounded_numbers({"languages/\x1b": 1, "languages/\x1c": 2})
    assert same == {"languages/\ufffd": 1, "counts left out": "1; all are in the record on disk"}


def test_counts_that_are_zero_are_named_in_one_row_which_stays_short():
    counts = {"rows": 0, "warnings": 0, "bad_rows": 0, "mean": 0.0, "kept": 3}
    before = SimpleNamespace(counts={"bad_rows": 2, "warnings": 0}, config={}, data_version="a")
    metadata = event_metadata(published(counts, before=before))
    assert metadata["counts of 0"] == "warnings"
    assert "warnings" not in metadata
    assert (metadata["bad_rows"], metadata["kept"], metadata["rows"]) == (0, 3, 0)
    assert metadata["mean"] == 0.0  # a measurement
    first = event_metadata(published(counts))
    assert first["counts of 0"] == "warnings, bad_rows"
    assert "counts of 0" not in event_metadata(published({"rows": 1}))
    metadata = event_metadata(published({f"languages/{name}": 0 for name in HOSTILE}))
    assert len(metadata["counts of 0"]) < 1100
    assert stored(metadata) <= MOST_BYTES


def test_config_vocabulary_and_drop_have_rows_of_their_own_and_no_plot():
    shards = published({"examples": 12})
    shards.record.asset = "reasoning/gpt2_shards"
    shards.record.config = {"seq_len": 2048, "world_size": 2, "workers": 9}
    shards.record.tokenizer = SimpleNamespace(name="gpt2")
    shards.record.inputs = [
        Input(asset="reasoning/raw", partition="gsm8k__test", path="drops/reasoning/gsm8k/a.jsonl")
    ]
    metadata = event_metadata(shards)
    assert metadata["config/seq_len"] == "2048"
    assert metadata["config/world_size"] == "2"
    assert "config/workers" not in metadata
    assert metadata["tokenizer"] == "gpt2"
    link = metadata["source drop"]
    assert isinstance(link, dg.UrlMetadataValue)
    assert link.url == "/assets/reasoning/raw?view=partitions&partition=gsm8k__test"


def names(asset: str, table: str = "") -> list[str]:
    found = [column.name for column in families.columns_of(asset)]
    return [name.removeprefix(table) for name in found if name.startswith(table)]


def test_every_asset_with_tables_has_columns_and_what_fits_is_unchanged():
    assert [asset for asset in ASSETS if families.columns_of(asset)] == [
        asset for asset in ASSETS if asset in TABLES
    ]
    assert set(TABLES) <= set(ASSETS)
    assert families.columns_of("corn/mill") == ()
    record = {"config": {"a": [1, 2]}, "inputs": [{"path": "é"}]}
    metadata = event_metadata(published({"rows": 3, "languages/en": 2}, record, notes=["a *note*"]))
    assert metadata["dagster/uri"] == "file:///data/corn"
    assert value(metadata, "notes") == "* a \\*note\\*"
    assert {
        name: metadata[name] for name in metadata if isinstance(metadata[name], int | float)
    } == {"rows": 3, "languages/en": 2, "bytes": 12, "seconds": 1.5, "peak_memory_mb": 2.0, ROWS: 3}
    assert "counts left out" not in metadata


def test_columns_are_those_of_the_rows_the_tables_the_schema_and_the_keys_that_are_written():
    steps = {column.name: column.type for column in families.columns_of("macroxue/pack")}
    assert names("macroxue/pack", "steps.") == list(STEP_ROW_DTYPE.names or ())
    assert names("macroxue/values", "values.") == list(VALUE_ROW_DTYPE.names or ())
    assert (steps["steps.board"], steps["steps.branch_evs"]) == ("uint64", "float32[4]")
    created = "".join(
        value
        for value in vars(side_files).values()
        if isinstance(value, tuple)
        for value in value
        if isinstance(value, str) and "CREATE" in value
    )
    for table in ("runs", "session"):
        body = re.search(rf"CREATE TABLE {table} \(([^)]*)\)", created)
        assert body is not None
        fields = [field.split()[:2] for field in body.group(1).split(",")]
        shown = [
            [column.name.removeprefix(f"{table}."), column.type]
            for column in families.columns_of("macroxue/pack")
            if column.name.startswith(f"{table}.")
        ]
        assert shown == fields
    assert names("synth/harmony") == schema_of(HarmonyConfig()).names
    trace = [
        (column.name.removeprefix("trace."), column.type)
        for column in families.columns_of("synth/kd_shards")
        if column.name.startswith("trace.")
    ]
    assert trace == [(field.name, str(field.type)) for field in schema()]
    assert names("reasoning/normalized")[:4] == list(records.KEYS)
    assert names("reasoning/alignment") == list(align.KEYS)
    assert names("reasoning/gpt2_shards")[1:-1] == list(index._TYPES)


@pytest.mark.parametrize("asset", TABLES)
def test_the_format_page_has_every_column(asset):
    of_chat = {"chat/kd_shards": "synth", "chat/distill": "synth", "chat/conversations": "chat"}
    of_chat["audits/leaks"] = "reasoning"
    family = of_chat.get(asset) or asset.partition("_" if "smoke" in asset else "/")[0]
    page = (CHECKOUT / f"docs/formats/{family}.md").read_text()
    for column in families.columns_of(asset):
        name = column.name.rpartition(".")[2] if family in ("macroxue", "synth") else column.name
        if not name.startswith("("):
            assert re.search(rf"[`_( ]{re.escape(name)}[`. ]", page), name
        assert column.type and column.text


@pytest.mark.parametrize("asset", TABLES)
def test_an_event_has_the_schema_and_stays_small(asset):
    some = published({"rows": 3}, {"config": {"text": "x" * 300_000}})
    some.record.asset = asset
    metadata = event_metadata(some)
    assert metadata[COLUMNS].schema == column_schema(asset)
    assert stored(metadata) <= MOST_BYTES
    assert COLUMNS not in event_metadata(published({"rows": 3}))


def written(
    root: Path, asset: str, partition: str | None, inputs: list[Input], shared: bool = False
) -> Record:
    """A published record, in a folder named as its asset and partition."""
    artifact = asset if shared else f"{asset}/{partition}"
    listed = provenance.split_inputs(inputs)
    path = provenance.record_path(root / artifact, partition, shared)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept: dict[str, Any] = {"inputs": inputs}
    if listed is not None:
        file = provenance.inputs_path(path)
        file.write_bytes(listed)
        kept = {
            "inputs": [],
            "inputs_file": provenance.InputsFile(
                path=file.name, count=len(inputs), bytes=len(listed), sha256="0" * 64
            ),
        }
    record = Record(
        artifact=artifact,
        asset=asset,
        partition=partition,
        code_version="1",
        git_sha=None,
        config={},
        config_sha256="",
        fingerprint="",
        data_version=f"v-{asset}-{partition}",
        outputs=[],
        counts={},
        libraries={},
        seconds=0,
        peak_memory_bytes=0,
        created=datetime.now(UTC),
        **kept,
    )
    path.write_bytes(record.to_bytes())
    return record


def pack_of(root: Path, key: str, files: int = 1) -> Record:
    """A published pack of a drop of the same name."""
    drop = [raw("macroxue/raw_drop", key, f"drops/macroxue/{key}/{n}.jsonl") for n in range(files)]
    return written(root, "macroxue/pack", key, drop)


def raw(asset: str, partition: str, path: str) -> Input:
    return Input(asset=asset, partition=partition, path=path, bytes=1, sha256="0" * 64)


def of(record: Record, version: str | None = None) -> Input:
    return Input(
        asset=record.asset,
        partition=record.partition,
        path=record.artifact,
        data_version=version or record.data_version,
    )


def links(record: Record, root: Path) -> dict[str, str]:
    return {name: getattr(row, "value", row) for name, row in drop_rows(record, root).items()}


def test_the_drop_of_an_artifact_is_a_link_and_one_of_many_files_is_found_in_their_list(tmp_path):
    pack = pack_of(tmp_path, "d6", 3)
    expected = {"source drop": "/assets/macroxue/raw_drop?view=partitions&partition=d6"}
    assert links(pack, tmp_path) == expected
    values = written(tmp_path, "macroxue/values", "d6", [of(pack)])
    assert links(values, tmp_path) == expected
    pack = pack_of(tmp_path, "d6", 150)
    assert pack.inputs == []
    assert list(links(pack, tmp_path)) == ["source drop"]
    provenance.inputs_path(tmp_path / pack.artifact / provenance.RECORD).write_text("{")
    assert links(pack, tmp_path) == {}


def test_several_drops_have_a_row_each_and_the_rest_is_counted(tmp_path):
    packs = [pack_of(tmp_path, f"d{n}") for n in range(10)]
    two = written(tmp_path, "macroxue/pool", "two", [of(pack) for pack in packs[:2]])
    assert links(two, tmp_path) == {
        f"source drop/macroxue/d{n}": f"/assets/macroxue/raw_drop?view=partitions&partition=d{n}"
        for n in range(2)
    }
    ten = written(tmp_path, "macroxue/pool", "ten", [of(pack) for pack in packs])
    rows = links(ten, tmp_path)
    assert len(rows) == 9
    assert rows["more source drops"] == "2"


def test_a_drop_that_is_divided_into_shards_is_shown_by_the_shard(tmp_path):
    shards = [
        written(
            tmp_path, "synth/harmony", f"0{n}", [raw("synth/raw", "mine", f"drops/synth/mine/{n}")]
        )
        for n in range(2)
    ]
    page = "/assets/synth/raw?view=partitions"
    assert links(shards[1], tmp_path) == {"source drop": f"{page}&partition=01"}
    both = written(tmp_path, "synth/manifest", "manifest", [of(shard) for shard in shards])
    assert links(both, tmp_path) == {"source drop": page}


def test_an_input_that_was_built_again_or_is_gone_is_not_followed(tmp_path):
    pack = pack_of(tmp_path, "d6")
    older = written(tmp_path, "macroxue/values", "d6", [of(pack, version="older")])
    assert links(older, tmp_path) == {}
    gone = Input(asset="x/y", partition="k", path="x/y/k", data_version="v")
    assert links(written(tmp_path, "macroxue/values", "d7", [gone]), tmp_path) == {}
    assert links(written(tmp_path, "puzzles/domino", "sample", []), tmp_path) == {}


def test_a_name_cannot_leave_its_place_in_the_address(tmp_path):
    name = "a&view=x#é/.."
    pack = written(
        tmp_path, "macroxue/pack", "d6", [raw("macroxue/raw_drop", name, "drops/macroxue/d6/a")]
    )
    assert links(pack, tmp_path)["source drop"].endswith(
        "?view=partitions&partition=a%26view%3Dx%23%C3%A9%2F.."
    )
    outside = written(tmp_path, "macroxue/pack", "d8", [raw("a/b", "c", "elsewhere/a/b")])
    assert links(outside, tmp_path) == {}


PACK = Target("macroxue/pack", "d6_v1", from_drop=True)
POOL = Target("macroxue/pool", "p1", from_drop=True)
MONTH = Target("chess/pgn", "2013-01")

BAD = BadInput("games/1.jsonl", "no board", 3)


@pytest.mark.parametrize(
    ("error", "target", "cure"),
    [
        (
            BAD,
            PACK,
            "correct the file and build again; to build without the part that breaks the rule, "
            'set `on_error = "quarantine"` in the table `[macroxue.pack]` of gristmill.toml; '
            "to give the drop up, remove it and run `gristmill retire d6_v1`",
        ),
        (
            BAD,
            POOL,
            "correct the file and build again; to give the drop up, remove it and run "
            "`gristmill retire p1`",
        ),
        (BAD, MONTH, "correct the file and build again"),
        (BadInput("d/gristmill.toml", "x"), PACK, "correct this file, then build again"),
        (PermissionError(13, "Permission denied", "a"), PACK, "let the user who builds read and"),
        (Busy("d6 is already being built"), PACK, "wait until that build ends"),
        (Busy("d6 is already being built"), PACK, "`gristmill prune`"),
        (
            LawsBroken("d6", [Violation("score", "row 1", "7")]),
            PACK,
            'set `game_laws = "warn"` in the table `[macroxue.pack]`',
        ),
        (LawsBroken("p", [Violation("score", "row 1", "7")]), MONTH, "report these lines"),
        (HubError("timed out"), MONTH, "build again later"),
        (ZeroDivisionError("x"), MONTH, "report it with the stack trace"),
    ],
)
def test_what_to_do_follows_from_the_error_and_the_asset(error, target, cure):
    problem = problem_of(error, target)
    assert cure in problem.cure
    if isinstance(error, BadInput):
        assert cure == problem.cure
    assert problem.error == type(error).__name__
    assert problem.text == f"{problem.reason}\nWhat to do: {problem.cure}"


def test_errors_that_say_what_to_do_get_no_line_and_unexpected_ones_a_stack_trace():
    problem = problem_of(GristmillError("no space: make room\nand again"), PACK)
    assert problem == Problem("no space: make room\nand again", "GristmillError")
    assert problem.text == problem.reason
    assert problem.first_line == "no space: make room"
    assert problem_of(BAD, PACK).trace == ""
    try:
        raise ValueError("x\x1b[31m" + "y" * 5000)
    except ValueError as error:
        problem = problem_of(error, PACK)
    assert problem.reason.startswith("ValueError: x\N{REPLACEMENT CHARACTER}[31myyy")
    assert len(problem.reason) < 2100
    assert "\x1b" not in problem.trace
    assert problem.trace.rstrip().endswith("yyy")
    problem = problem_of(OSError(5, "Input/output error", "drops/x/a.pgn"), PACK)
    assert problem.trace == "" and problem.reason.startswith(
        "drops/x/a.pgn: Input/output error: the disk or the network failed (see `dmesg`): mend it"
    )


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("a`; rm -r x", ""),
        ("-x", "; to give the drop up, remove it and run `gristmill retire -- -x`"),
    ],
)
def test_retire_is_offered_for_a_key_that_a_drop_can_have_as_a_value(key, more):
    problem = problem_of(BAD, Target("macroxue/pool", key, from_drop=True))
    assert problem.cure == f"correct the file and build again{more}"


def test_a_failure_is_final_names_its_class_and_shows_the_reason_as_text():
    failure = problem_of(BAD, PACK).failure()
    assert not failure.allow_retries
    assert failure.description is not None
    assert failure.description.startswith("games/1.jsonl:3: no board\nWhat to do: correct")
    assert failure.metadata["error"].value == "BadInput"
    assert "cure" not in problem_of(GristmillError("x"), PACK).failure().metadata
    problem = problem_of(BadInput("a<b>.jsonl", "# no *board*"), POOL)
    event = problem.observation(dg.AssetKey(["macroxue", "pool"]), "p1", Path("/data"))
    assert event.description is not None
    assert event.description.startswith("failed: a&lt;b&gt;.jsonl")
    assert "\\*board\\*" in event.description
    assert event.description.endswith("run `gristmill retire p1`")
    assert event.partition == "p1"
    assert event.metadata["reason"].value == "a<b>.jsonl: # no *board*"


def test_pages_show_paths_relative_to_the_data_root(tmp_path):
    problem = Problem(f"{tmp_path}/drops/a: x, not {tmp_path}2/b", "BadInput", f"see {tmp_path}/c")
    shown = problem.below(tmp_path)
    assert shown.reason == f"drops/a: x, not {tmp_path}2/b"
    assert shown.cure == "see c"
    assert problem.reason.startswith(str(tmp_path))
    event = problem.observation(dg.AssetKey("a"), None, tmp_path)
    assert event.description is not None
    assert event.description.startswith("failed: drops/a: x, not ")
    assert event.description.endswith("/b\n\nWhat to do: see c")
    assert event.metadata["reason"].value == problem.reason
