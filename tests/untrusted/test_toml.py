from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.toml import read_toml

WELL_FORMED = '''
# A comment with [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
members = ["d6_v1", 'd7_v1"']
number = 1_000
table = {a.b.c = 1.5, d = [[1, 2], []]}
weights = [%s]
long = "%s"
[macroxue.pool]
text = """a "quoted" [[[ \\""" text"""
other = %s
date = 1979-05-27T07:32:00.999999-07:00
'''


def _file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "gristmill.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_usual_file_and_one_at_the_limits_are_read(tmp_path):
    weights = ", ".join(["0.5"] * 500)
    text = WELL_FORMED % (weights, "1234567890" * 50, "'''[\n[[[[\n'''")
    table = read_toml(_file(tmp_path, text), root=tmp_path)
    assert table["members"] == ["d6_v1", 'd7_v1"']
    assert table["table"] == {"a": {"b": {"c": 1.5}}, "d": [[1, 2], []]}
    assert len(table["weights"]) == 500
    assert table["macroxue"]["pool"]["other"] == "[\n[[[[\n"
    text = f"a = {'[' * 32}{']' * 32}\n{'.'.join('a' * 32).replace('a', 'b')} = {'9' * 100}\n"
    assert read_toml(_file(tmp_path, text), root=tmp_path)["a"]
    assert read_toml(_file(tmp_path, "b" * 1000 + " = 1"), root=tmp_path) == {"b" * 1000: 1}
    assert read_toml(_file(tmp_path, "#" * (1 << 20)), root=tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a = " + "[" * 100_000, "1: nested deeper than 32 levels"),
        ("\na = " + "{b=" * 100_000, "2: nested deeper than 32 levels"),
        ("[" + ".".join("a" * 33) + "]", "1: a key of more than 32 parts"),
        ("a" + " . a" * 100_000 + " = 1", "1: a key of more than 32 parts"),
        ("a = " + "9" * 1_000_000, "1: a number or key of 1000000 characters"),
        ("b" * 1001 + " = 1", "1: a number or key of 1001 characters"),
        ("a = 1\na = 2", "not TOML: Cannot overwrite a value"),
        (b"a = '\xff'", "not TOML: 'utf-8' codec"),
        (b"\xef\xbb\xbfa = 1", "toml: begins with a byte order mark: save it as UTF-8 without one"),
        ("a = 0000-00-00", "not TOML"),
        ("a = " + '"' * 3, "not TOML"),
        ("#" * ((1 << 20) + 1), "has more than 1048576 bytes"),
    ],
    ids=range(12),
)
def test_what_is_no_toml_or_too_much_names_the_file_and_the_rule(tmp_path, text, rule):
    path = _file(tmp_path, text)
    with pytest.raises(BadInput, match=rule) as raised:
        read_toml(path, root=tmp_path)
    assert raised.value.file == str(path)


def test_links_are_refused_unless_they_are_allowed(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.toml").write_text("a = 1")
    link = tmp_path / "gristmill.toml"
    link.symlink_to("store/a.toml")
    with pytest.raises(BadInput, match="is a link"):
        read_toml(link, root=tmp_path)
    rule = LinkRule(True, (str(tmp_path / "store"),))
    assert read_toml(link, root=tmp_path, links=rule) == {"a": 1}
    link.unlink()
    link.symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="is a link"):
        read_toml(link, root=tmp_path)
