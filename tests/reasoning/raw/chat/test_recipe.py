"""Recipes of conversations: what is refused, and what stays the same for rows."""

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.raw.chat.drops import account, chat_of, keys_of
from gristmill.reasoning.raw.chat.recipe import Chat
from gristmill.reasoning.raw.forms.corpus_file import read_corpus_file

HEAD = 'schema = 1\nkind = "chat"\nname = "mine"\n'
PLAIN = HEAD + 'messages = "m"\n'


def recipe(folder: Path, text: str) -> Chat:
    """The recipe of a drop `mine`."""
    drop = folder / "mine"
    drop.mkdir(exist_ok=True)
    (drop / "corpus.toml").write_text(text)
    return chat_of(drop)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('schema = 1\nname = "mine"\nmessages = "m"', 'kind = "chat" is missing'),
        ('kind = "chat"\nname = "mine"\nmessages = "m"', "schema = 1 is missing"),
        (HEAD.replace("mine", "other") + 'messages = "m"', 'must be "mine", as the folder is'),
        (HEAD, 'where the messages are is not said: write messages = "name of the column'),
        (PLAIN + 'prompt = "p"\ncompletion = "c"', "has both `messages` and `prompt`: leave one"),
        (HEAD + 'prompt = "p"', "prompt and completion: each needs the other"),
        (HEAD + 'turns = { user = "u" }', "turns: lacks assistant"),
        (HEAD + 'turns = { user = "{", assistant = "a" }', "turns.user: "),
        (HEAD + 'turns = { user = { column = "u", befor = "x" }, assistant = "a" }', "befor"),
        (HEAD + 'tree = { id = "i" }', "tree: lacks parent"),
        (PLAIN + 'roles = { bot = "robot" }', "roles.bot = .robot.: must be system or"),
        (PLAIN + 'keys = { rol = "from" }', "keys: unknown key .rol.: did you mean role"),
        (PLAIN + "keys = { role = 1 }", "keys.role = 1: must be a text"),
        (PLAIN + 'tools = "keep"', "tools = .keep.: must be refuse or drop"),
        (PLAIN + 'train = "first"', "must be assistant or last or all"),
        (PLAIN + "shards = 0", "shards = 0: must be a whole number from 1"),
        (PLAIN + "shards = 101", "must be at most 100"),
        (PLAIN + 'question = "q"', "unknown key .question."),
        (PLAIN + 'files = { test = "x*" }', "test.: a recipe of conversations has the splits"),
        (PLAIN + "split = { test = 0.1 }", "name files of other splits in `leave`"),
        (PLAIN + 'keep = [{ column = "a" }]', "the rule for a has none of"),
    ],
)
def test_a_wrong_recipe_is_refused_with_the_key_and_the_rule(
    tmp_path: Path, text: str, rule: str
) -> None:
    with pytest.raises(BadInput, match=rule) as raised:
        recipe(tmp_path, text)
    assert raised.value.file == str(tmp_path / "mine/corpus.toml")


def test_rows_do_not_depend_on_comments_notes_and_rendering(tmp_path: Path) -> None:
    plain = recipe(tmp_path, PLAIN)
    more = PLAIN + '# why\nnotes = "n"\n[render]\ntemplate = "chatml"\n'
    assert recipe(tmp_path, more).table == plain.table
    assert recipe(tmp_path, PLAIN + 'train = "last"').table != plain.table


def test_a_drop_has_a_partition_a_shard_and_its_template_is_no_data(tmp_path: Path) -> None:
    folder = tmp_path / "drops/chat"
    folder.mkdir(parents=True)
    recipe(folder, PLAIN + "shards = 3")
    drop = folder / "mine"
    with pytest.raises(BadInput, match="holds no data file"):
        account(drop)
    (drop / "a.jsonl").write_text("{}")
    (drop / "chat_template.jinja").write_text("x")
    (drop / "LICENSE").write_text("x")
    found = account(drop)
    assert found.taken == {"train": ["a.jsonl"]}
    assert found.left_out == {"LICENSE": "no data file"}
    assert keys_of(drop) == ["mine__00", "mine__01", "mine__02"]
    (drop / "corpus.toml").unlink()
    with pytest.raises(
        BadInput, match=r'has no corpus\.toml: write one with schema = 1, kind = "c'
    ):
        account(drop)


def test_a_recipe_of_conversations_is_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(PLAIN)
    with pytest.raises(BadInput, match="is read from drops/chat/: move the folder there"):
        read_corpus_file(tmp_path / "corpus.toml", "mine")
