"""A small dataset of each kind of puzzle, built from its sample as its built-in recipe says."""

from importlib import import_module
from pathlib import Path
from typing import Any

from gristmill.puzzles.config import BUILT_IN, CONFIGS, DOMINO
from gristmill.puzzles.raw import samples
from gristmill.run.parts import PartStore


def config_of(kind: str, **settings: Any) -> Any:
    """The config of the built-in recipe of a kind's sample. settings: beside the recipe's."""
    return CONFIGS[kind](**{**BUILT_IN[f"{kind}-sample"].settings, **settings})


def built(kind: str, folder: Path, parts: PartStore | None = None, **settings: Any) -> Path:
    """The dataset, `folder/out`, of a drop in `folder/drop`. settings: as of `config_of`."""
    config = config_of(kind, **settings)
    build = getattr(import_module(f"gristmill.puzzles.builders.{kind}"), f"build_{kind}")
    out, drop = folder / "out", folder / "drop"
    folder.mkdir(exist_ok=True)
    if kind == DOMINO:
        build(out, config, parts=parts)
    else:
        getattr(samples, f"write_{kind}_sample")(drop)
        build(drop, out, config, parts=parts)
    return out
