"""Tokenizers that people bring: from the drop to the published folder, and what is shown."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from definitions import build_of
from gristmill.browse.opening import open_table, tables_of
from gristmill.cli import main
from gristmill.contract import BadInput, GristmillError
from gristmill.data_root import DataRoot
from gristmill.families import check
from gristmill.laws import Subject
from gristmill.publish.publish import publish
from gristmill.tokenizers import builds
from gristmill.untrusted.files import REFUSE_LINKS
from gristmill.vocabularies.pinned import PLACED
from gristmill.vocabularies.tokenizer import open_tokenizer
from tests.tiny_tokenizer import EOD, put_tiny


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put_tiny(tmp_path)
    return tmp_path


def _published(root: Path, name: str = "tiny") -> Path:
    build = build_of(PLACED, DataRoot(root), name)
    assert build is not None
    return publish(build).folder


def test_a_drop_is_published_read_listed_and_shown(root):
    assert DataRoot(root).taken("tokenizers") == ["tiny"]
    folder = _published(root)
    assert folder == root / "tokenizer"
    tokenizer = open_tokenizer(folder / "tiny")
    assert (tokenizer.size, tokenizer.eod, tokenizer.dtype) == (265, 264, "<u2")
    (line,) = builds.facts(PLACED, folder)
    assert line == "tiny: tiktoken, 265 ids as uint16, 1 control tokens"
    assert tables_of(folder) == ["tiny"]
    rows = open_table(folder).rows(0, 300)
    assert [len(rows), rows[258].cells["text"]] == [265, "in"]
    run = CliRunner().invoke(main, ["show", str(folder), "tiny"])
    assert run.output.startswith("tiny: row 0 of 265\n"), run.output


def test_another_name_than_the_folder_and_another_file_break_laws(root):
    folder = _published(root)
    subject = Subject(folder, "tiny")
    assert list(check(PLACED, subject)) == []
    (folder / "tiny" / "tiny.tiktoken").write_bytes(b"AA== 0\n")
    assert [found.law for found in check(PLACED, subject)] == ["sha256"]
    (folder / "tiny").rename(folder / "other")
    assert [found.law for found in check(PLACED, Subject(folder, "other"))] == ["name"]
    assert builds.asset_of(folder) == PLACED
    assert builds.asset_of(root) is None


def _cut(drop: Path) -> None:
    text = (drop / "tokenizer.toml").read_text()
    (drop / "tokenizer.toml").write_text(text.replace("eod", "#"))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda drop: (drop / "tokenizer.toml").unlink(), "is missing: `gristmill tokenizers"),
        (_cut, "`eod` is missing"),
        (lambda drop: drop.rename(drop.with_name("gpt2")), "name of a built-in tokenizer"),
    ],
)
def test_a_drop_that_is_refused_says_why(root, change, error):
    drop = root / "drops/tokenizers/tiny"
    change(drop)
    (found,) = (root / "drops/tokenizers").iterdir()
    with pytest.raises(BadInput, match=error):
        builds.account(found, REFUSE_LINKS)
    assert DataRoot(root).taken("tokenizers") == []


def test_a_file_that_no_key_names_is_left_out(root):
    drop = root / "drops/tokenizers/tiny"
    (drop / "README.md").write_text("from me")
    account = builds.account(drop, REFUSE_LINKS)
    assert account.left_out == {"README.md": "tokenizer.toml does not name it"}
    (drop / "tiny.tiktoken").write_bytes(b"AA== 0\n")
    with pytest.raises(GristmillError, match="has the sha256"):
        _published(root)
    assert not (root / "tokenizer" / "tiny").exists()


def test_the_command_makes_the_drop_of_a_file(root):
    file = root / "drops/tokenizers/tiny/tiny.tiktoken"
    given = ["tokenizers", str(file), "--data-root", str(root), "--name"]
    ranks = ["--pattern", "gpt2", "--special", f"{EOD}=264"]
    run = CliRunner().invoke(main, [*given, "mine", "--eod", EOD, *ranks])
    assert run.exit_code == 0, run.output
    assert "`gristmill materialize tokenizers/placed` places it" in run.output
    assert DataRoot(root).taken("tokenizers") == ["mine", "tiny"]
    for options, error in (
        (["other", *ranks], "never guessed: give --eod TEXT"),
        (["other", "--eod", EOD, "--special", "x"], "write TEXT=ID"),
        (["mine", "--eod", EOD, *ranks], "is there already"),
    ):
        run = CliRunner().invoke(main, [*given, *options])
        assert run.exit_code != 0 and error in str(run.output) + str(run.exception)
    run = CliRunner().invoke(main, ["tokenizers", "--eod", EOD])
    assert "give FILE" in run.output
