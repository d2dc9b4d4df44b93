"""The docs/formats/macroxue.md#traps and #defects-of-the-original, one test for each."""

from __future__ import annotations

import gzip
import json
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import (
    MergeConfig,
    PackConfig,
    StepDataset,
    ValueConfig,
    merge,
    pack,
    value_sidecar,
)
from gristmill.macroxue.builders import pack_parts, pool
from gristmill.macroxue.format.metadata_db import read_runs, read_session
from gristmill.macroxue.format.rows import PACKED46, STEP_ROW_DTYPE, to_aligned
from gristmill.macroxue.format.shards import open_steps
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.laws.games import game_laws, game_notes
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.moves import DIRECTIONS, legal_moves
from gristmill.run.parts import PartStore
from tests.macroxue.games import Game, play, run_table, step_rows, write_pack
from tests.macroxue.lines import contents, step, write_run

GAMES = [play(seed, 100) for seed in range(6)]


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write_game(folder: Path, stem: str, one: Game) -> None:
    """A played game as a raw pair."""
    lines = [
        step(
            seed=one.seed,
            step_index=index,
            board=board.tolist(),
            move=DIRECTIONS[move],
            max_rank=int(board.max()),
            branch_evs=dict.fromkeys(DIRECTIONS, 0.5),
        )
        for index, (board, move) in enumerate(zip(one.boards, one.moves, strict=True))
    ]
    facts = {"seed": one.seed, "score": one.score, "max_tile": one.highest_tile}
    write_run(folder, stem, lines, meta=facts)


def test_trap_1_row_size(tmp_path: Path) -> None:
    """48 bytes by the original document, 46 by the Rust packer: both can be used."""
    for one in GAMES[:2]:
        write_game(tmp_path / "drop", f"g{one.seed}", one)
    packs = []
    for layout, dtype in (("aligned48", STEP_ROW_DTYPE), ("packed46", PACKED46)):
        out = tmp_path / layout
        pack(tmp_path / "drop", out, PackConfig(layout=layout))  # type: ignore[arg-type]
        assert np.load(out / "steps.npy").dtype == dtype
        packs.append(out)
    total = sum(len(one.boards) for one in GAMES[:2])
    rows = [StepDataset(folder).rows(np.arange(total)) for folder in packs]
    assert to_aligned(rows[0]).tobytes() == to_aligned(rows[1]).tobytes()
    # The original's merge rejects a 48-byte file.
    summary = merge(packs, tmp_path / "pool", MergeConfig(layout="packed46"))
    assert summary.rows == 2 * total


def test_trap_2_three_readers_of_valuation_types(tmp_path: Path) -> None:
    """Whatever the form on input, ids keep their names; our list suits both Python readers."""
    names = ("search", "tuple10", "zzz", "tuple11")
    forms = {
        "list": list(names),
        "name_id": {name: i for i, name in enumerate(names)},
        "id_name": {str(i): name for i, name in enumerate(names)},
    }
    packs = []
    for i, (form, value) in enumerate(forms.items()):
        packs.append(write_pack(tmp_path / form, [GAMES[i]]))
        (packs[-1] / "valuation_types.json").write_text(json.dumps(value))
    merge(packs, tmp_path / "pool", MergeConfig())
    assert json.loads((tmp_path / "pool" / "valuation_types.json").read_text()) == list(names)
    before = np.concatenate([open_steps(p / "steps.npy")["valuation_type"] for p in packs])
    assert (open_steps(tmp_path / "pool" / "steps.npy")["valuation_type"] == before).all()
    merge(packs, tmp_path / "object", MergeConfig(enum_form="object"))
    text = (tmp_path / "object" / "valuation_types.json").read_text()
    assert list(json.loads(text).items()) == [(name, i) for i, name in enumerate(names)]


def test_trap_3_order_is_by_path_component(tmp_path: Path) -> None:
    names = ["B/x", "a/X", "a/x-1", "a/x", "a/x1", "a/x10", "a/y", "a-b/x", "a.d/x", "z/x", "é/x"]
    for seed, name in enumerate(names):
        folder, stem = name.split("/")
        write_run(tmp_path / "drop" / folder, stem, [step()], meta={"seed": seed})
    pack(tmp_path / "drop", tmp_path / "p", PackConfig())
    assert [run.seed for run in read_runs(tmp_path / "p" / "metadata.db")] == list(
        range(len(names))
    )


def test_trap_4_every_gzip_member_is_read(tmp_path: Path) -> None:
    """The original drops what follows the first member without a message."""
    two = b"".join(gzip.compress(step(step_index=i) + b"\n") for i in range(2))
    write_run(tmp_path / "drop", "a", steps=two, meta={"num_moves": 2})
    assert pack(tmp_path / "drop", tmp_path / "p", PackConfig()).rows == 2
    write_run(tmp_path / "drop", "a", steps=two + b"rubbish", meta={"num_moves": 2})
    with pytest.raises(BadInput, match="behind gzip member"):
        pack(tmp_path / "drop", tmp_path / "q", PackConfig())


@pytest.mark.parametrize(
    "place", ["inside", "around", "equal", "nested inputs", "twice", "link", "dots"]
)
def test_trap_5_merge_refuses_folders_in_one_another(tmp_path: Path, place: str) -> None:
    """The original deletes its own output, or an input before it is read."""
    a = write_pack(tmp_path / "a", GAMES[:1])
    b = write_pack(tmp_path / "b", GAMES[1:2])
    link = tmp_path / "link"
    link.symlink_to(a, target_is_directory=True)
    inner = write_pack(a / "inner", GAMES[2:3])
    packs, out = {
        "inside": ([a, b], a / "pool"),
        "around": ([a, b], tmp_path),
        "equal": ([a, b], a),
        "nested inputs": ([a, inner], tmp_path / "pool"),
        "twice": ([a, b, a], tmp_path / "pool"),
        "link": ([a, b, link], tmp_path / "pool"),
        "dots": ([a, b], b / ".." / "link" / "pool"),
    }[place]
    before = contents(tmp_path)
    with pytest.raises(BadInput, match=r"is the same folder|is inside"):
        merge(packs, out, MergeConfig())
    assert contents(tmp_path) == before


def peak_of(build: object, *arguments: object) -> int:
    tracemalloc.start()
    build(*arguments)  # type: ignore[operator]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_weakness_memory_grows_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merge and values hold batches and runs, not packs."""
    few = [write_pack(tmp_path / f"few{i}", GAMES, shard_rows=5000) for i in range(2)]
    monkeypatch.setattr(StepStream.batches, "__kwdefaults__", {"most": 1 << 14})
    big = step_rows(GAMES * 80)
    assert len(big) > 40_000
    many = [
        write_pack(tmp_path / f"many{i}", GAMES * 80, steps=big, shard_rows=19_999)
        for i in range(2)
    ]
    merge(few, tmp_path / "warm", MergeConfig())
    value_sidecar(few[0], tmp_path / "warmv", ValueConfig())
    with monkeypatch.context() as patch:
        patch.setattr(pool, "BATCH_ROWS", 2_000)
        # Of the 480 runs each pack keeps a few hundred bytes.
        assert peak_of(merge, many, tmp_path / "pool", MergeConfig()) < big.nbytes // 3
    # So many rows at a time, whatever the pack: three times the rows, the same peak.
    one = peak_of(value_sidecar, many[0], tmp_path / "v", ValueConfig())
    both = peak_of(value_sidecar, tmp_path / "pool", tmp_path / "w", ValueConfig())
    assert both < one * 1.15 + 200_000


def test_weakness_one_bad_line_discards_all(tmp_path: Path) -> None:
    """Quarantine sets one run aside with its reason; the values and laws go on with the rest."""
    for one in GAMES:
        write_game(tmp_path / "drop", f"g{one.seed}", one)
    text = gzip.decompress((tmp_path / "drop" / "g3.jsonl.gz").read_bytes())
    bad = text.replace(b'"move":"', b'"move":"x', 1)
    (tmp_path / "drop" / "g3.jsonl.gz").write_bytes(gzip.compress(bad))
    config = PackConfig(on_error="quarantine", quarantine_share=0.2)
    summary = pack(tmp_path / "drop", tmp_path / "p", config)
    assert (summary.runs, summary.quarantined) == (5, 1)
    (entry,) = lines_of(tmp_path / "p" / "quarantine.jsonl")
    assert entry["row"] == 1
    assert list(game_laws(tmp_path / "p")) == []
    assert value_sidecar(tmp_path / "p", tmp_path / "v", ValueConfig()).scores_matched == 5


def test_weakness_no_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that is killed goes on from its finished parts."""
    monkeypatch.setattr(pack_parts, "PART_BYTES", 1)
    for one in GAMES:
        write_game(tmp_path / "drop", f"g{one.seed}", one)
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    whole = pack(tmp_path / "drop", tmp_path / "p", PackConfig(), store)
    shutil.rmtree(tmp_path / "p")
    for part in ("rows-000002", "rows-000004"):
        (ledger,) = store.folder.glob(f"{part}-*.json")
        ledger.unlink()
    read: list[str] = []
    read_run = pack_parts.read_run
    monkeypatch.setattr(
        pack_parts,
        "read_run",
        lambda files, *rest: (read.append(files.meta_name), read_run(files, *rest))[1],
    )
    assert pack(tmp_path / "drop", tmp_path / "p", PackConfig(), store).rows == whole.rows
    assert read == ["g2.meta.json", "g4.meta.json"]


def test_weakness_a_run_cannot_be_traced_to_its_file(tmp_path: Path) -> None:
    """Through pack and two merges, every run still names its raw pair and their digests."""
    for name, games in (("d6", GAMES[:2]), ("d7", GAMES[2:4]), ("d8", GAMES[4:])):
        for one in games:
            write_game(tmp_path / "drops" / name, f"g{one.seed}", one)
        pack(tmp_path / "drops" / name, tmp_path / name, PackConfig())
    merge([tmp_path / "d6", tmp_path / "d7"], tmp_path / "p", MergeConfig())
    merge([tmp_path / "d8", tmp_path / "p"], tmp_path / "q", MergeConfig())
    lines = lines_of(tmp_path / "q" / "trace.jsonl")
    assert [(line["drop"], line["meta"]) for line in lines] == [
        (f"d{8 if i < 2 else 6 if i < 4 else 7}", f"g{seed}.meta.json")
        for i, seed in enumerate((4, 5, 0, 1, 2, 3))
    ]
    assert lines[5]["from"] == [{"pack": "p", "run_id": 3}, {"pack": "d7", "run_id": 1}]
    assert len(str(lines[5]["steps_sha256"])) == 64
    session = read_session(tmp_path / "q" / "metadata.db")
    assert session["d8/depth"] == session["p/d6/depth"] == "[6]"


def test_weakness_warnings_stay_in_the_log(tmp_path: Path) -> None:
    """A count mismatch reaches the pack, the pool, and the laws that judge the score."""
    write_game(tmp_path / "d6", "a", GAMES[0])
    short = Game(1, GAMES[1].boards[:50], GAMES[1].moves[:50], GAMES[1].score, 2048)
    write_game(tmp_path / "d6", "b", short)
    meta = json.loads((tmp_path / "d6" / "b.meta.json").read_bytes())
    (tmp_path / "d6" / "b.meta.json").write_text(json.dumps(meta | {"num_moves": 100}))
    assert pack(tmp_path / "d6", tmp_path / "p", PackConfig()).count_mismatches == 1
    other = write_pack(tmp_path / "o", GAMES[2:3])
    merge([other, tmp_path / "p"], tmp_path / "pool", MergeConfig())
    (line,) = lines_of(tmp_path / "pool" / "warnings.jsonl")
    assert (line["kind"], line["run_id"], line["pack"]) == ("count_mismatch", 2, "p")
    assert list(game_laws(tmp_path / "pool")) == []


def test_weakness_what_stands_is_overwritten(tmp_path: Path) -> None:
    """Builders make a new folder or nothing: no mix of generations, no late conflict."""
    a = write_pack(tmp_path / "a", GAMES[:1])
    b = write_pack(tmp_path / "b", GAMES[1:2])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "steps.npy").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        merge([a, b], tmp_path / "out", MergeConfig())
    with pytest.raises(FileExistsError):
        value_sidecar(a, tmp_path / "out", ValueConfig())
    assert contents(tmp_path / "out") == {"steps.npy": b"precious"}


def test_weakness_enum_ids_depend_on_timing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids follow run and row order, with any number of workers."""
    monkeypatch.setattr(pack_parts, "PART_BYTES", 1)
    for i, kind in enumerate(("zzz", "block_plan", "aaa", "zzz")):
        write_run(tmp_path / "drop", f"g{i}", [step(valuation_type=kind)])
    for workers in (1, 2):
        pack(tmp_path / "drop", tmp_path / f"w{workers}", PackConfig(workers=workers))
    assert contents(tmp_path / "w1") == contents(tmp_path / "w2")
    assert read_valuation_types(tmp_path / "w1" / "valuation_types.json") == (
        *("search", "tuple11", "tuple10"),
        *("zzz", "block_plan", "aaa"),
    )


def test_weakness_rank_17_is_lost(tmp_path: Path) -> None:
    """A 65536 beside a 131072 never merges; the original's numbers are an option."""
    one = play(5, 60, [17, 16, *[0] * 13, 1])
    folder = write_pack(tmp_path / "p", [one])
    true = value_sidecar(folder, tmp_path / "t", ValueConfig())
    reference = value_sidecar(folder, tmp_path / "r", ValueConfig(compat="reference"))
    assert (true.reward_sum, true.scores_matched) == (one.score, 1)
    assert true.rows_above_65536 == true.rows_followed + true.rows_solved
    assert reference.reward_sum > true.reward_sum + (1 << 17)


def test_weakness_tuple_rows_mark_illegal_moves_legal(tmp_path: Path) -> None:
    """That is their logs' way and stays; search rows that do it are noted."""
    steps = step_rows(GAMES[:1])
    tuples = steps["valuation_type"] != 0
    legal = legal_moves(GAMES[0].boards)
    assert (steps["ev_legal"][tuples] & ~legal[tuples]).any()
    assert list(game_notes(write_pack(tmp_path / "p", GAMES[:1]))) == []
    steps["ev_legal"] = 15
    notes = list(game_notes(write_pack(tmp_path / "q", GAMES[:1], steps=steps)))
    assert {note.law for note in notes} == {"search_legality"}


@pytest.mark.parametrize("law", ["move_legal", "follows", "score"])
def test_weakness_play_is_not_checked(tmp_path: Path, law: str) -> None:
    """Legality, continuity and score are laws: what breaks one names its run."""
    one = GAMES[0]
    moves, boards, score = one.moves.copy(), one.boards.copy(), one.score
    if law == "move_legal":
        at = int(np.flatnonzero(legal_moves(boards) != 15)[0])
        moves[at] = next(k for k in range(4) if not legal_moves(boards[at : at + 1])[0] >> k & 1)
    elif law == "follows":
        boards[40] = boards[41]
    else:
        score += 4
    bad = Game(one.seed, boards, moves, score, one.highest_tile)
    violations = list(game_laws(write_pack(tmp_path / "p", [GAMES[1], bad])))
    assert law in {violation.law for violation in violations}
    assert all(violation.where.startswith("run 1") for violation in violations)


def test_weakness_merge_takes_two_and_drops_the_session(tmp_path: Path) -> None:
    packs = [
        write_pack(tmp_path / f"p{i}", [one], session={"depth": f"[{i}]"})
        for i, one in enumerate(GAMES)
    ]
    assert merge(packs, tmp_path / "pool", MergeConfig()).packs == 6
    session = read_session(tmp_path / "pool" / "metadata.db")
    assert [session[f"p{i}/depth"] for i in range(6)] == [f"[{i}]" for i in range(6)]


def test_weakness_merge_trusts_the_counts_of_the_database(tmp_path: Path) -> None:
    runs = run_table(GAMES[:2])
    bad = write_pack(tmp_path / "bad", GAMES[:2], steps=step_rows(GAMES[:2])[:-3], runs=runs)
    good = write_pack(tmp_path / "good", GAMES[2:3])
    with pytest.raises(BadInput, match=r"bad: run 1 has \d+ steps by metadata.db, but \d+ rows"):
        merge([good, bad], tmp_path / "pool", MergeConfig())
