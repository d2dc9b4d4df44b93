"""The command line: what it shows, where it takes its data root from, how it fails."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gristmill import tokenizers
from gristmill.cli import main
from gristmill.macroxue.lookup import Pack
from gristmill.macroxue.packer import PackConfig, pack
from gristmill.samples.macroxue import write_drop


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli")
    write_drop(root / "drop", 3, 2, 30, 6)
    pack(root / "drop", root / "pack", PackConfig(workers=1))
    return root / "pack"


def test_show_a_row_and_a_step_of_a_run(packed: Path) -> None:
    by_row = CliRunner().invoke(main, ["show", str(packed), "5"])
    assert by_row.exit_code == 0
    assert "run 0 · step 5" in by_row.output
    by_step = CliRunner().invoke(main, ["show", str(packed), "--run", "0", "--step", "5"])
    assert by_step.output == by_row.output
    first = CliRunner().invoke(main, ["show", str(packed), "--run", "1"])
    assert "run 1 · step 0" in first.output
    assert f"row {Pack(packed).first_row(1)}" in first.output


def test_errors_are_one_line_and_exit_1(packed: Path) -> None:
    result = CliRunner().invoke(main, ["show", str(packed), "100000"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert "not 100000" in result.output


def test_misuse_exits_2(packed: Path, tmp_path: Path) -> None:
    for arguments in (
        ["show", str(tmp_path)],
        ["show", str(packed), "--step", "1"],
        ["show", str(tmp_path / "none")],
    ):
        assert CliRunner().invoke(main, arguments).exit_code == 2


def test_samples_are_written_once(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["samples", str(tmp_path)])
    assert result.exit_code == 0
    folders = [Path(line) for line in result.output.splitlines()]
    assert all(folder.is_dir() and tmp_path in folder.parents for folder in folders)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert CliRunner().invoke(main, ["samples", str(tmp_path)]).output == result.output
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_tokenizers_in_the_data_root_of_the_environment(
    tmp_path: Path, vocabulary_root: Path
) -> None:
    for vocabulary in tokenizers.VOCABULARIES:
        place = tmp_path / "tokenizer" / vocabulary.relative
        place.parent.mkdir(parents=True, exist_ok=True)
        source = vocabulary_root / "drops" / "tokenizers" / vocabulary.file
        place.write_bytes(source.read_bytes())
    result = CliRunner().invoke(main, ["tokenizers"], env={"GRISTMILL_DATA": str(tmp_path)})
    assert result.exit_code == 0
    for vocabulary in tokenizers.VOCABULARIES:
        path = tokenizers.drop_folder(tmp_path) / vocabulary.file
        assert str(path) in result.output
        assert path.stat().st_size == vocabulary.bytes
    path.write_bytes(b"broken")
    result = CliRunner().invoke(main, ["tokenizers", "--data-root", str(tmp_path)])
    assert result.exit_code == 1
    assert str(path) in result.output
