"""A small drop for each inbox, what it is built into, and how its family is made to refuse it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.chess.samples import write_month
from gristmill.reasoning.samples import write_questions
from gristmill.synth.samples import write_drop as write_conversations
from resources import Lake
from tests.assets.puzzles.drops import put_recipe, put_tasks
from tests.commands.drops import land
from tests.reasoning.drops import write
from tests.sample_root import write_talks
from tests.tiny_tokenizer import put_tiny

CONVERTED: Final = "synth_harmony"
"""Folder of a data root with the finished conversion that is the drop of `synth_harmony`."""


@dataclass(frozen=True)
class Case:
    """One inbox with one drop.

    inbox: its name. name: of the entry. key: of the drop.
    asset: the first that is built from it. partition: of that asset.
    put: writes the drop into a data root.
    spoil: changes the drop so that its family refuses it. word: a part of the family's reason.
    """

    inbox: str
    name: str
    key: str
    asset: str
    partition: str
    put: Callable[[Path], object]
    spoil: Callable[[Path], object]
    word: str

    def drop(self, data: Path) -> Path:
        return data / "drops" / self.inbox / self.name

    def mark(self, data: Path, ending: str) -> Path:
        """The path of a mark of the drop: in a folder, or beside a file."""
        drop = self.drop(data)
        names = {"sums": ("SHA256SUMS", ".sha256"), "incomplete": (".incomplete",) * 2}
        inside, beside = names[ending]
        return drop / inside if drop.is_dir() else drop.with_name(drop.name + beside)

    @property
    def shown(self) -> str:
        """The drop as commands name it."""
        return f"{self.inbox}/{self.key}"


def _rewrite(text: str) -> Callable[[Path], object]:
    return lambda drop: drop.write_text(text)


def _remove(pattern: str) -> Callable[[Path], object]:
    """What takes some files of a drop away, and leaves a note in it."""

    def remove(drop: Path) -> None:
        for path in drop.rglob(pattern):
            path.unlink()
        (drop / "note.md").write_text("moved to the archive")

    return remove


def _put_packs(data: Path) -> None:
    for number, key in enumerate(("one", "two")):
        land(data, key, seed=number)


def _put_pool(data: Path) -> None:
    path = data / "drops/pools/both.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('members = ["one", "two"]\n')


def _put_conversations(data: Path) -> None:
    write_conversations(data / "drops/synth/first", files=4, rows=3, done=False)
    (data / "drops/synth/first/gristmill.toml").write_text("[synth.raw]\nfiles = 4\n")


def _put_conversion(data: Path) -> None:
    shutil.copytree(data.parent / CONVERTED, data / "drops/synth_harmony/ready")


def _put_month(data: Path) -> None:
    path = data / "drops/chess/games_2024-01.pgn"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_month(path, "2024-01", 5, 3)


def _put_questions(data: Path) -> None:
    rows = [{"question": f"{n} and {n}?", "answer": f"Add.\n#### {2 * n}"} for n in range(3)]
    write(data / "drops/reasoning/gsm8k", "train.jsonl", rows)


def _put_tasks(data: Path) -> None:
    put_tasks(Lake(data_root=str(data)), "arc-sample")  # the source of a built-in recipe


def _put_domino(data: Path) -> None:
    put_recipe(Lake(data_root=str(data)), "dots", "domino", num_games=5)


def _name_two_splits(drop: Path) -> None:
    (drop / "train.jsonl").rename(drop / "train_test.jsonl")


PACK: Final = Case(
    "macroxue", "one", "one", "macroxue/pack", "one",
    _put_packs, _remove("*.gz"), "no game in it",
)  # fmt: skip
POOL: Final = Case(
    "pools", "both.toml", "both", "macroxue/pool", "both",
    _put_pool, _rewrite("members = 3\n"), "`members` must be a list",
)  # fmt: skip
SYNTH: Final = Case(
    "synth", "first", "first", "synth/harmony", "00",
    _put_conversations, _remove("synth_004.parquet"), "3 Parquet files of 4",
)  # fmt: skip
READY_SYNTH: Final = Case(
    "synth_harmony", "ready", "ready", "synth/harmony", "00",
    _put_conversion, _remove("*_03.parquet"), "there is no synth_harmony_shard_03.parquet",
)  # fmt: skip
MONTH: Final = Case(
    "chess", "games_2024-01.pgn", "2024-01", "chess/elite_pgn", "2024-01",
    _put_month, _rewrite("no games\n"), "does not hold PGN text",
)  # fmt: skip
QUESTIONS: Final = Case(
    "reasoning", "gsm8k", "gsm8k", "reasoning/normalized", "gsm8k__train",
    _put_questions, _name_two_splits, "names the splits train and test",
)  # fmt: skip
TALKS: Final = Case(
    "chat", "talks", "talks", "chat/conversations", "talks__00",
    write_talks, _remove("corpus.toml"), "has no corpus.toml",
)  # fmt: skip
TASKS: Final = Case(
    "puzzles", "arc-sample", "arc-sample", "puzzles/arc", "arc-sample",
    _put_tasks, _remove("*.json"), "holds no ARC task",
)  # fmt: skip
DOMINO: Final = Case(
    "puzzles/recipes", "dots.toml", "dots", "puzzles/domino", "dots",
    _put_domino, _rewrite('kind = "tarot"\n'), "tarot",
)  # fmt: skip
TOKENIZER: Final = Case(
    "tokenizers", "tiny", "tiny", "tokenizers/placed", "tiny",
    put_tiny, _remove("*.toml"), "tokenizer.toml: is missing",
)  # fmt: skip
EVALUATION: Final = Case(
    "evals", "mine", "mine", "audits/leaks", "mine",
    lambda data: write_questions(data / "drops/evals/mine"), _remove("*.jsonl"),
    "holds no questions",
)  # fmt: skip
CASES: Final = (
    *(PACK, POOL, SYNTH, READY_SYNTH, MONTH, QUESTIONS, TALKS, TASKS, DOMINO, TOKENIZER),
    EVALUATION,
)
