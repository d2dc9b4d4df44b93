"""Conversations in one text: marks, what stands around messages, and what is refused.

Recipes of conversations: what is refused, and what stays the same for rows.
"""

import json
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.raw.chat.messages import account, chat_of, keys_of
from gristmill.corpora.raw.chat.recipe import Chat, Transcripts, chat_of_table
from gristmill.corpora.raw.corpus_file import read_corpus_file
from tests.reasoning.drops import unfit

LINES = {"user": "\n\nHuman:", "assistant": "\n\nAssistant:"}
CHATML = {
    "system": "<|im_start|>system",
    "user": "<|im_start|>user",
    "assistant": "<|im_start|>assistant",
    "control": "<|im_end|>",
}
INST = {
    "user": ["[INST]", "<</SYS>>"],
    "assistant": "[/INST]",
    "system": "[INST] <<SYS>>",
    "control": ["<s>", "</s>"],
}
FAR = {"user": "\n\n\nQ:", "assistant": "\n\n\nA:", "tool": "\n\n\nT:"}
PAIR = [("user", "hi"), ("assistant", "hello")]


@pytest.mark.parametrize(
    ("marks", "text", "expected"),
    [
        (LINES, "\n\nHuman: hi\n\nAssistant: hello", PAIR),
        (LINES, "Human: hi\n\nAssistant: hello\n", PAIR),
        (
            LINES,
            "Human: say\nHuman: x\n\nAssistant: b",
            [("user", "say\nHuman: x"), ("assistant", "b")],
        ),
        (LINES, "Human: hi\n\nAssistant:", [("user", "hi"), ("assistant", "")]),
        (LINES, "Human: hi\n\nAssistant: hello\n\nHuman: \n", PAIR),
        (LINES, "Human: \n\nAssistant: hello", [("user", ""), PAIR[1]]),
        (FAR, "Q: hi\n\n\nT:\n\n\nA: hello", [PAIR[0], ("tool", ""), PAIR[1]]),
        (
            {"user": ["User:", "User 2:"], "assistant": ["Bot:", "Bot: Final:"]},
            "User: hi\nBot: a\nUser 2: b\nBot: Final: hello",
            [PAIR[0], ("assistant", "a"), ("user", "b"), PAIR[1]],
        ),
        (
            {"user": "### Human:", "assistant": "### Assistant:"},
            "### Human: hi### Assistant: hello",
            PAIR,
        ),
        (
            CHATML,
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\nhello<|im_end|>\n",
            [("system", "Be kind."), *PAIR],
        ),
        (
            CHATML,
            "<|im_start|>system\n<|im_end|><|im_start|>user\nhi<|im_start|>assistant hello",
            PAIR,
        ),
        (
            INST,
            "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nhi [/INST] hello </s>",
            [("system", "Be kind."), *PAIR],
        ),
        (
            INST,
            "<s>[INST] hi [/INST] hello </s><s>[INST] a [/INST] b </s>",
            [*PAIR, ("user", "a"), ("assistant", "b")],
        ),
        (
            INST,
            "[INST] hi [/INST] see </s> here</s>",
            [("user", "hi"), ("assistant", "see </s> here")],
        ),
    ],
)
def test_marks_divide_a_text(marks, text, expected):
    assert [*Transcripts(marks).divided(text)] == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("hello", r"has none of the marks '\n\nHuman:', '\n\nAssistant:': write in `marks`"),
        ("", "has none of the marks"),
        ("A talk.\n\nHuman: hi", "before the first mark, 'A talk.': name it in `marks.control`"),
    ],
)
def test_a_text_that_is_no_transcript_is_refused(text, rule):
    with unfit("messages", rule):
        _ = [*Transcripts(LINES).divided(text)]


def test_what_stands_before_the_first_mark_is_found():
    reader = Transcripts({**LINES, "control": ["A talk."]})
    assert reader.head("x\n\nHuman: hi") == "\n\nx"
    assert reader.head("x") is None
    assert reader.bare(" A talk. \nA talk.x") == "x"
    assert [*reader.divided("A talk.\n\nHuman: hi\n\nAssistant: hello")] == PAIR


HEAD = 'schema = 1\nkind = "chat"\nname = "mine"\n'
PLAIN = HEAD + 'messages = "m"\n'
SYNTH = HEAD + 'recipe = "synth"\n'


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
        (PLAIN + 'keys = { user = "q" }', "keys.user: names a whole turn: name user and assist"),
        (PLAIN + 'keys = { system = "s" }', "keys.system: names a whole turn: name user and"),
        (PLAIN + 'marks = { user = "Q:" }', "marks: lacks assistant"),
        (PLAIN + 'marks = { usr = "Q:" }', "marks: unknown key .usr."),
        (PLAIN + 'marks = { user = " ", assistant = "A:" }', "marks.user = .*: must be a text, or"),
        (PLAIN + 'marks = { user = [], assistant = "A:" }', "marks.user = .*: must be a text, or"),
        (PLAIN + 'marks = { user = [1], assistant = "A:" }', "marks.user = .*: must be a text, or"),
        (PLAIN + 'marks = { user = "Q:", assistant = ["A:", "Q:"] }', "marks: .Q:. is there twice"),
        (HEAD + 'messages = "{a}{b}"', "messages = .*: a template needs `marks`"),
        (
            HEAD + 'turns = { user = "u", assistant = "a", history = "{h}" }',
            "turns.history: must be the name of a column",
        ),
        (PLAIN + "marks = 1", "marks = 1: must be a table"),
        (
            HEAD + 'tree = { id = "i", parent = "p" }\nmarks = { user = "Q:", assistant = "A:" }',
            "marks: stand in texts of a column: name it",
        ),
        (SYNTH + 'marks = { user = "Q:", assistant = "A:" }', "marks: recipe = .synth. says how"),
        (HEAD + 'turns = { user = "u", assistant = "a", history = 1 }', "turns.history: "),
        (PLAIN + 'tools = "keep"', "tools = .keep.: must be refuse or drop"),
        (PLAIN + 'train = "first"', "must be assistant or last or all"),
        (PLAIN + "shards = 0", "shards = 0: must be a whole number from 1"),
        (PLAIN + "shards = 101", "must be at most 100"),
        (PLAIN + 'question = "q"', "unknown key .question."),
        (PLAIN + 'files = { test = "x*" }', "test.: a recipe of conversations has the splits"),
        (PLAIN + "split = { test = 0.1 }", "name files of other splits in `leave`"),
        (PLAIN + 'keep = [{ column = "a" }]', "the rule for a has none of"),
        (HEAD + 'recipe = "sinth"', "recipe = .sinth.: did you mean synth.*: must be synth"),
        (HEAD + "recipe = []", "recipe = .*: must be synth"),
        (SYNTH + 'messages = "m"', 'messages: recipe = "synth" says how rows are read: leave one'),
        (SYNTH + 'thinking = "tags"', "thinking: recipe = .synth. says how rows are read"),
        (SYNTH + "sample = { cap = 5 }", "sample: recipe = .synth. says how rows are read"),
        (SYNTH + "split = { seed = 5 }", "split.seed: recipe = .synth. divides conversations by"),
        (SYNTH + 'split = { by = "x" }', "split.by: .* by the hash of their ids: leave it out"),
        (SYNTH + "split = { validation = 2 }", "split.validation = 2: must be a number from 0"),
        (SYNTH + "split = 1", "split = 1: must be a table"),
        (SYNTH + "turns = 1", "turns = 1: must be a table"),
        (SYNTH + 'turns = { usr = "u" }', "turns: unknown key .usr."),
        (SYNTH + 'question = "q"', "unknown key .question."),
        (PLAIN + 'thinking = ["<a>"]', r'thinking = .*: must be "tags", "none", or two tags as'),
        (PLAIN + 'thinking = ["<a>", ""]', "thinking = .*must be"),
        (PLAIN + 'thinking = "tag"', 'thinking = "tag": must be'),
        (HEAD + 'prompt = "p"\ncompletion = "c"\nweights = "w"', "weights: stand beside messages"),
        (PLAIN + 'weights = "w"\nmarks = { user = "Q:", assistant = "A:" }', "without `marks`"),
        (PLAIN + 'weights = "w"\ntrain = "all"', "train: `weights` say what is trained on"),
        (PLAIN + 'weights = "w"\nkeys = { weight = "w" }', "keys.weight: `weights` say what"),
        (PLAIN + "weights = 1", "weights = 1: must be a text"),
        (SYNTH + 'weights = "w"', "weights: recipe = .synth. says how rows are read"),
        (PLAIN + 'broken = "keep"', 'broken = "keep": must be refuse or drop'),
        (SYNTH + 'broken = "drop"', "broken: recipe = .synth. says how rows are read"),
    ],
)
def test_a_wrong_recipe_is_refused_with_the_key_and_the_rule(tmp_path, text, rule):
    with pytest.raises(BadInput, match=rule) as raised:
        recipe(tmp_path, text)
    assert raised.value.file == str(tmp_path / "mine/corpus.toml")


def test_rows_do_not_depend_on_notes_and_a_recipe_of_conversations_is_no_corpus(tmp_path):
    plain = recipe(tmp_path, PLAIN)
    more = PLAIN + '# why\nnotes = "n"\n[render]\ntemplate = "chatml"\n'
    assert recipe(tmp_path, more).table == plain.table
    assert recipe(tmp_path, PLAIN + 'train = "last"').table != plain.table
    (tmp_path / "corpus.toml").write_text(PLAIN)
    with pytest.raises(BadInput, match="is read from drops/chat/: move the folder there"):
        read_corpus_file(tmp_path / "corpus.toml", "mine")


def test_a_built_in_recipe_gives_the_keys_that_a_recipe_has_not(tmp_path):
    plain = recipe(tmp_path, SYNTH)
    assert (plain.recipe, plain.shards, plain.corpus.id) == ("synth", 4, "synth_id")
    assert plain.corpus.split == {"validation": 0.001}
    assert plain.partitions == [f"mine__0{number}" for number in range(4)]
    assert plain.turns["thinking"] == "synthetic_reasoning"
    own = 'shards = 2\nid = "n"\nturns = { user = "q", developer = { constant = "" } }\n'
    other = recipe(tmp_path, f"{SYNTH}{own}split = {{ validation = 0.5 }}\n")
    assert (other.shards, other.corpus.id, other.corpus.split) == (2, "n", {"validation": 0.5})
    turns = {"user": "q", "developer": {"constant": ""}}
    assert other.turns == {**plain.turns, **turns}
    named = recipe(tmp_path, f'{SYNTH}files = {{ train = "a*", validation = "b*" }}\n')
    assert (named.corpus.split, named.corpus.splits) == (None, ("train", "validation"))


@pytest.mark.parametrize("text", [SYNTH, f'{SYNTH}files = {{ train = "a*" }}\n', PLAIN])
def test_a_record_has_all_keys_of_a_recipe(tmp_path, text):
    chat = recipe(tmp_path, text)
    assert chat_of_table(json.loads(chat.table)) == chat
    assert ("synthetic_answer" in chat.table) == ("recipe" in text)


def test_by_the_recipe_of_synth_a_shard_reads_files_and_else_all_do(tmp_path):
    paths = [Path(str(number)) for number in range(6)]
    by_synth, other = recipe(tmp_path, SYNTH), recipe(tmp_path, PLAIN)
    assert [len(by_synth.read_by(shard, paths)) for shard in range(4)] == [2, 2, 1, 1]
    assert by_synth.read_by(3, paths) == paths[5:]
    assert other.read_by(0, paths) == paths


@pytest.mark.parametrize("more", ["", "split = { validation = 0.5 }\n"])
def test_a_drop_has_a_partition_a_shard_and_its_template_is_no_data(tmp_path, more):
    folder = tmp_path / "drops/chat"
    folder.mkdir(parents=True)
    recipe(folder, PLAIN + more + "shards = 3")
    drop = folder / "mine"
    with pytest.raises(BadInput, match="holds no data file"):
        account(drop)
    (drop / "a.jsonl").write_text("{}")
    (drop / "chat_template.jinja").write_text("x")
    (drop / "LICENSE").write_text("x")
    found = account(drop)
    assert found.taken["train"] == ["a.jsonl"]
    assert found.left_out == {"LICENSE": "no data file"}
    assert keys_of(drop) == ["mine__00", "mine__01", "mine__02"]
    (drop / "corpus.toml").unlink()
    with pytest.raises(
        BadInput, match=r'has no corpus\.toml: write one with schema = 1, kind = "c'
    ):
        account(drop)
