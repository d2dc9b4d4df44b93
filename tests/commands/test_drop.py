"""`gristmill drop`: a drop appears whole, whatever happens to the copy."""

import errno
import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from commands import drop as command
from gristmill.contract import GristmillError
from gristmill.inbox import State, look
from gristmill.macroxue.samples import write_drop
from gristmill.puzzles.raw.drops import proposal
from resources import Lake
from tests.assets.puzzles.drops import put_tasks
from tests.commands.drops import printed
from tests.puzzles.raw.test_drops import ROWS, put
from tests.reasoning.published_root import built
from tests.toy_inbox import asked


def run(*words: str) -> Result:
    return CliRunner().invoke(command.drop, words)


@pytest.fixture
def games(tmp_path: Path) -> Path:
    write_drop(tmp_path / "made/d6", seed=1, games=2, max_moves=20, depth=6)
    return tmp_path / "made/d6"


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]
CHAT = 'kind = "chat"\nmessages = "messages"'
MISSPELT = [TALK[0], {**TALK[1], "role": "asistant"}]


def test_a_folder_is_copied_with_its_sums_and_taken_at_the_second_look(data, games):
    said = printed(run(str(games), "--family", "macroxue"))
    assert ": copied (4 files, " in said
    assert "or run `gristmill materialize --all`" in said
    place = data / "drops/macroxue/d6"
    assert names(place) == {*names(games), "SHA256SUMS"}
    assert hidden(place.parent) == []
    for name in names(games):
        assert (place / name).read_bytes() == (games / name).read_bytes()
        assert (place / name).stat().st_mtime_ns == (games / name).stat().st_mtime_ns
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=place, check=True)
    state, slow = State(), Lake().settling("macroxue")
    assert slow.seconds == 60
    for expected in ([], ["d6"]):
        found = look(place.parent, state, asked(settling=slow), 20, 60.0)
        assert [arrival.key for arrival in found.arrivals] == expected


def test_the_account_is_printed_once_with_its_notes(data, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "corpus.toml").write_text('schema = 1\nname = "mine"\nquestion = "q"\nanswer = "a"\n')
    (folder / "train.jsonl").write_text('{"q": "1 + 1?", "a": "2"}\n')
    (folder / "notes.txt").write_text("no data")
    said = run(str(folder), "--family", "reasoning").output
    assert said.count("train: 1 file taken") == 1
    assert said.count("1 left out: notes.txt") == 1
    assert said.count("the terms are unknown") == 1
    assert said.count("read: q (question), a (answer)") == 1
    again = run(str(folder), "--family", "reasoning").output
    assert again.count("read: q (question), a (answer)") == 1


def test_the_same_again_changes_nothing_and_other_contents_need_replace(data, games):
    run(str(games), "--family", "macroxue", "--name", "mine")
    place = data / "drops/macroxue/mine"
    inode = place.stat().st_ino
    assert "there already" in run(str(games), "--family", "macroxue", "--name", "mine").output
    assert place.stat().st_ino == inode
    (games / "more.meta.json").write_text("{}")
    refused = run(str(games), "--family", "macroxue", "--name", "mine")
    assert isinstance(refused.exception, GristmillError)
    assert "is there with other contents: choose another name" in str(refused.exception)
    assert not (place / "more.meta.json").exists()
    result = run(str(games), "--family", "macroxue", "--name", "mine", "--replace")
    assert ": replaced (5 files" in result.output
    assert (place / "more.meta.json").exists()
    assert hidden(place.parent) == []


def test_equal_files_and_what_builds_take_are_said(data, games):
    log = next(games.glob("*.jsonl.gz"))
    meta = games / log.name.replace(".jsonl.gz", ".meta.json")
    (games / "again.jsonl.gz").write_bytes(log.read_bytes())
    (games / "again.meta.json").write_bytes(meta.read_bytes())
    result = run(str(games), "--family", "macroxue")
    said = " ".join(result.output.split())
    assert result.exit_code == 0
    assert "macroxue/pack d6: up to " in said and " on disk while it builds" in said
    assert "note raw files with the bytes of another one, 1: " in said
    assert "drops/macroxue/d6/again.jsonl.gz" in said
    assert "note" not in run(str(games.parent / "d6"), "--family", "annotations").output


def test_a_month_with_the_bytes_of_another_one_is_named(data, tmp_path):
    game = '[Event "E"]\n[Date "2024.01.09"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 Nc6 1-0\n\n'
    for month in ("01", "02"):
        (tmp_path / f"elite_2024-{month}.pgn").write_text(game * 2)
        result = run(str(tmp_path / f"elite_2024-{month}.pgn"), "--family", "chess")
        said = " ".join(result.output.split())
        assert result.exit_code == 0 and "note equal_games: 1 games are in the PGN" in said
        assert ("note other_month: 2 games have" in said) == (month == "02")
        assert ("has the bytes of drops/chess/elite_2024-01.pgn, of" in said) == (month == "02")


def test_own_sudokus_with_a_bad_row_are_said_at_the_drop(data, tmp_path):
    folder = put(tmp_path / "own", [*ROWS, ROWS[0][1:]])
    bare = printed(run(str(folder), "--family", "puzzles"))
    assert "1 of 41 rows looked at is not as a sudoku must be" in " ".join(bare.split())
    assert "a build by these lines: up to 41 rows, 41.5 kB on disk" in bare
    recipe = data / "drops/puzzles/recipes/own.toml"
    recipe.parent.mkdir()
    recipe.write_text(proposal(folder))
    said = " ".join(printed(run(str(folder), "--family", "puzzles")).split())
    assert "puzzles/sudoku own: up to 41 rows" in said and "ready: " in said
    assert "1 of 41 rows looked at is not as a sudoku must be" in said


def test_questions_of_a_set_are_said_at_the_drop(data, tmp_path):
    question = "How many of the nine blue ducks swim over the lake in the morning of that day?"
    row = json.dumps({"question": f"So: {question}", "answer": "9"})
    (tmp_path / "own").mkdir()
    (tmp_path / "own/train.jsonl").write_text(f"{row}\n")
    evals = data / "drops/evals/ducks"
    evals.mkdir(parents=True)
    (evals / "a.txt").write_text(f"{question}\n")
    bare = run(str(tmp_path / "own")).output
    (tmp_path / "own/corpus.toml").write_text(
        'schema = 1\n[[form]]\nname = "f"\nquestion = "question"\nanswer = "answer"\n'
    )
    for said in (bare, printed(run(str(tmp_path / "own"), "--family", "reasoning"))):
        assert "1 of 1 rows are questions of ducks, e.g. " in said
        assert "train.jsonl row 1 question is drops/evals/ducks a.txt row 1: So: How" in said


@pytest.mark.parametrize(
    ("family", "recipe", "good", "wrong", "reason"),
    [
        (
            "chat",
            'kind = "chat"\nmessages = "messages"',
            {"messages": TALK},
            {"messages": MISSPELT},
            "role 'asistant'",
        ),
        ("reasoning", 'question = "q"\nanswer = "a"', {"q": "1", "a": "2"}, {"q": "1"}, "column a"),
    ],
)
def test_rows_that_are_refused_are_named_early(data, tmp_path, family, recipe, good, wrong, reason):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "corpus.toml").write_text(f'schema = 1\nname = "mine"\n{recipe}\n')
    rows = [{**good, "note": n} for n in range(5)]
    text = "".join(json.dumps(row) + "\n" for row in [*rows, {**wrong, "note": 5}])
    (folder / "train.jsonl").write_text(text)
    said = " ".join(printed(run(str(folder), "--family", family)).split())
    assert "train.jsonl: 1 of 6 rows tried are refused" in said and reason in said


def test_a_thousand_augmentations_are_named_with_their_size(data, tmp_path):
    tasks = put_tasks(Lake(data_root=str(tmp_path / "outside")), "arc_agi")
    said = " ".join(printed(run(str(tasks), "--family", "puzzles")).split())
    assert "puzzles/arc arc-1-aug-20: up to " in said
    asked = "if you ask: `gristmill materialize puzzles/arc --partition arc-1-aug-1000`"
    assert "puzzles/arc arc-1-aug-1000: up to " in said and asked in said
    assert "arc-aug-20" not in said  # it waits for another drop


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--family", "pools"], "is a folder: drops/pools/ takes .toml files"),
        (["--family", "macroxue", "--name", "../x"], "may hold only ASCII letters"),
        (["--family", "puzzles", "--name", "recipes"], "is a folder of its own in drops/puzzles/"),
        (["--family", "nowhere"], "is not one of"),
        ([], "name the inbox with --family"),
    ],
)
def test_a_wrong_command_line_is_refused_at_once(data, games, words, reason):
    result = run(str(games), *words)
    assert (result.exit_code, names(data)) == (2, set())
    assert reason in " ".join(result.output.split())


def test_a_file_goes_into_an_inbox_of_files_with_its_sum_beside_it(data, tmp_path):
    pool = tmp_path / "both.toml"
    pool.write_text('members = ["a"]\n')
    result = run(str(pool), "--family", "pools", "--name", "other")
    assert ": copied (1 file, 16 bytes)" in result.output
    assert "refused: " in result.output
    assert result.exit_code == 1
    assert names(data / "drops/pools") == {"other.toml", "other.toml.sha256"}
    pool.write_text('members = ["b"]\n')
    assert run(str(pool), "--family", "pools", "--name", "other.toml").exit_code == 1
    run(str(pool), "--family", "pools", "--name", "other", "--replace")
    assert (data / "drops/pools/other.toml").read_text() == 'members = ["b"]\n'
    state = State()
    shape = command._INBOXES["pools"].shape
    for expected in ([], ["other"]):
        found = look(data / "drops/pools", state, asked(), 20, 60.0, shape)
        assert [arrival.key for arrival in found.arrivals] == expected
    assert run(str(tmp_path / "made"), "--family", "pools").exit_code == 2


def test_two_files_of_one_month_are_refused(data, tmp_path):
    def said(name: str, family: str = "chess", *words: str) -> str:
        (tmp_path / name).write_bytes(b"PK")
        return " ".join(run(str(tmp_path / name), "--family", family, *words).output.split())

    said("lichess_elite_2021-01.zip")
    reason = "is the same partition 2021-01: move it away first, or bring all of its"
    assert reason in said("also_2021-01.zip")
    assert ".pgn.zst: unpack it, or put it into a folder" in said("elite_2021-02.pgn.gz")
    pool = said("pool.txt", "pools")
    assert "pool.txt must end in .toml" in pool and "unpack" not in pool
    reason = "its name does not say which partition it is: put that into the name, or give"
    assert reason in said("none.zip")
    named = said("none.zip", "chess", "--name", "2021-02")
    assert (data / "drops/chess/2021-02.zip").exists(), named


@pytest.mark.parametrize("inbox", sorted(command._INBOXES))
def test_every_inbox_takes_what_is_dropped(data, tmp_path, inbox):
    ending = next(iter(command._INBOXES[inbox].shape.endings), "")
    name = {"chess": "lichess_elite_2021-01", "reasoning": "gsm8k"}.get(inbox, "one")
    source = tmp_path / f"{name}{ending}"
    if ending:
        source.write_bytes(b"x")
    else:
        source.mkdir()
        (source / "file").write_bytes(b"x")
    result = run(str(source), "--family", inbox)
    assert result.exit_code == ("refused: " in result.output), result.output
    assert (data / "drops" / inbox / f"{name}{ending}").exists()


def test_a_source_that_is_not_complete_or_no_drop_is_refused(data, games):
    def refused() -> str:
        result = run(str(games), "--family", "macroxue")
        assert result.exit_code == 1
        return str(result.exception)

    (games / ".incomplete").touch()
    assert "says that the folder is not complete" in refused()
    (games / ".incomplete").unlink()
    whole = sorted(names(games) - {"SHA256SUMS"})[0]
    copied = f"{Path(whole).stem} (1){Path(whole).suffix}"
    for name, rule in (("x.part", "have not finished"), (copied, f"is named as a copy of {whole}")):
        (games / name).touch()
        assert rule in refused()
        (games / name).unlink()
    (games / "link").symlink_to("/etc/passwd")
    assert "link: is a link" in refused()
    (games / "link").unlink()
    (games / "SHA256SUMS").write_text(f"{'0' * 64}  gone\n")
    assert "lists gone, which is not there" in refused()
    first = sorted(names(games) - {"SHA256SUMS"})[0]
    (games / "SHA256SUMS").write_text(f"{'0' * 64}  {first}\n")
    assert f"{first}: its sha256 is not the one in" in refused()
    assert not (data / "drops/macroxue/d6").exists()
    (games.parent / "empty").mkdir()
    result = run(str(games.parent / "empty"), "--family", "macroxue")
    assert "has no file" in str(result.exception)


def test_hostile_names_are_copied_as_they_are(data, tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    hostile = ["-rf", "a\nb", "back\\slash", "ü", os.fsdecode(b"\xff\xfe"), " ", "*", "x;y", "$(z)"]
    for name in hostile:
        (folder / name).write_text(name.encode(errors="replace").decode())
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/f").write_text("f")
    result = run(str(folder), "--family", "macroxue")
    place = data / "drops/macroxue/odd"
    assert ": copied (10 files, " in result.output
    assert f"refused: {place}: no game in it" in result.output
    assert names(place) == {*hostile, "deep/er/f", "SHA256SUMS"}
    found = look(place.parent, state := State(), asked(), 20, 60.0)
    found = look(place.parent, state, asked(), 20, 60.0)
    assert (found.refusals, [each.notes for each in found.arrivals]) == ([], [()])


def test_a_copy_goes_on_where_it_stopped_and_says_what_it_kept(data, games):
    staged = data / "drops/macroxue/.d6.copying"
    staged.mkdir(parents=True)
    whole = sorted(names(games))[0]
    (staged / whole).write_bytes((games / whole).read_bytes())
    result = run(str(games), "--family", "macroxue")
    assert f"; {(games / whole).stat().st_size:,} bytes were copied before)" in result.output


def test_a_full_disk_is_an_error_that_says_how_to_go_on(data, games, monkeypatch):
    def full(*_: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    with monkeypatch.context() as patched:
        patched.setattr("gristmill.inbox.copying._stage", full)
        result = run(str(games), "--family", "macroxue")
    assert "No space left on device: when that is mended" in str(result.exception)
    monkeypatch.setattr(
        "gristmill.inbox.copying.shutil.disk_usage", lambda _: SimpleNamespace(free=1)
    )
    result = run(str(games), "--family", "macroxue")
    assert "1 are free: make room" in str(result.exception)


def test_the_last_line_is_the_state_of_the_drop(data, games, tmp_path):
    pool = tmp_path / "both.toml"
    pool.write_text('members = ["a", "b"]\n')
    last = printed(run(str(pool), "--family", "pools")).splitlines()[-1]
    assert last.startswith("ready: ") and "waits for macroxue/pack a, b" in last
    result = run(str(games), "--family", "macroxue")
    assert " files taken" in result.output
    assert result.output.splitlines()[-1].startswith("ready: its sensor takes it")
    (data / "gristmill.toml").write_text("[inbox]\nrequire_done = true\n")
    result = run(str(games), "--family", "macroxue", "--name", "other")
    assert result.output.splitlines()[-1].startswith("ready: ")  # its list says that it is whole
    (data / "drops/macroxue/other/SHA256SUMS").unlink()
    result = run(str(games), "--family", "macroxue", "--name", "other")
    assert (result.exit_code, "arriving: " in result.output) == (0, True)


def test_a_drop_with_other_files_is_not_taken_whatever_is_current(data, games, monkeypatch):
    monkeypatch.setattr(command.DropStates, "is_taken", lambda *_: True)
    words = (str(games), "--family", "macroxue", "--name", "mine")
    assert run(*words).output.splitlines()[-1].startswith("ready: ")
    assert run(*words).output.splitlines()[-1] == "taken: what is built from it is current"
    (games / "gristmill.toml").write_text('[macroxue.pack]\nlayout = "packed46"\n')
    replaced = run(*words, "--replace")
    assert ": replaced" in replaced.output
    assert replaced.output.splitlines()[-1].startswith("ready: ")


def test_an_unknown_folder_is_looked_at_and_not_copied(data, tmp_path):
    folder = tmp_path / "my_math"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"problem": "How many are there?", "solution": "2"}\n')
    for status, words in ((1, ("--family", "reasoning")), (2, ())):
        result = run(str(folder), *words)
        assert result.exit_code == status
        assert "guess by names: qa: question = problem, answer = solution" in result.output
        assert "gristmill look --write" in result.output
        assert "nothing is copied" in result.output
    assert not (data / "drops/reasoning/my_math").exists()


def test_without_a_family_the_one_that_reads_the_files_is_named(data, games):
    said = printed(run(str(games)), 2)
    assert f"`gristmill drop --family macroxue {games}`" in " ".join(said.split())


def test_a_corpus_that_is_replaced_says_how_many_ids_move_and_keeps_them_on_demand(data, tmp_path):
    rows = [f'{{"question": "{n}?", "answer": "{n}"}}\n' for n in range(5)]
    made = tmp_path / "made/gsm8k"
    made.mkdir(parents=True)
    (made / "train.jsonl").write_text("".join(rows))
    words = (str(made), "--family", "reasoning")
    assert "ids name" not in run(*words).output
    built(data, "reasoning/normalized", "gsm8k__train")
    (made / "train.jsonl").write_text("".join(rows[1:]))
    assert "--keep-numbers goes with --replace" in run(*words, "--keep-numbers").output
    said = printed(run(*words, "--replace", "--keep-numbers"))
    assert "gsm8k__train: 1 rows left, 0 of 5 ids name another record" in said
    assert "not verified" not in said and "ready: " in said
    assert "not verified" not in printed(run(*words))
    built(data, "reasoning/normalized", "gsm8k__train")
    (made / "train.jsonl").write_text("".join(rows[2:]))
    said = printed(run(*words, "--replace"))
    assert "1 rows left, 3 of 4 ids name another record; --keep-numbers writes" in said
    assert '"number":0,' in (data / "drops/reasoning/gsm8k/forgotten.jsonl").read_text()
