"""`[render]` of a recipe: its keys, its template file, and what decides tokens."""

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.synth.raw import Render, read_render


def render(folder: Path, text: str) -> Render:
    """How a recipe with this table renders."""
    (folder / "corpus.toml").write_text(f'name = "mine"\n[render]\n{text}')
    return read_render(folder)


def test_without_a_table_conversations_are_rendered_in_harmony(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text('name = "mine"\n')
    assert read_render(tmp_path) == Render()
    assert Render().template == "harmony"


def test_a_file_beside_the_recipe_is_read_and_decides_by_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("é")
    text = 'template = "drop:t.jinja"\nkwargs = { b = 1, a = true }\ndate = 2026-02-03\n'
    found = render(tmp_path, text + 'expand = "turns"\nthinking = "field"\ntokenizer = "mine"')
    assert (found.path, found.source, found.kwargs) == (file, "é", '{"a": true, "b": 1}')
    assert (found.date, found.expand, found.thinking) == ("2026-02-03", "turns", "field")
    assert found.tokenizer == "mine"
    file.write_text("e")
    other = render(tmp_path, text)
    assert other.recorded != render(tmp_path, text.replace("02-03", "02-04")).recorded
    file.write_text("f")
    assert other.recorded != render(tmp_path, text).recorded
    assert str(tmp_path) not in other.recorded


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('templat = "chatml"', "unknown key .templat.: did you mean template"),
        ('template = "chatlm"', "did you mean chatml.*or drop: and the name of a file"),
        ('template = "drop:../x.jinja"', "must name a file beside the recipe"),
        ('template = "drop:.x.jinja"', "must name a file beside the recipe"),
        ('template = "drop:template.txt"', "name the file with the ending .jinja"),
        ("template = 1", "must be a text"),
        ('template = "chatml"\nexpand = "turn"', "expand = .turn.: must be turns"),
        ('expand = "turns"', "Harmony keeps all thoughts: leave it out"),
        ('template = "chatml"\nkwargs = { a = 1 }', "only a template of your own sees it"),
        ('template = "drop:a.jinja"\nkwargs = "x"', "kwargs"),
        ('template = "drop:a.jinja"\nkwargs = { a = nan }', "kwargs: holds a value"),
        ('template = "drop:a.jinja"\ndate = "tomorrow"', "render: "),
        ('tokenizer = "qwen"', "harmony has the control tokens of o200k_harmony"),
        ('template = "chatgpt_plain"\ntokenizer = "qwen"', "take another template"),
    ],
)
def test_a_wrong_table_is_refused_with_key_and_cure(tmp_path: Path, text: str, rule: str) -> None:
    with pytest.raises(BadInput, match=rule) as raised:
        render(tmp_path, text)
    assert raised.value.file == str(tmp_path / "corpus.toml")


def test_a_template_that_is_gone_a_link_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    text, file = 'template = "drop:a.jinja"', tmp_path / "a.jinja"
    with pytest.raises(BadInput, match="there is no such file beside the recipe"):
        render(tmp_path, text)
    file.write_bytes(b"\xff")
    with pytest.raises(BadInput, match="is not UTF-8"):
        render(tmp_path, text)
    file.write_bytes(b"x" * ((256 << 10) + 1))
    with pytest.raises(BadInput, match="has more than"):
        render(tmp_path, text)
    file.unlink()
    file.symlink_to(tmp_path / "corpus.toml")
    with pytest.raises(BadInput, match="link"):
        render(tmp_path, text)
