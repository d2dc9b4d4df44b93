"""`gristmill build PATH` makes artifacts of files of one's own, in any folder, without Dagster."""

import json
import shlex
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bench.servers import plain_environment
from gristmill.asset import Wanted, declared
from gristmill.cli import main
from gristmill.data_root import DataRoot
from gristmill.provenance import read_record
from gristmill.provenance.find_artifacts import artifacts
from gristmill.publish.publish import publish
from gristmill.puzzles.raw.samples import write_sudoku_sample
from gristmill.reasoning import ShardReader
from gristmill.vocabularies.pinned import PLACED, drop_folder
from tests.paths import CHECKOUT, ran
from tests.tiny_tokenizer import put_tiny

ROWS = [
    {"id": n, "question": f"What is {n} plus {n * n}?", "solution": f"We add. It is {n + n * n}."}
    for n in range(40)
]
TALK = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]
GAME = '[Event "A"]\n[Site "?"]\n[Date "2024.01.02"]\n[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n'
DRAW = GAME.replace("1-0", "1/2-1/2") + "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 1/2-1/2\n\n"
MOVES = "1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0\n\n"


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES = {
    "my_math.jsonl": (lines(ROWS), {"reasoning/normalized", "reasoning/gpt2_shards"}),
    "talks.jsonl": (
        lines([{"id": str(n), "messages": TALK} for n in range(9)]),
        {"chat/conversations", "chat/kd_shards"},
    ),
    "mine.pgn": (
        GAME + MOVES + DRAW,
        {"chess/elite_pgn", "chess/valid_games", "chess/game_dataset"},
    ),
}


@pytest.fixture
def root(tmp_path: Path, vocabulary_root: Path) -> Path:
    shutil.copytree(drop_folder(vocabulary_root), drop_folder(tmp_path / "made"))
    return tmp_path / "made"


def build(root: Path, path: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["build", str(path), "--data-root", str(root), *words])


def built(root: Path) -> dict[str, str]:
    records = [read_record(item.record_path) for item in artifacts(root)]
    return {each.asset: each.data_version for each in records if "tokenizers" not in each.asset}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_each_kind_becomes_its_artifacts_once(name, root, tmp_path):
    text, assets = FILES[name]
    (tmp_path / name).write_text(text)
    first = build(root, tmp_path / name)
    assert first.exit_code == 0, first.output
    assert assets <= built(root).keys()
    assert ("0 rows (0 train, 0 val, 0 test); 1 of 1 left out: " in first.output) == (
        name == "mine.pgn"
    )
    shown = shlex.split(first.output.splitlines()[-2])
    shown[2] = str(Path.cwd() / shown[2])
    looked = CliRunner().invoke(main, shown[1:])
    assert looked.exit_code == (name == "mine.pgn"), looked.output  # its game is too short
    made = built(root)
    if "reasoning/gpt2_shards" in assets:
        assert len(ShardReader(root / "reasoning/tokenized/gpt2", splits=["train"])) > 0
    again = build(root, tmp_path / name)
    assert (again.exit_code, built(root)) == (0, made)
    assert ("published" in again.output, "unchanged" in again.output) == (False, True)


def test_only_the_vocabulary_that_a_recipe_names_is_fetched(root, tmp_path):
    """Conversations with another tokenizer than o200k_harmony."""
    (folder := tmp_path / "talks").mkdir()
    rows = [{"id": str(n), "messages": TALK} for n in range(9)]
    (folder / "a.jsonl").write_text(lines(rows))
    recipe = 'schema = 1\nkind = "chat"\nname = "talks"\nmessages = "messages"\nid = "id"\n'
    render = '[render]\ntemplate = "chatml"\ntokenizer = "tiny"\n'
    (folder / "corpus.toml").write_text(recipe + render)
    shutil.rmtree(drop_folder(root))
    (put_tiny(root) / ".done").touch()
    placed = declared()[PLACED]
    publish(placed.build(Wanted(placed, DataRoot(root), "tiny")))
    found = build(root, folder)
    assert found.exit_code == 0, found.output
    assert FILES["talks.jsonl"][1] <= built(root).keys()
    assert [each.name for each in drop_folder(root).iterdir()] == ["tiny"]


def test_other_contents_under_one_name_are_refused_until_they_shall_replace(root, tmp_path):
    file = tmp_path / "my_math.jsonl"
    file.write_text(lines(ROWS))
    build(root, file)
    made = built(root)
    file.write_text(lines(ROWS[:-1]))
    refused = build(root, file)
    assert (refused.exit_code, built(root)) == (1, made)
    assert "--replace" in refused.output
    assert build(root, file, "--name", "others").exit_code == 0
    normalized = DataRoot(root).partitions_of("reasoning/normalized", "reasoning/raw")
    assert normalized == ["my_math__train", "others__train"]
    assert "my_math: replaced" in build(root, file, "--replace").output
    assert built(root) != made


@pytest.mark.parametrize(
    ("path", "text", "words", "status", "said"),
    [
        ("odd.jsonl", '{"a": [1, 2]}\n' * 3, [], 1, "no recipe reads it"),
        ("odd.jsonl", "1. e4 e5\n", [], 1, "no recipe reads it"),
        ("latin.csv", "question,answer\n" + "Qu\udce9?,2\n" * 9, [], 1, "no recipe reads it"),
        *(
            ("my_math.jsonl", lines(ROWS), ["--name", name], status, said)
            for name, status, said in (
                ("..", 2, "choose another with --name"),
                ("a/b", 2, "choose another with --name"),
                ("x__y", 1, "as x_y"),
            )
        ),
        # A data root is not built into itself.
        *((above, "", [], 2, "--data-root") for above in ("", "made", "made/drops/tokenizers")),
    ],
)
def test_what_cannot_be_built_is_said_and_nothing_is_left(
    path, text, words, status, said, root, tmp_path
):
    (tmp_path / (path if text else "train.jsonl")).write_bytes(
        (text or lines(ROWS)).encode(errors="surrogateescape")
    )
    done = build(root, tmp_path / path, *words)
    assert (done.exit_code, built(root)) == (status, {})
    assert said in done.output.splitlines()[-1]
    assert sorted(path.name for path in (root / "drops").iterdir()) == ["tokenizers"]
    assert not [*root.glob(".gristmill/*")]


@pytest.mark.parametrize("again", ["drop", "file"])
def test_what_is_corrected_in_the_drop_stays_and_is_taken(again, root, tmp_path):
    (tmp_path / "my_math.jsonl").write_text(lines([*ROWS, {**ROWS[0], "id": 99, "question": ""}]))
    drop = root / "drops/reasoning/my_math"
    paths = {"drop": drop, "file": tmp_path / "my_math.jsonl"}
    assert build(root, paths["file"]).exit_code == 1
    with (drop / "corpus.toml").open("a") as file:
        file.write('keep = [{ column = "question", present = true }]\n')
    (drop / "gristmill.toml").write_text("[reasoning.normalized]\nbad_rows = 0\n")
    done = build(root, paths[again])
    assert done.exit_code == 0, done.output
    assert "1 left out (1 keep:question)" in done.output
    assert "present" in (drop / "corpus.toml").read_text()
    own = [(drop / each).read_bytes() for each in ("corpus.toml", "gristmill.toml")]
    paths["file"].write_text(lines(ROWS[:-1]))
    replaced = build(root, paths["file"], "--replace")
    assert "kept: corpus.toml, gristmill.toml of the drop" in replaced.output
    assert f"recipe of the drop: {drop / 'corpus.toml'}, which is used" in replaced.output
    assert "guess" not in replaced.output
    assert own == [(drop / each).read_bytes() for each in ("corpus.toml", "gristmill.toml")]
    with (drop / "my_math.jsonl").open("a") as file:
        file.write("\n")
    assert "its sha256 is" in build(root, drop).output


@pytest.mark.parametrize("form", ["file", "folder", "named"])
def test_puzzles_that_changed_are_built_by_the_recipe_that_is_there(form, root, tmp_path):
    path = file = tmp_path / "mine" / "mine.csv"
    write_sudoku_sample(path.parent)
    if form == "file":
        path.with_name("train.csv").rename(path)
    else:
        path, file = path.parent, path.with_name("train.csv")
    name = ("--name", "own") if form == "named" else ()
    assert build(root, path, *name).exit_code == 0
    recipe = root / f"drops/puzzles/recipes/{'own' if name else 'mine'}.toml"
    recipe.write_text(f"{recipe.read_text()}# corrected\n")
    file.write_text("\n".join(file.read_text().splitlines()[:-1]))
    assert "--replace" in build(root, path, *name).output.splitlines()[-1]
    done = build(root, path, *name, "--replace")
    assert (done.exit_code, "published" in done.output) == (0, True), done.output
    assert "# corrected" in recipe.read_text()


@pytest.mark.parametrize("has_drop", [False, True])
@pytest.mark.parametrize("name", [*FILES, "games", "talks"])
def test_a_look_names_what_can_be_run(has_drop, name, tmp_path, monkeypatch):
    file = {"games": "mine.pgn", "talks": "talks.jsonl"}.get(name, name)
    path = tmp_path / name
    (path.mkdir() or path / file if file != name else path).write_text(FILES[file][0])
    monkeypatch.setattr("gristmill.cli.absent", lambda: [] if has_drop else ["drop"])
    said = CliRunner().invoke(main, ["look", str(path)]).output
    assert f"`gristmill build {path}`" in said
    assert ("gristmill drop" in said) == (has_drop and path.is_dir())
    assert "not read by" not in said


def test_a_month_has_one_file_and_keeps_it(root, tmp_path):
    (tmp_path / "games_2024-03.pgn").write_text(GAME + MOVES)
    with zipfile.ZipFile(tmp_path / "others_2024-03.zip", "w") as packed:
        packed.write(tmp_path / "games_2024-03.pgn", "others.pgn")
    first, other = (build(root, path) for path in sorted(tmp_path.glob("*2024-03*")))
    assert (first.exit_code, other.exit_code) == (0, 2), other.output
    assert "2024-03.pgn is the same partition" in other.output
    assert not any("zip" in path.name for path in (root / "drops/chess").iterdir())


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ('question = "question"\nanswer = "solution"\nlicense = 1\n', "license"),
        ('question = "absent"\nanswer = "solution"\n', "absent"),
        ('kind = "chat"\nmessages = "messages"\ntols = "drop"\n', "tols"),
    ],
)
def test_a_guess_takes_the_place_of_no_recipe_of_ones_own(own, said, root, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.jsonl").write_text(lines(ROWS))
    (folder / "corpus.toml").write_text(f'schema = 1\nname = "mine"\n{own}')
    done = build(root, folder)
    assert (done.exit_code, built(root)) == (1, {})
    assert f"{folder / 'corpus.toml'}: " in done.output.splitlines()[-1]
    assert said in done.output
    alone = build(root, folder / "train.jsonl")
    assert "corpus.toml is not taken" in alone.output


def test_what_ls_says_follows_the_recipe_and_the_drops(root, tmp_path):
    """The name of the corpus comes behind that of the manifest, which answers for no sample."""
    (tmp_path / "maths.jsonl").write_text(lines(ROWS))
    assert build(root, tmp_path / "maths.jsonl").exit_code == 0
    place, shards = root / "drops/reasoning/maths", str(root / "reasoning/tokenized/gpt2")

    def said(*words: str) -> str:
        done = CliRunner().invoke(main, words)
        return " ".join(done.output.split())

    assert "example_id: maths_train_000003" in said("trace", shards, "maths_train_000003")
    split = ["--corpus", "maths", "--split", "train", "--shard", "0"]
    assert "example_id: maths_train_000000" in said("trace", shards, "0", *split)
    for sample in ("manifest", "manifest.json"):
        assert "made_from: reasoning/gpt2_shards maths__train" in said("trace", shards, sample)
    raw = str(root / "reasoning/raw")
    assert "What is 0 plus 0?" in said("show", raw)
    assert "raw@maths__train" in said("log", raw, "maths__train")
    assert "40 rows" in said("log", f"{raw}@maths__train")
    given = ["--data-root", str(root)]
    assert "built are maths__train, none is test" in said("leaks", "reasoning/maths", *given)

    listed = said("ls", str(root))
    assert ("changed" in listed, "drops/" in listed) == (False, False)
    recipe = (place / "corpus.toml").read_text()
    (place / "corpus.toml").write_text(recipe.replace('"solution"', '"question"'))
    changed = "corpus.toml: answer is question now, was solution"
    assert f"input changed: drops/reasoning/maths/{changed}" in said("ls", str(root))
    assert changed in said("verify", str(root))
    (place / "corpus.toml").write_text(f"{recipe}tols = 1\n")
    assert (
        'maths/corpus.toml: unknown key "tols"' in said("ls", str(root)).split("drop refused:")[1]
    )
    (place / "corpus.toml").write_text(recipe)
    assert said("ls", str(root)) == listed
    shutil.copytree(place, place.with_name("other"))
    (place.with_name("other") / "corpus.toml").write_text(recipe.replace("maths", "other"))
    assert "drops/reasoning/other: ready: nothing is built of it" in said("ls", str(root))


def test_a_dagster_root_takes_over_what_was_built_without_it(root, tmp_path):
    """The record is that of a run: the same config, inputs and code."""
    (tmp_path / "my_math.jsonl").write_text(lines(ROWS))
    build(root, tmp_path / "my_math.jsonl")
    recipe = root / "drops/reasoning/my_math/corpus.toml"
    assert 'question = "question"' in recipe.read_text()
    from gristmill.asset import Wanted, declared

    for name in FILES["my_math.jsonl"][1]:
        asset = declared()[name]
        (key,) = asset.ready(DataRoot(root))
        described = asset.build(Wanted(asset, DataRoot(root), key))
        assert described.made(read_record(described.record_path))


def test_it_needs_neither_dagster_nor_the_checkout(root, tmp_path):
    (tmp_path / "my_math.jsonl").write_text(lines(ROWS))
    code = (
        "import sys\n"
        "for name in ('dagster', 'torch', 'polars', 'commands', 'assets'):\n"
        "    sys.modules[name] = None\n"
        "from gristmill.cli import main\n"
        f"main(['build', 'my_math.jsonl', '--data-root', {str(root)!r}])\n"
    )
    words = [sys.executable, "-c", code]
    environment = {**plain_environment(), "PYTHONPATH": str(CHECKOUT)}
    done = ran(words, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert FILES["my_math.jsonl"][1] <= built(root).keys()
