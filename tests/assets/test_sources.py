"""Rows of an event that lead to the raw drops: through other artifacts, and never too many."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assets.sources import drop_rows
from gristmill import provenance
from gristmill.provenance import Input, Record


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


def test_the_drop_of_an_artifact_is_a_link_to_its_partition(tmp_path: Path) -> None:
    files = [raw("macroxue/raw_drop", "d6", f"drops/macroxue/d6/{n}.jsonl") for n in range(3)]
    pack = written(tmp_path, "macroxue/pack", "d6", files)
    expected = {"source drop": "/assets/macroxue/raw_drop?view=partitions&partition=d6"}
    assert links(pack, tmp_path) == expected
    values = written(tmp_path, "macroxue/values", "d6", [of(pack)])
    assert links(values, tmp_path) == expected


def test_a_drop_of_many_files_is_found_in_their_list(tmp_path: Path) -> None:
    files = [raw("macroxue/raw_drop", "d6", f"drops/macroxue/d6/{n}") for n in range(150)]
    pack = written(tmp_path, "macroxue/pack", "d6", files)
    assert pack.inputs == []
    assert list(links(pack, tmp_path)) == ["source drop"]
    provenance.inputs_path(tmp_path / pack.artifact / provenance.RECORD).write_text("{")
    assert links(pack, tmp_path) == {}


def test_several_drops_have_a_row_each_and_the_rest_is_counted(tmp_path: Path) -> None:
    packs = [
        written(
            tmp_path,
            "macroxue/pack",
            f"d{n}",
            [raw("macroxue/raw_drop", f"d{n}", f"drops/macroxue/d{n}/a")],
        )
        for n in range(10)
    ]
    two = written(tmp_path, "macroxue/pool", "two", [of(pack) for pack in packs[:2]])
    assert links(two, tmp_path) == {
        f"source drop/macroxue/d{n}": f"/assets/macroxue/raw_drop?view=partitions&partition=d{n}"
        for n in range(2)
    }
    ten = written(tmp_path, "macroxue/pool", "ten", [of(pack) for pack in packs])
    rows = links(ten, tmp_path)
    assert len(rows) == 9
    assert rows["more source drops"] == "2"


def test_a_drop_that_is_divided_into_shards_is_shown_by_the_shard(tmp_path: Path) -> None:
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


def test_an_input_that_was_built_again_or_is_gone_is_not_followed(tmp_path: Path) -> None:
    pack = written(
        tmp_path,
        "macroxue/pack",
        "d6",
        [raw("macroxue/raw_drop", "d6", "drops/macroxue/d6/a")],
    )
    older = written(tmp_path, "macroxue/values", "d6", [of(pack, version="older")])
    assert links(older, tmp_path) == {}
    gone = Input(asset="x/y", partition="k", path="x/y/k", data_version="v")
    assert links(written(tmp_path, "macroxue/values", "d7", [gone]), tmp_path) == {}
    assert links(written(tmp_path, "puzzles/domino", "sample", []), tmp_path) == {}


def test_a_name_cannot_leave_its_place_in_the_address(tmp_path: Path) -> None:
    name = "a&view=x#é/.."
    pack = written(
        tmp_path, "macroxue/pack", "d6", [raw("macroxue/raw_drop", name, "drops/macroxue/d6/a")]
    )
    assert links(pack, tmp_path)["source drop"].endswith(
        "?view=partitions&partition=a%26view%3Dx%23%C3%A9%2F.."
    )
    outside = written(tmp_path, "macroxue/pack", "d8", [raw("a/b", "c", "elsewhere/a/b")])
    assert links(outside, tmp_path) == {}
