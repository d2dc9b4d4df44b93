"""A row to its messages, or why it is refused. Source: `docs/formats/chat.md#messages`.

Drops of conversations: their recipe, their files, and the partitions that they give.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from gristmill.contract import BadInput, NothingToBuild
from gristmill.corpora.raw.chat.lists import (
    Content,
    branch_of,
    call_of,
    content_of,
    divided,
    filled_list,
    is_nodes,
    kind_of,
    message_list,
    named_pairs,
    whole_turn,
    with_thoughts,
)
from gristmill.corpora.raw.chat.recipe import (
    ALIASES,
    CONTROL,
    HISTORY,
    ROLES,
    TURNS,
    Chat,
    Transcripts,
    bare,
    listed,
    read_chat_file,
)
from gristmill.corpora.raw.corpus_file import check_ignored
from gristmill.corpora.raw.drops import CORPUS, account_of
from gristmill.corpora.raw.reader import ignored_by
from gristmill.corpora.raw.rules import Rules
from gristmill.corpora.raw.texts import CURES, Unfit, text
from gristmill.corpora.raw.transforms import Get, Row
from gristmill.corpora.raw.values import Names, column, of_value, read_of
from gristmill.data_root import DataRoot
from gristmill.inbox.listing import Account
from gristmill.printable import printable
from gristmill.settings.fields import nearest
from gristmill.settings.fields import shown as toml_text
from gristmill.settings.tables import Settings
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

PROMPT, REASONING, FINAL = "0", "1", "2"
"""Span codes: not trained on, thought, answer."""
THINK: Final = ("<think>", "</think>")
"""The tags of thoughts that recipes know without a key."""
GUESSED: Final = (("role", "content"), ("from", "value"), ("role", "parts"))
"""The keys of role and text that need no entry in `keys`."""
_TOOLS: Final = ("tool_calls", "function_call", "tools", "functions")
"""Keys of a message, or columns of a row, by which tools are used."""
_BROKEN: Final = ("turns", "question", "answer")
BROKEN_CURE: Final = 'broken = "drop" in corpus.toml leaves such conversations out'
CHAT_CURES: Final[Mapping[str, str]] = {**CURES, **dict.fromkeys(_BROKEN, BROKEN_CURE)}
"""What helps against a reason of a refused conversation, where its rule does not say it."""
_SHOWN: Final = 40
_COMMENTARY: Final = "commentary"
_CHANNELS: Final[Mapping[str, str]] = {"analysis": REASONING, "final": FINAL}


class Message(NamedTuple):
    """One message. role: user, assistant and so on. span: its code. channel: of an assistant."""

    role: str
    content: str
    span: str
    channel: str | None = None


class Talk(NamedTuple):
    """A conversation. ignored: keys of its messages that nothing reads, once a message."""

    messages: Sequence[Message]
    ignored: Sequence[str]

    @property
    def json(self) -> str:
        """As the column `messages_json` has it. Raises Unfit for a lone surrogate."""
        items = [
            {"role": each.role, "content": each.content}
            if each.channel is None
            else {"role": each.role, "content": each.content, "channel": each.channel}
            for each in self.messages
        ]
        try:
            return orjson.dumps({"messages": items}).decode()
        except orjson.JSONEncodeError as error:
            raise Unfit("surrogate", "a text holds a surrogate without its pair") from error

    @property
    def spans(self) -> str:
        """A code for each message."""
        return "".join([each.span for each in self.messages])


class Messages:
    """Reads the rows of a recipe. Raises ValueError, naming the key, for a value that is wrong."""

    def __init__(self, chat: Chat) -> None:
        self._chat, self._names = chat, Names(is_plain=not chat.is_synth)
        self._roles = {**ALIASES, **chat.roles}
        tags: Mapping[str, Sequence[str]] = {"tags": THINK, "none": ()}
        self._tags = tags.get(str(chat.thinking), chat.thinking)
        # SYNTH takes a text of white space alone for a text.
        self._bare = _as_it_is if chat.is_synth else str.strip
        self._around = [] if "user" in chat.marks else listed(chat.marks.get(CONTROL))
        self._items = self._source()
        self._weights = None if chat.weights is None else column(chat.weights, self._names)
        self._system = None if chat.system is None else self._either("system", chat.system)
        self._tool_column = "" if chat.is_synth else "tools"
        begin = of_messages(chat)
        names = (name for name in ignored_by(chat.corpus) if name.startswith(begin))
        self._ignored = frozenset(name.removeprefix(begin) for name in names)
        own = {self._tool_column, *chat.kept}
        self.columns = self._names.columns | own | Rules(chat.corpus, None).columns
        if chat.tree is not None:
            self.columns |= {*chat.tree.values(), *chat.keys.values(), "role", "text"}

    def read(self, row: Row) -> Talk:
        """The conversation of a row. Raises Unfit for one that is refused or left out."""
        if _is_filled(row.get(self._tool_column)):
            raise self._tools("tools")
        system = None if self._system is None else self._system(row)
        if isinstance(system, Mapping) and isinstance(system.get("parts"), list):
            system = self._plain(system)
        items, weights = self._items(row), None
        if self._weights is not None:
            items = [*items]
            weights = weights_of(self._weights(row), len(items), str(self._chat.weights))
        return self.talk(items, self._text(system, "system"), weights)

    def talk(
        self, items: Iterable[Any], system: str | None = None, weights: Sequence[int] | None = None
    ) -> Talk:
        """The conversation of messages as a row has them.

        system: of the row; default none. weights: one for each message; default: their own.
        """
        try:
            return self._talk(items, system, weights)
        except Unfit as unfit:
            if self._chat.broken == "drop" and unfit.reason in _BROKEN:
                raise Unfit(f"drop:{unfit.reason}", unfit.rule) from unfit
            raise

    def _talk(
        self, items: Iterable[Any], system: str | None, weights: Sequence[int] | None
    ) -> Talk:
        messages: list[Message] = []
        ignored: list[str] = []
        has_preambles = False
        if system is not None and system.strip():
            messages.append(Message("system", system, PROMPT))
        for at, item in enumerate(items):
            said: Iterable[Message] = self._message(item, ignored)
            if type(item) is dict and item.get("channel") == _COMMENTARY:
                said = [each._replace(channel=each.channel and _COMMENTARY) for each in said]
                has_preambles = True
            if weights is not None and not weights[at]:
                said = (each._replace(span=PROMPT) for each in said)
            messages += said
        if has_preambles:
            messages = _with_preambles(messages)
        _check_turns(messages, self._bare)
        return Talk(self._trained(messages), ignored)

    def _value(self, key: str, value: Any) -> Callable[[Row], str]:
        """What reads a text of a row. A text with a brace is a template."""
        if isinstance(value, str) and "{" in value:
            value = {"template": value}
        try:
            get = read_of(value, self._names)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error
        of = of_value(value, self._names, key)
        return lambda row: self._text(get(row), of)

    def _text(self, value: Any, of: str | None) -> str:
        return _exact(value) if self._chat.is_synth else text(value, of)

    def _plain(self, value: Any) -> str:
        """A text, which may be in parts. Raises Unfit as `content_of`, and for a thought."""
        said, thought = self._content(value)
        if thought:
            raise Unfit("thinking", "has a thought in a part where no message has one")
        return said

    def _content(self, value: Any) -> Content:
        """The text and the thought of a message, without `control` around them."""
        found = content_of(value, self._tools)
        if not self._around:
            return found
        return Content(*(bare(each, self._around) for each in found))

    def _source(self) -> Callable[[Row], Iterable[Any]]:
        chat = self._chat
        if chat.tree is not None:
            return lambda row: ()
        if "user" in chat.marks:
            whole, transcripts = self._either("messages", chat.messages), Transcripts(chat.marks)
            return lambda row: self._divided(whole(row), transcripts)
        if chat.messages is not None:
            get = column(chat.messages, self._names)
            if chat.branch is not None:
                last, names = column(chat.branch, self._names), (chat.messages, chat.branch)
                return lambda row: with_thoughts(branch_of(get(row), last(row), names))
            return lambda row: self._whole(get(row))
        if chat.turns:
            return self._turns()
        gets = [
            self._either(key, value)
            for key, value in (("prompt", chat.prompt), ("completion", chat.completion))
        ]

        def both(row: Row) -> Iterator[Any]:
            for get, role in zip(gets, ("user", "assistant"), strict=True):
                value = get(row)
                if isinstance(value, Mapping):
                    value = [value] if self._found(value) else value.get("messages", value)
                is_list = isinstance(value, list)
                yield from with_thoughts(value) if is_list else [_Own(role, text(value, role))]

        return both

    def _turns(self) -> Callable[[Row], Iterable[Any]]:
        """What reads the messages of one turn, and of those before it."""
        chat = self._chat
        texts = {
            name: self._value(f"turns.{name}", chat.turns[name])
            for name in TURNS
            if name in chat.turns
        }
        needed = _needed(chat) if chat.is_synth else {}
        history = chat.turns.get(HISTORY)
        if history is not None and (not isinstance(history, str) or "{" in history):
            raise ValueError(f"turns.{HISTORY}: must be the name of a column")
        before = None if history is None else column(history, self._names)

        def turn(row: Row) -> Iterator[Any]:
            found = {name: get(row) for name, get in texts.items()}
            for name, column_name in needed.items():
                if not found[name]:
                    rule = f"its {column_name} is null or empty"
                    raise Unfit(f"keep:{column_name}", rule)
            earlier = None if before is None else before(row)
            is_there = _is_filled(earlier)
            return _turn(found, self._listed(earlier, str(history), "") if is_there else ())

        return turn

    def _listed(self, value: Any, name: str, cure: str) -> Sequence[Any]:
        """The messages of a list; of texts alone the first one asks. Others as `filled_list`."""
        found = filled_list(value, name, cure)
        pairs = named_pairs(found, self._roles)
        if pairs is None:
            return found
        return [_Own(self._role(role), bare(said, self._around)) for role, said in pairs]

    def _whole(self, value: Any) -> Sequence[Any]:
        self._check_filled(value)
        if is_nodes(value):
            rule = f"its {self._chat.messages} is a tree of nodes: name the column with the id"
            raise Unfit("messages", f'{rule} of the last one, as branch = "current_node"')
        return self._listed(value, self._chat.messages or "", BROKEN_CURE)

    def _divided(self, value: Any, transcripts: Transcripts) -> Iterator[_Own]:
        self._check_filled(value)
        if isinstance(value, list | Mapping):
            what = f"its {self._chat.messages} is {kind_of(value)}, not a text"
            raise Unfit("messages", f"{what}: leave `marks` out")
        return (_Own(*each) for each in transcripts.divided(text(value)))

    def _check_filled(self, value: Any) -> None:
        if not _is_filled(value) and self._chat.broken == "drop":
            raise Unfit("drop:messages", f"its {self._chat.messages} is empty")

    def _either(self, key: str, value: Any) -> Get:
        if isinstance(value, str) and "{" not in value:
            return column(value, self._names)
        return self._value(key, value)

    def _message(self, item: Any, ignored: list[str]) -> Iterator[Message]:
        keys = self._chat.keys
        if isinstance(item, _Own):
            if item.role == "tool":
                raise self._tools("a message of a tool")
            yield from self._said(item.role, item.content, item.thought, 1)
            return
        if (turn := whole_turn(item, keys)) is not None:
            self._count_unread(item, {*keys.values()}, ignored)
            texts = {name: self._plain(value) for name, value in turn.items()}
            for each in _turn(texts):
                yield from self._said(each.role, each.content, each.thought, self._weight(item))
            return
        if not isinstance(item, Mapping):
            raise Unfit(
                "messages", f"a message is {kind_of(item)}, not an object with role and text"
            )
        role_key, text_key = self._keys(item)
        if (name := item.get(role_key)) is None and (call := call_of(item)):
            raise self._tools(call)
        role = self._role(name)
        if role == "tool":
            raise self._tools(f"a message of {name}")
        channel = _channel(item) if role == "assistant" else None
        used = {role_key, text_key, *keys.values(), *(["channel"] if channel else [])}
        self._count_unread(item, used, ignored)
        said, own = self._content(item.get(text_key))
        named = keys.get("thinking")
        thought = "" if named is None else text(item.get(named), named)
        if channel == "analysis":
            own += said
        if own and (thought or role != "assistant"):
            what = "a thought in a key, and a second one" if thought else f"as {role} a thought"
            raise Unfit("thinking", f"has {what} in a part")
        weight = self._weight(item)
        if channel == "analysis":
            if self._bare(thought or own):
                yield Message(role, thought or own, REASONING if weight else PROMPT, channel)
        else:
            yield from self._said(role, said, thought or own, weight)

    def _role(self, name: Any) -> str:
        """What the role of a message means. Raises Unfit for one that means nothing."""
        if name is None:
            raise Unfit("role", "a message has no role: write who says it")
        role = self._roles.get(name) if isinstance(name, str) else None
        if role is None:
            said = str(name)[:_SHOWN]
            near = nearest(said, self._roles)
            meant = (
                f"{toml_text(self._roles[near])} }}"
                if near
                else f".. }}, one of {', '.join(ROLES)}"
            )
            rule = f"a message has the role {said!r}: write roles = {{ {toml_text(said)} = {meant}"
            raise Unfit("role", rule)
        return role

    def _count_unread(self, item: Any, used: Collection[str], ignored: list[str]) -> None:
        """Put the keys of a message that nothing reads into `ignored`."""
        for key, value in item.items() if isinstance(item, Mapping) else ():
            if key in used or value in (None, "", [], {}, False) or key in self._ignored:
                continue
            if key in _TOOLS:
                if _is_filled(value):
                    raise self._tools(key)
                continue
            if self._chat.unknown_keys == "refuse":
                raise Unfit(
                    "messages",
                    f"a message has the key {key[:_SHOWN]!r}, which nothing reads: name it in "
                    '`keys`, or set unknown_keys = "count"',
                )
            ignored.append(key[:_SHOWN])

    def _found(self, item: Mapping[str, Any]) -> tuple[str, str] | None:
        """The keys of role and text: those of the recipe, else the guessed pair that is there."""
        keys = self._chat.keys
        pairs = ((keys.get("role", role), keys.get("content", text)) for role, text in GUESSED)
        return next((pair for pair in pairs if pair[0] in item and pair[1] in item), None)

    def _keys(self, item: Mapping[str, Any]) -> tuple[str, str]:
        """As `_found`. Raises Unfit for a message without them."""
        if found := self._found(item):
            return found
        if call := call_of(item):
            raise self._tools(call)
        names = ", ".join([str(key)[:_SHOWN] for key in item][:8])
        rule = f"a message has the keys {names}: write keys = {{ role = .., content = .. }}"
        raise Unfit("messages", f"{rule}, or {{ user = .., assistant = .. }} of one that has both")

    def _said(self, role: str, content: str, thought: str, weight: int) -> Iterator[Message]:
        """The message, and the thought before it as a message of its own."""
        if role != "assistant":
            yield Message(role, content, PROMPT)
            return
        thought, content = divided(content, thought, self._tags)
        if not self._bare(content):
            raise Unfit("answer", "an answer is empty")
        if self._bare(thought):
            yield Message(role, thought, REASONING if weight else PROMPT, "analysis")
        yield Message(role, content, FINAL if weight else PROMPT, "final")

    def _weight(self, item: Any) -> int:
        """Whether a message or a whole turn is trained on: 0 or 1. Raises Unfit for another."""
        key = self._chat.keys.get("weight")
        value = item.get(key) if key is not None and isinstance(item, Mapping) else None
        if value is not None and value not in (0, 1):
            said = str(value)[:_SHOWN]
            raise Unfit("weight", f"a message has the weight {said}: it must be 0 or 1")
        return 1 if value is None else int(value)

    def _trained(self, messages: list[Message]) -> Sequence[Message]:
        train = self._chat.train
        if train == "assistant":
            return messages
        if train == "all":
            return [each._replace(span=_CHANNELS[each.channel or "final"]) for each in messages]
        last = max(at for at, each in enumerate(messages) if each.role == "user")
        return [each._replace(span=PROMPT) for each in messages[:last]] + messages[last:]

    def _tools(self, what: str) -> Unfit:
        rule = f"uses tools ({what}), which are not read"
        if self._chat.tools == "drop":
            return Unfit("drop:tools", rule)
        return Unfit("tools", f'{rule}: set tools = "drop" to leave such conversations out')


def weights_of(value: Any, count: int, name: str) -> Sequence[int]:
    """The weights of messages. count: of the messages. name: of the column.

    Raises Unfit for what is no list, as JSON too, of so many values 0 and 1; true and false are
    these.
    """
    try:
        found = message_list(value)
    except BadInput as error:
        raise Unfit("weight", f"its {name} is a text that is no JSON list") from error
    if not isinstance(found, list):
        raise Unfit("weight", f"its {name} is {kind_of(found)}, not a list of weights")
    if len(found) != count:
        rule = f"its {name} has {len(found):,} weights for {count:,} messages"
        raise Unfit("weight", rule)
    if wrong := [each for each in found if each not in (0, 1)]:
        said = str(wrong[0])[:_SHOWN]
        raise Unfit("weight", f"its {name} has the weight {said}: it must be 0 or 1")
    return found


def _with_preambles(messages: list[Message]) -> list[Message]:
    """Messages in which what an assistant says before an answer, as `commentary`, begins it."""
    made: list[Message] = []
    for each in reversed(messages):
        if each.channel != _COMMENTARY:
            made.append(each)
        elif made and made[-1].channel == "final":
            made[-1] = made[-1]._replace(content=f"{each.content}\n\n{made[-1].content}")
        else:
            made.append(each._replace(channel="final"))
    return made[::-1]


class _Own(NamedTuple):
    """A message that the recipe makes of columns."""

    role: str
    content: str
    thought: str = ""


def _turn(texts: Mapping[str, str], before: Iterable[Any] = ()) -> Iterator[Any]:
    """The messages of a turn. texts: by `TURNS`. before: messages behind those of the system."""
    for role in ("system", "developer"):
        if texts.get(role, "").strip():
            yield _Own(role, texts[role])
    yield from before
    yield _Own("user", texts["user"])
    yield _Own("assistant", texts["assistant"], texts.get("thinking", ""))


def _channel(item: Mapping[str, Any]) -> str | None:
    """The channel of an assistant's message as Harmony has it, None where it names none."""
    found = item.get("channel")
    return found if isinstance(found, str) and found in _CHANNELS else None


def _needed(chat: Chat) -> Mapping[str, str]:
    """The turns without which SYNTH leaves a row out, each with what its rule says of it."""
    values = {name: chat.turns.get(name) for name in ("user", "thinking", "assistant")}
    return {
        name: value if isinstance(value, str) else name
        for name, value in values.items()
        if value is not None
    }


def _as_it_is(text: str) -> str:
    return text


def _exact(value: Any) -> str:
    """A JSON value as a text; one that is a text stays as it is."""
    return value if isinstance(value, str) else text(value)


def _is_filled(value: Any) -> bool:
    """Whether a value says something: an empty list or object may be written as a text."""
    return bool(value.strip(" []{}") not in ("", "null") if isinstance(value, str) else value)


def _check_turns(messages: Sequence[Message], bare: Callable[[str], str]) -> None:
    """Raise Unfit unless users and assistants take turns, and an assistant is the last."""
    for number, each in enumerate(messages):
        after = messages[number + 1 : number + 2]
        if each.channel == "analysis" and not any(next.channel == "final" for next in after):
            raise Unfit("thinking", "a thought is not followed by its answer")
    heads = [each.role for each in messages if each.channel != "analysis"]
    while heads and heads[0] in ("system", "developer"):
        if heads.count(heads[0]) > 1:
            raise Unfit("turns", f"has two {heads[0]} messages")
        heads.pop(0)
    for number, role in enumerate(heads):
        wanted = ("user", "assistant")[number % 2]
        if role != wanted:
            before = heads[number - 1] if number else "nothing"
            article = "an" if role == "assistant" else "a"
            rule = f"{article} {role} speaks after {before}: users and assistants must take turns"
            raise Unfit("turns", rule)
    if len(heads) < 2 or len(heads) % 2:
        raise Unfit("turns", "its last message is not an assistant's")
    if any(each.role == "user" and not bare(each.content) for each in messages):
        raise Unfit("question", "a question is empty")


INBOX: Final = "chat"
RAW, CONVERSATIONS = "chat/raw", "chat/conversations"
PLACE: Final = "chat/conversations"
"""Folder of the artifacts below the data root."""
_TEMPLATES: Final = (".jinja", ".jinja2", ".j2")
"""Endings of the templates that a recipe may name, which hold no rows."""


def chat_of(drop: Path, links: LinkRule = REFUSE_LINKS) -> Chat:
    """The recipe of a drop. Raises BadInput where it has none, or a wrong one."""
    if not os.path.lexists(drop / CORPUS):
        name = printable(drop.name)
        raise BadInput(
            drop,
            f'has no {CORPUS}: write one with schema = 1, kind = "chat", name = "{name}" and '
            'messages = "name of the column", or let `gristmill look` propose it',
        )
    chat = read_chat_file(drop / CORPUS, drop.name, links)
    try:
        columns = Messages(chat).columns
        check_ignored(json.loads(chat.table), columns, columns_by_key(chat))
    except ValueError as error:
        raise BadInput(drop / CORPUS, str(error)) from error
    return chat


def of_messages(chat: Chat) -> str:
    """Begins the name of a key of messages, as `messages[].`, in accounts and in `ignore`."""
    return f"{chat.messages or 'messages'}[]."


def columns_by_key(chat: Chat) -> dict[str, str]:
    """The columns that a recipe reads, or looks for, each with its key."""
    corpus, keys = chat.corpus, dict[str, str]()
    values: list[tuple[str, Any]] = [
        *((key, getattr(chat, key)) for key in ("messages", "branch", "prompt", "completion")),
        *((f"turns.{name}", value) for name, value in chat.turns.items()),
        *((f"tree.{name}", value) for name, value in (chat.tree or {}).items()),
        *(("system", chat.system), ("id", corpus.id), ("split", (corpus.split or {}).get("by"))),
        *(("keep", rule["column"]) for rule in corpus.keep),
        *(("dedup", name) for name in corpus.dedup),
    ]
    for key, value in values:
        if value is not None:
            names = Names()
            read_of({"template": value} if "{" in value else value, names)
            keys = dict.fromkeys(names.columns, key) | keys
    return {name: keys.get(name, "tools") for name in sorted(Messages(chat).columns) if name}


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a drop. Raises BadInput for a drop that is refused."""
    chat = chat_of(drop, links)
    found = account_of(drop, chat.corpus, links, _TEMPLATES)
    count = len({name for names in found.taken.values() for name in names})
    if chat.is_synth and count < chat.shards:
        files = "1 file" if count == 1 else f"{count} files"
        cure = f"write shards = {count} into {CORPUS}, or divide the rows into more files"
        raise BadInput(drop, f"{files}: {chat.shards} shards need a file each: {cure}")
    return found


def keys_of(path: Path) -> list[str]:
    """The partitions that a drop gives. path: the drop, a folder that is not refused."""
    return chat_of(path, DataRoot(path.parents[2]).rules(INBOX)[0]).partitions


def files_of(root: DataRoot, partition: str) -> tuple[Path, Chat, dict[str, list[Path]], Account]:
    """The drop of a partition, its recipe, its files by split, and its account.

    Raises NothingToBuild where the drop is not there, GristmillError where it is refused,
    ValueError for a key that is none, or a number that the recipe does not give.
    """
    name, _, number = partition.rpartition("__")
    if not name or not number.isdecimal():
        raise ValueError(f"{partition!r} is no <name>__<two digits>")
    if not os.path.lexists(root.inbox(INBOX) / name):
        raise NothingToBuild(f"there is no drop drops/{INBOX}/{name}")
    folder, account = root.ready_drop(INBOX, name)
    chat = chat_of(folder, root.link_rule())
    if partition not in chat.partitions:
        raise ValueError(
            f"{partition}: the recipe of drops/{INBOX}/{name} has shards = {chat.shards}"
        )
    files = {split: [folder / each for each in names] for split, names in account.taken.items()}
    return folder, chat, files, account


def settings_of(root: DataRoot, partition: str) -> Settings:
    """What files give for a partition: the file of its drop, else the data root's."""
    drop = root.inbox(INBOX) / partition.rpartition("__")[0]
    return root.settings(CONVERSATIONS, drop if drop.is_dir() else None)


def available(root: DataRoot) -> Sequence[str]:
    """The partitions that the drops give, and those that are published, sorted."""
    dropped = {key for name in root.taken(INBOX) for key in keys_of(root.inbox(INBOX) / name)}
    return sorted(dropped | set(root.partitions_of(CONVERSATIONS, PLACE)))
