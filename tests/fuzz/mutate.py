"""Changes inputs by their structure: a value of a JSON document becomes another one.

libFuzzer changes bytes, which rarely gives JSON with a field of another type. Parts of an input
are separated as `parser.split` separates them, and lines are documents of their own.
"""

import json
import random
from typing import Any

_UNUSUAL: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    255,
    256,
    2**31,
    2**32,
    2**53,
    2**63,
    2**64,
    -(2**63) - 1,
    10**30,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    "",
    "x",
    "é",
    "\ud800",
    "\0",
    "../x",
    "/x",
    "2024-01",
    "1e5",
    "a" * 300,
    [],
    {},
    [None],
    [[]],
    {"": None},
    [1, "a"],
    "\u202e",
    "\n",
    "-x",
    "0x1",
]
_DEEP = (200, 900, 1100)


def mutated(data: bytes, seed: int) -> bytes | None:
    """`data` with one JSON document changed; None where none of it is JSON."""
    dice = random.Random(seed)
    parts = data.split(b"\xff\xfe")
    order = list(range(len(parts)))
    dice.shuffle(order)
    for place in order:
        lines = parts[place].split(b"\n")
        for chosen in ([place_of_line(lines, dice)], [None]):
            at = chosen[0]
            text = parts[place] if at is None else lines[at]
            try:
                value = json.loads(text)
                changed = json.dumps(_changed(value, dice), ensure_ascii=dice.random() < 0.5)
            except (ValueError, RecursionError):
                continue
            new = changed.encode("utf-8", "surrogatepass")
            if dice.random() < 0.02:
                depth = dice.choice(_DEEP)
                new = b"[" * depth + new + b"]" * depth
            if at is None:
                parts[place] = new
            else:
                lines[at] = new
                parts[place] = b"\n".join(lines)
            return b"\xff\xfe".join(parts)
    return None


def place_of_line(lines: list[bytes], dice: random.Random) -> int:
    """The number of a line, chosen by chance."""
    return dice.randrange(len(lines))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            found += [(one, key) for key in one]
            todo += one.values()
        elif isinstance(one, list):
            found += [(one, at) for at in range(len(one))]
            todo += one
    return found


def _changed(value: Any, dice: random.Random) -> Any:
    places = _places(value)
    if not places or dice.random() < 0.02:
        return dice.choice(_UNUSUAL)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        container, key = dice.choice(places)
        if (isinstance(container, list) and key >= len(container)) or (
            isinstance(container, dict) and key not in container
        ):
            continue
        kind = dice.randrange(8)
        if kind == 0:
            del container[key]
        elif kind == 1:
            other, name = dice.choice(places)
            if (isinstance(other, dict) and name in other) or (
                isinstance(other, list) and name < len(other)
            ):
                container[key] = json.loads(json.dumps(other[name]))
        elif kind == 2 and isinstance(container, dict):
            container[dice.choice(["", "x", "é", "\ud800", key + "x"])] = container.pop(key)
        elif kind == 3 and isinstance(container, list):
            container.insert(key, dice.choice(_UNUSUAL))
        elif kind == 4 and isinstance(container[key], int):
            container[key] += dice.choice((-1, 1, 7, -(2**32)))
        else:
            container[key] = dice.choice(_UNUSUAL)
    return value
