"""What a record says of the machine."""

import re
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import numpy

from gristmill import provenance
from gristmill.provenance import Input, Tokenizer, environment
from gristmill.provenance.environment import recorded_values
from gristmill.settings.fields import ADDED_LATER, COUNTED_BEFORE, NO_EFFECT
from tests.paths import ran


def test_versions_and_the_commit_of_the_checkout_are_known():
    found = environment.libraries()
    assert found["numpy"] == numpy.__version__
    assert "gristmill" in found and "no-such-library" not in found
    head = ran(["git", "rev-parse", "HEAD"])
    found = environment.git_sha()
    if head.returncode == 0:
        assert found is not None and re.fullmatch(r"[0-9a-f]{40}(-dirty)?", found)
        assert found.startswith(head.stdout.strip())
    else:
        assert found is None


def test_peak_memory_counts_from_the_reset_and_sees_children():
    code = (
        "import subprocess, sys; from gristmill.provenance import environment as e\n"
        "big = bytearray(200 << 20); del big; high = e.peak_memory_bytes()\n"
        "e.reset_peak_memory(); low = e.peak_memory_bytes()\n"
        "subprocess.run([sys.executable, '-c', 'x = bytearray(b\"1\") * (300 << 20)'])\n"
        "print(high >> 20, low >> 20, e.peak_memory_bytes() >> 20)"
    )
    done = ran([sys.executable, "-c", code], check=True)
    high, low, with_child = map(int, done.stdout.split())
    assert low < 100 < 200 <= high < 300 <= with_child


SHA = "ab" * 32


@dataclass(frozen=True)
class Config:
    seed: int = 1
    names: frozenset[str] = frozenset({"a", "b", "c", "d", "e"})
    place: Path = Path("a/b")
    day: date = date(2026, 1, 2)
    workers: Annotated[int, NO_EFFECT] = 1


BASE = [
    Input(asset="a", partition="p", data_version="v1", path="x"),
    Input(path="drops/b", bytes=1, sha256=SHA, mtime_ns=5),
]


def _recipe(
    code: str = "1", config: Config | None = None, inputs: list[Input] = BASE, vocab: str = SHA
) -> str:
    tokenizer = Tokenizer(name="gpt2", path="anywhere", sha256=vocab)
    return provenance.recipe(code, config or Config(), inputs, tokenizer)


def test_what_the_recipe_leaves_out():
    moved = [BASE[0].model_copy(update={"path": "elsewhere"}), BASE[1]]
    touched = [BASE[0], BASE[1].model_copy(update={"mtime_ns": 6})]
    assert _recipe(config=Config(workers=8)) == _recipe()
    assert _recipe(inputs=touched) == _recipe()
    assert _recipe(inputs=moved) == _recipe()
    assert _recipe(inputs=BASE[::-1]) == _recipe()


def test_a_field_that_was_added_later_leaves_the_recipe_alone_at_its_default():
    @dataclass(frozen=True)
    class Later(Config):
        keys: Annotated[str, ADDED_LATER] = "count"

    assert _recipe(config=Later()) == _recipe()
    assert _recipe(config=Later(keys="refuse")) != _recipe()


def test_what_changes_the_recipe():
    def with_input(place: int, **change: str) -> list[Input]:
        inputs = list(BASE)
        inputs[place] = inputs[place].model_copy(update=change)
        return inputs

    found = [
        _recipe(),
        _recipe(code="2"),
        _recipe(config=Config(seed=2)),
        _recipe(config=Config(names=frozenset())),
        _recipe(config=Config(place=Path("c"))),
        _recipe(config=Config(day=date(2026, 1, 3))),
        _recipe(vocab="cd" * 32),
        _recipe(inputs=BASE[:1]),
        _recipe(inputs=BASE + BASE[:1]),
        _recipe(inputs=with_input(0, data_version="v2")),
        _recipe(inputs=with_input(0, partition="q")),
        _recipe(inputs=with_input(0, asset="b")),
        _recipe(inputs=with_input(1, sha256="cd" * 32)),
        _recipe(inputs=with_input(1, path="drops/c")),
        provenance.recipe("1", Config(), BASE),
    ]
    assert len(set(found)) == len(found)


def test_the_recipe_is_the_same_in_every_process_and_changes_with_what_counts():
    """Sets have another order in every process; their text would have, too."""
    code = "from tests.provenance.test_environment import _recipe; print(_recipe())"
    for seed in ("1", "2", "3"):
        done = ran([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True)
        assert done.stdout.strip() == _recipe()
    fingerprints = {
        provenance.fingerprint("r", "c", {"numpy": "1"}),
        provenance.fingerprint("s", "c", {"numpy": "1"}),
        provenance.fingerprint("r", "d", {"numpy": "1"}),
        provenance.fingerprint("r", "c", {"numpy": "2"}),
        provenance.fingerprint("r", "c", {}),
    }
    assert len(fingerprints) == 5


def test_a_record_stands_for_numbers_in_another_spelling_and_fields_that_once_counted():
    @dataclass(frozen=True)
    class Mill:
        share: float = 1.0
        stones: int = 2
        is_wet: bool = True
        gone: Annotated[int, NO_EFFECT, COUNTED_BEFORE] = 5
        speed: Annotated[int, NO_EFFECT] = 9

    recorded = {"share": 1, "stones": 2, "is_wet": 1, "gone": 4, "speed": 9.0, "unknown": 3}
    assert recorded_values(Mill(), recorded) == {"share": 1, "gone": 4}
    assert recorded_values(Mill(), {"share": 2, "stones": 2.0}) == {"stones": 2.0}
    assert recorded_values(Mill(), {"share": 1.0, "stones": 3.0}) == {}
