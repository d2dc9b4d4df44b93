"""Sample drops: marked, never mixed with real data, and removed with what was built from them."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gristmill import samples
from gristmill.cli import main
from gristmill.contract import GristmillError
from gristmill.corpora.raw.drops import corpus_of, splits
from gristmill.families import catalogs
from gristmill.hashing import sha256_file
from gristmill.inbox.marks import LEFT_OUT, is_newest, left_out_of, not_samples, sums_of
from gristmill.macroxue.raw.drops import raw_files
from gristmill.macroxue.samples import write_drop
from gristmill.provenance import Input
from gristmill.publish.publish import publish
from gristmill.puzzles.raw.drops import source_files
from gristmill.synth import raw as synth
from resources import Lake
from tests.commands.drops import printed
from tests.publish.tiny import tiny_build

pytestmark = pytest.mark.usefixtures("games_played_once")

NAMES = [name for each in catalogs() for name in each.samples]
GSM8K = "reasoning/gsm8k"


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def written(sample_drops: Path) -> Path:
    return sample_drops


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "data")
    return tmp_path / "data"


def run(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["samples", str(root), *options])


def read(drop: Path) -> set[str]:
    """The names of the files that the family of a drop would read."""
    family = drop.parent.name
    if family == "reasoning":
        paths = [path for each in splits(drop, corpus_of(drop)).values() for path in each]
    elif family == "puzzles":
        paths = source_files(drop.name.removesuffix("-sample"), drop)
    else:
        paths = raw_files(drop) if family == "macroxue" else synth.files(drop)
    return {path.relative_to(drop).as_posix() for path in paths}


REAL = {
    GSM8K: "mine_train.jsonl",
    "synth/samples": "mine.parquet",
    "puzzles/arc-sample": "training/mine.json",
    "puzzles/sudoku-sample": "bank.txt",
}
FOLDERS = [*REAL, "macroxue/sample_d6", "puzzles/maze-sample"]


def bring(drop: Path, scratch: Path) -> set[str]:
    """Copy real files beside those of a sample; return their names."""
    if drop.name == "maze-sample":
        for name in ("train.csv", "test.csv"):
            (drop / name).write_text("real\n")
        return {"train.csv", "test.csv"}
    if drop.name != "sample_d6":
        name = REAL[f"{drop.parent.name}/{drop.name}"]
        (drop / name).write_text("real\n")
        return {name}
    write_drop(scratch / "games", 9, games=1, max_moves=4, depth=6)
    shutil.copytree(scratch / "games", drop, dirs_exist_ok=True)
    return {path.name for path in (scratch / "games").iterdir()}


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_is_marked_with_its_own_files(written, name):
    drop = written / "drops" / name
    sums = sums_of(drop)
    files = [path for path in drop.rglob("*") if path.is_file()] or [drop]
    own = [path for path in files if path.name not in (".sample", ".done")]
    place = drop if drop.is_dir() else drop.parent
    assert sums == {path.relative_to(place).as_posix(): sha256_file(path) for path in own}
    assert json.loads((written / "drops/.samples.json").read_text())[name] == sums


@pytest.mark.parametrize("name", FOLDERS)
def test_a_sample_is_read_alone_and_never_beside_real_files(root, tmp_path, name):
    drop = root / "drops" / name
    own = set(sums_of(drop)) - {"gristmill.toml"}
    assert read(drop) == own
    assert left_out_of(drop, own) == {}
    real = bring(drop, tmp_path)
    assert read(drop) == real
    assert left_out_of(drop, real) == dict.fromkeys(own - real, LEFT_OUT)
    run(root, "--remove")
    assert read(drop) == real
    assert {each for each in tree(drop) if each != ".done"} == real


@pytest.mark.parametrize("name", [each for each in FOLDERS if each != "puzzles/maze-sample"])
def test_a_file_with_the_name_of_a_sample_s_is_real(root, name):
    drop = root / "drops" / name
    changed = {min(read(drop))}
    if name == "macroxue/sample_d6":  # a game is two files: it is real if one of them is
        changed = {each for each in read(drop) if each.startswith(min(changed).partition(".")[0])}
    first = drop / min(changed)
    first.write_bytes(bytes([first.read_bytes()[0] ^ 1]) + first.read_bytes()[1:])
    assert read(drop) == changed
    run(root, "--remove")
    assert min(changed) in tree(drop)


def test_a_real_month_takes_the_place_of_the_sample_s_and_stays(root):
    from gristmill.chess.raw.drops import available, drop_of
    from gristmill.chess.raw.pgn_text import month_in
    from gristmill.inbox.marks import samples_beside

    inbox, lake = root / "drops/chess", Lake(data_root=str(root))
    assert drop_of(lake, "2024-01") == inbox / "sample_2024-01.zip"
    assert available(lake) == ["2024-01", "2024-02"]
    real = inbox / "lichess_elite_2024-01.pgn"
    real.write_text('[Event "real"]\n\n1. e4 *\n')
    assert drop_of(lake, "2024-01") == real
    assert available(lake) == ["2024-01", "2024-02"]
    assert samples_beside(real, month_in) == {"sample_2024-01.zip": LEFT_OUT}
    assert samples_beside(inbox / "sample_2024-01.zip", month_in) == {}
    run(root, "--remove")
    assert [path.name for path in inbox.iterdir()] == [real.name]


def test_the_settings_of_a_sample_are_not_those_of_real_files(root):
    drop, lake = root / "drops/synth/samples", Lake(data_root=str(root))
    assert lake.settings("synth/kd_shards", drop)["valid_fraction"] == 0.1
    (drop / "README.md").write_text("mine")
    assert lake.settings("synth/kd_shards", drop)["valid_fraction"] == 0.1
    (drop / "real.parquet").write_text("real")
    assert dict(lake.settings("synth/kd_shards", drop)) == {}
    (drop / "gristmill.toml").write_text("[synth.kd_shards]\nvalid_fraction = 0.2\n")
    assert lake.settings("synth/kd_shards", drop)["valid_fraction"] == 0.2


def test_the_done_of_a_sample_says_nothing_of_real_files(root):
    drop = root / "drops/synth/samples"
    assert synth.is_complete(drop)
    for number in range(4):
        (drop / f"real_{number}.parquet").write_text("real")
    assert not synth.is_complete(drop)
    other = Path(shutil.copytree(root, root.parent / "other"), "drops/synth/samples")
    for file in other.glob("real_*"):
        while is_newest(other / ".done", [file]):
            file.touch()  # the copies came in any order
    (drop / ".done").touch()
    assert synth.is_complete(drop)
    run(root.parent / "other", "--remove")
    assert not synth.is_complete(other)


def test_nothing_is_written_twice_and_nothing_that_a_person_removed(root):
    before, times = tree(root), {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    folders = [Path(line) for line in printed(run(root)).splitlines() if line.startswith("/")]
    assert folders and all(each.exists() and root in each.parents for each in folders)
    assert tree(root) == before
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == times
    shutil.rmtree(root / "drops" / GSM8K)
    (root / "drops/chess/sample_2024-02.pgn").unlink()
    last = run(root).output.splitlines()[-1]
    hint = f"`gristmill samples --again {root}`"
    assert last == f"2 samples are not written, since removed: {hint} writes them"
    assert not (root / "drops" / GSM8K).exists()
    run(root, "--again")
    assert tree(root) == before


def given(root: Path, name: str, asset: str = "family/raw") -> Input:
    path = root / "drops" / name
    return Input(
        asset=asset,
        path=f"drops/{name}",
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
        mtime_ns=path.stat().st_mtime_ns,
    )


def build(root: Path, name: str, *inputs: Input) -> Input:
    """Publish an artifact made from `inputs`; return it as an input."""
    record = publish(
        tiny_build(root, f"family/{name}", asset=f"family/{name}", inputs=list(inputs))
    ).record
    return Input(
        asset=record.asset,
        partition=record.partition,
        data_version=record.data_version,
        path=record.artifact,
    )


def test_what_was_built_from_samples_alone_goes_and_what_is_mixed_is_named(root):
    (root / "drops/reasoning/mine.jsonl").write_text("real")
    (root / "drops/tokenizers").mkdir()
    (root / "drops/tokenizers/words").write_text("words")
    words = given(root, "tokenizers/words", "tokenizers/words")
    raw = build(root, "invented", given(root, f"{GSM8K}/train.jsonl"), words)
    build(root, "shards", raw, build(root, "vocabulary", words))
    real = build(root, "real", given(root, "reasoning/mine.jsonl"))
    build(root, "report", raw, real)
    build(root, "games")
    before = tree(root / "family")
    listed = run(root, "--remove", "--dry-run").output.splitlines()
    assert [line for line in listed if "family" in line] == [
        "remove: family/invented",
        "remove: family/shards",
        "stays: family/report, built from samples and from other data: build it again without "
        "them, `gristmill materialize family/report --partition p1`",
    ]
    assert tree(root / "family") == before
    assert run(root, "--remove").output.splitlines()[: len(listed)] == listed
    left = {path.parent.name for path in (root / "family").glob("*/provenance.json")}
    assert left == {"vocabulary", "real", "report", "games"}
    assert (root / "drops/reasoning/mine.jsonl").read_text() == "real"


def test_what_was_built_from_a_sample_that_a_person_removed_goes_too(root):
    build(root, "shards", given(root, f"{GSM8K}/train.jsonl"))
    shutil.rmtree(root / "drops" / GSM8K)
    assert "remove: family/shards" in run(root, "--remove").output.splitlines()
    assert not (root / "family/shards").exists()


def test_who_takes_the_mark_away_keeps_the_files_and_what_was_built_from_them(root):
    drop = root / "drops" / GSM8K
    (drop / ".sample").unlink()
    build(root, "shards", given(root, f"{GSM8K}/train.jsonl"))
    before = tree(drop)
    run(root)
    assert "gsm8k" not in run(root, "--remove").output
    assert (root / "family/shards").exists()
    assert tree(drop) == before


def test_an_artifact_of_real_files_with_the_names_of_a_sample_stays(root):
    train = root / "drops" / GSM8K / "train.jsonl"
    train.write_text("real")
    build(root, "shards", given(root, f"{GSM8K}/train.jsonl"))
    output = run(root, "--remove").output
    assert f"remove: {train.parent / 'test.csv'}, of a sample; the other files" in output
    assert tree(train.parent) == {"train.jsonl": b"real"}
    assert (root / "family/shards").exists()


def test_after_a_removal_no_new_sample_comes_and_a_root_that_is_not_there_has_none(tmp_path):
    (tmp_path / "drops").mkdir()
    assert run(tmp_path, "--remove").output == f"{tmp_path}: no samples are here\n"
    assert run(tmp_path).output.startswith(f"{len(NAMES)} samples are not written")
    assert set(tree(tmp_path)) == {"drops/.samples.json"}
    result = run(tmp_path / "typo", "--remove")
    assert result.exit_code == 1
    assert "the data root is not there" in result.output
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--remove", "--again"], "--remove and --again: choose one"),
        (["--dry-run"], "--dry-run: only with --remove"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, options, message):
    result = run(tmp_path, *options)
    assert (result.exit_code, message in result.output) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["[]", "{", '{"macroxue/sample_d6": 1}', "\xff"])
def test_a_note_that_is_damaged_is_refused_with_its_cure(tmp_path, text):
    (tmp_path / "drops").mkdir()
    (tmp_path / "drops/.samples.json").write_text(text, encoding="latin-1")
    with pytest.raises(GristmillError, match=r"\.samples\.json: does not say .*: remove it"):
        samples.write_samples(tmp_path)
    assert not (tmp_path / "drops/macroxue").exists()


def test_the_names_of_the_two_kinds_of_files_are_all_that_counts(root):
    drop = root / "drops" / GSM8K
    assert not_samples(drop, ["train.jsonl", "nothing.jsonl"]) == {"train.jsonl": LEFT_OUT}
