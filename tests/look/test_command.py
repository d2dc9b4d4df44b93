"""`gristmill look` prints what is in files."""

import json

from click.testing import CliRunner

from gristmill.cli import main


def test_look_prints_and_writes_only_with_write(tmp_path):
    row = {"question": "How many are there?", "answer": "2"}
    (tmp_path / "train.jsonl").write_text(json.dumps(row))
    looked = CliRunner().invoke(main, ["look", str(tmp_path)])
    assert looked.exit_code == 0, looked.output
    assert "question = question, answer = answer" in looked.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.jsonl"]
    written = CliRunner().invoke(main, ["look", "--all", "--write", str(tmp_path)])
    assert written.output.endswith(f"written: {tmp_path / 'corpus.toml'}\n")
    assert ("to write it" in looked.output, "to write it" in written.output) == (True, False)
    again = CliRunner().invoke(main, ["look", "--write", str(tmp_path)])
    assert (again.exit_code, "is there already" in again.output) == (1, True)


def test_a_path_that_is_not_there_is_a_wrong_use(tmp_path):
    assert CliRunner().invoke(main, ["look", str(tmp_path / "gone")]).exit_code == 2
