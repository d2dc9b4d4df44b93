"""Small drops and recipe files of puzzles, for tests."""

import json
from collections.abc import Sequence
from pathlib import Path

from resources import Lake


def put_tasks(lake: Lake, source: str, number: int = 1) -> Path:
    folder = lake.inbox("puzzles") / source
    for name, split in [*((f"t{n}", "training") for n in range(number)), ("e", "evaluation")]:
        cell = len(name) + len(split) + sum(map(ord, name)) % 5
        pairs = [{"input": [[cell % 10, 1]], "output": [[n, cell % 10]]} for n in range(3)]
        path = folder / split / f"{source.replace('/', '-').replace('_', '-')}{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"train": pairs[:2], "test": pairs[2:]}))
    return folder


def put_recipe(
    lake: Lake, name: str, kind: str, sources: Sequence[str] = (), **settings: object
) -> Path:
    path = lake.inbox("puzzles/recipes") / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'kind = "{kind}"', *([f"sources = {json.dumps(list(sources))}"] if sources else [])]
    lines += ["[settings]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
    path.write_text("\n".join(lines) + "\n")
    return path
