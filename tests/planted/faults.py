"""Faults that may be planted in a module: each is one small change of its text."""

from __future__ import annotations

import ast
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")
"""Faults that change nothing that anyone is promised, each with the reason."""

_BOUNDS: Final = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is",
    ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_SIGNS: Final = r"<=|>=|==|!=|<|>|\bis\s+not\b|\bnot\s+in\b|\bis\b|\bin\b"
_DROPPED: Final = (ast.Expr, ast.AugAssign, ast.Continue, ast.Break)
_Test: Final = (ast.If, ast.While, ast.IfExp)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Fault:
    """One change of the text of a module.

    module: path of the file, from the checkout.
    inside: names of the class and the function that hold it; empty at the top.
    line: of the change.
    before, after: the lines around it, without and with it, each as one line.
    text: the whole module with the fault.
    """

    module: str
    inside: str
    line: int
    before: str
    after: str
    text: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when lines move."""
        return self.module, self.inside, self.before, self.after

    def __str__(self) -> str:
        place = f"{self.module}:{self.line} in {self.inside or 'the module'}"
        return f"{place}\n  - {self.before}\n  + {self.after}"


@cache
def equivalents() -> dict[tuple[str, str, str, str], str]:
    """The key of each fault of EQUIVALENT, and the reason why no test can see it."""
    items = tomllib.loads(EQUIVALENT.read_text())["fault"]
    return {
        (item["module"], item["inside"], item["before"], item["after"]): item["reason"]
        for item in items
    }


def faults(module: str, text: str) -> list[Fault]:
    """All faults that may be planted in a module, in the order of its text."""
    source = _Source(module, text)
    return [source.fault(*change) for change in source.changes()]


def package(module: str) -> str:
    """The package that a module counts to: one below `gristmill`, or one beside it."""
    folders = Path(module).parts[:-1] or ("gristmill",)
    return ".".join(folders[: 2 if folders[0] == "gristmill" else 1])


def drawn(sources: Mapping[str, str], seed: int, only: str) -> Iterator[Fault]:
    """Faults without end, a package after the other; those that change nothing are left out."""
    chance = random.Random(seed)
    packages = defaultdict[str, list[str]](list)
    for module in sorted(sources):
        dotted = module.removesuffix(".py").replace("/", ".")
        if f"{dotted}.".startswith(f"{only}.") or not only:
            packages[package(module)].append(module)
    known, seen = equivalents(), set[tuple[str, str, str, str]]()
    while packages:
        for name, names in sorted(packages.items()):
            while names:
                chosen = chance.choice(names)
                found = [
                    fault
                    for fault in faults(chosen, sources[chosen])
                    if fault.key not in known and fault.key not in seen
                ]
                if found:
                    break
                names.remove(chosen)
            else:
                del packages[name]
                continue
            fault = chance.choice(found)
            seen.add(fault.key)
            yield fault


class _Source:
    """A module, and the places of its nodes as offsets."""

    def __init__(self, module: str, text: str) -> None:
        self._module, self._text = module, text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def _at(self, line: int, column: int) -> int:
        """The offset of a place; columns of nodes count bytes."""
        begin = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(begin)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = self._at(node.lineno, node.col_offset)
        return begin, self._at(node.end_lineno, node.end_col_offset)

    def fault(self, inside: str, begin: int, end: int, new: str) -> Fault:
        """The fault that puts `new` in the place of the text from `begin` to `end`."""
        first = self._text.rfind("\n", 0, begin) + 1
        last = self._text.find("\n", end)
        last = len(self._text) if last < 0 else last
        text = self._text[:begin] + new + self._text[end:]
        around = (self._text[first:last], self._text[first:begin] + new + self._text[end:last])
        before, after = (" ".join(each.split()) for each in around)
        line = self._text.count("\n", 0, begin) + 1
        return Fault(self._module, inside, line, before, after, text)

    def changes(self) -> Iterator[tuple[str, int, int, str]]:
        """Where each change is, and its text: names around it, begin, end, new."""
        for node, inside in _code(ast.parse(self._text), ()):
            for begin, end, new in self._of(node):
                yield ".".join(inside), begin, end, new

    def _of(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            for left, right, sign in zip(parts, parts[1:], node.ops, strict=False):
                yield from self._between(left, right, _SIGNS, _BOUNDS[type(sign)])
        elif isinstance(node, ast.BoolOp):
            word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            # A mixture of both would need brackets: in a row of three, the first is changed.
            if len(node.values) == 2:
                yield from self._between(*node.values, rf"\b{word}\b", other)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield (*self._span(node), self._of_text(node.operand))
        elif isinstance(node, ast.Constant):
            if type(node.value) is bool:
                yield (*self._span(node), str(not node.value))
            elif type(node.value) is int:
                yield (*self._span(node), str(node.value + 1))
        elif isinstance(node, _DROPPED):
            yield (*self._span(node), "pass")
        if isinstance(node, _Test) and not isinstance(node.test, ast.Constant):
            yield (*self._span(node.test), f"not ({self._of_text(node.test)})")

    def _of_text(self, node: ast.expr) -> str:
        begin, end = self._span(node)
        return self._text[begin:end]

    def _between(
        self, left: ast.expr, right: ast.expr, sign: str, new: str
    ) -> Iterator[tuple[int, int, str]]:
        """The change of the operator between two expressions."""
        begin, end = self._span(left)[1], self._span(right)[0]
        if found := re.search(sign, self._text[begin:end]):
            yield begin + found.start(), begin + found.end(), new


def _code(node: ast.AST, inside: tuple[str, ...]) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """The nodes that decide something, each with the names around it.

    Left out: types, decorators, docstrings, what only type checkers see, statements that send
    signals, and texts with values in them, of which Python 3.11 does not know the places.
    """
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_left_out(child):
                continue
            yield child, inside
            within = (*inside, child.name) if isinstance(child, Scope) else inside
            yield from _code(child, within)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _sends_signals(node)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    return isinstance(node, ast.Call) and _sends_signals(node)


def _sends_signals(node: ast.AST) -> bool:
    """Whether a fault could end a process that is none of the test's."""
    return any(
        isinstance(each, ast.Attribute) and each.attr in ("kill", "killpg", "prctl")
        for each in ast.walk(node)
    )
