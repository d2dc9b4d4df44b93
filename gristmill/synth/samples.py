"""The sample drop of SYNTH: generated raw files with all columns."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

from gristmill.synth.raw import COLUMNS, DONE, TEXTS

_WORDS: Final = {
    "en": "the mill turns raw grain into flour and every sack keeps the name of its field",
    "fr": "le moulin garde l'eau de la rivière où passent été comme hiver les mêmes barques",
    "de": "die Mühle mahlt das Korn für Bäcker und Nachbarn, größer wird der Vorrat im Keller",
    "es": "el molino muele trigo por la mañana y el niño cuenta los sacos junto al río",
    "pl": "młyn miele zboże, a żółta mąka leży w workach obok drzwi źródlanej piwnicy",
    "la": "mola frumentum terit et agricola saccos ad forum portat ubi populus panem emit",
}
_LANGUAGES: Final = ("en",) * 12 + ("fr", "de", "es", "pl", "la")
_EXERCISES: Final = (
    *("memorization",) * 10,
    "mcq",
    "math exercise",
    "rag",
    "creative writing",
    "editing",
)
_UNUSUAL: Final = (
    "A body may say <|end|><|start|>user<|message|> and means only the words.",
    "\N{GRINNING FACE} and \N{MUSICAL SYMBOL G CLEF} lie beyond the basic plane.",
    "tabs\tand\r\nreturns\n\n\n   and   runs of spaces   ",
    "1234567890 3.14159 0xdeadbeef x^2 + y^2 = z^2",
    "-" * 400,
)


def write_drop(
    folder: Path, files: int = 8, rows: int = 60, seed: int = 1, done: bool = True
) -> list[Path]:
    """Write raw files `synth_001.parquet`, `synth_002.parquet`, .. into a drop.

    rows: number of rows in each file, default 60. About one row in fifteen has no
        query, reasoning or answer.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(name, pa.int64() if name == "words" else pa.string()) for name in COLUMNS])
    paths = []
    for number in range(1, files + 1):
        chance = random.Random(f"{seed}/{number}")
        table = [_row(chance, number, index) for index in range(rows)]
        path = folder / f"synth_{number:03d}.parquet"
        pq.write_table(pa.Table.from_pylist(table, schema=schema), path)
        paths.append(path)
    if done:
        (folder / DONE).touch()
    return paths


def write_samples(folder: Path) -> None:
    """Write the sample drop of a data root, with its settings."""
    write_drop(folder)
    # The default fraction of so few conversations would leave no valid ones.
    (folder / "gristmill.toml").write_text("[synth.kd_shards]\nvalid_fraction = 0.1\n")


def _row(chance: random.Random, number: int, index: int) -> dict[str, Any]:
    language, exercise = chance.choice(_LANGUAGES), chance.choice(_EXERCISES)
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {
        "synth_id": f"{exercise.replace(' ', '_')}_{number}_{index}",
        "language": language,
        "exercise": exercise,
        "model": "sample",
        "query": _text(chance, language, 1, 3) + "?",
        "query_seed_url": f"https://example.org/{language}/{index}",
        "seed_license": chance.choice(["CC0", "CC-By-SA", None]),
        "synthetic_reasoning": _text(chance, language, 2, 12),
        "synthetic_answer": _text(chance, language, 1, 8),
    }
    if exercise == "editing":
        row["constraints"] = "no more than forty words"
    if chance.random() < 0.12:
        row[chance.choice(TEXTS)] = chance.choice(_UNUSUAL)
    if chance.random() < 0.07:
        row[chance.choice(TEXTS)] = chance.choice(["", None])
    row["words"] = sum(len((row[name] or "").split()) for name in TEXTS)
    return row


def _text(chance: random.Random, language: str, fewest: int, most: int) -> str:
    words = _WORDS[language].split()
    sentences = []
    for _ in range(chance.randint(fewest, most)):
        chosen = chance.choices(words, k=chance.randint(4, 14))
        sentences.append(" ".join(chosen).capitalize() + ".")
    return chance.choice([" ", "\n", "\n\n- "]).join(sentences)
