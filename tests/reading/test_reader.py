"""Every reader of every family: one generation, plain data loaders, three levels."""

from __future__ import annotations

import ast
import json
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.families import FAMILIES
from gristmill.reading import StaleDataset, Verify
from tests.later import later
from tests.paths import CHECKOUT
from tests.reading.readers import READERS, Reader, publish_part

torch = later("torch")
torch_data = later("torch.utils.data", "torch")


# Megatron warns about the pad token -1, numpy about Megatron, torch about workers.
pytestmark = [pytest.mark.filterwarnings("ignore")]

WITH_WORKERS = [
    name
    if name in ("StepDataset", "GameSpliceDataset", "SynthKDDataset")
    else pytest.param(name, marks=pytest.mark.slow)
    for name in READERS
]
"""Starting workers takes seconds; views of a reader are left to the slow tests."""

BY_NUMBER = [name for name in READERS if name != "PuzzleDataset"]
"""Readers of samples by number; the other gives batches in its own order."""

NO_NUMBERS: dict[str, Any] = {
    "a mask": np.array([False, True, True]),
    "a list of booleans": [True, False],
    "floats": [0.5],
    "texts": ["1"],
    "lists": [[0, 1], [1, 2]],
}
"""Lists by which no reader gives samples."""

CONTEXTS = ["fork", pytest.param("spawn", marks=pytest.mark.slow)]

LEVELS: tuple[Verify, ...] = ("none", "sizes", "hash")


def samples_in(batch: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The samples of a collated batch, without padding."""
    count = len(next(iter(batch.values())))
    found = []
    for i in range(count):
        sample = []
        for name, column in batch.items():
            value = column[i]
            if f"{name}_mask" in batch:
                value = value[batch[f"{name}_mask"][i]]
            if not name.endswith("_mask") or name == "loss_mask":
                sample.append((name, value.numpy().tobytes()))
        found.append(tuple(sample))
    return found


def samples_of(dataset: Any, numbers: Any) -> list[tuple[Any, ...]]:
    """The samples with some numbers, at most four, through a data loader."""
    loader = torch_data.DataLoader(torch_data.Subset(dataset, numbers), batch_size=4)
    return samples_in(next(iter(loader)))


def loader_of(dataset: Any, batch_size: int, **options: Any) -> Iterable[dict[str, Any]]:
    """A data loader of batches; a dataset that makes its batches itself has at most one worker."""
    if not isinstance(dataset, torch_data.IterableDataset):
        return torch_data.DataLoader(dataset, batch_size=batch_size, **options)
    options.pop("shuffle", None)
    options["num_workers"] = min(options.get("num_workers", 0), 1)
    return Batches(torch_data.DataLoader(dataset, batch_size=None, **options))


class Batches:
    """The batches in what the data loader of a PuzzleDataset gives."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (batch for _, batch, _ in self.loader)


def all_samples(dataset: Any) -> Counter[tuple[Any, ...]]:
    return Counter(sample for batch in loader_of(dataset, 32) for sample in samples_in(batch))


def read_until_stale(batches: Iterable[dict[str, Any]]) -> tuple[list[tuple[Any, ...]], bool]:
    """The samples that were delivered, and whether StaleDataset ended them."""
    found: list[tuple[Any, ...]] = []
    try:
        for batch in batches:
            found += samples_in(batch)
    except StaleDataset as error:
        assert "open the dataset again" in str(error)
        return found, True
    return found, False


@pytest.fixture
def root(reader: Reader, tmp_path: Path) -> Path:
    """A data root with the first version of what the reader reads."""
    reader.publish(tmp_path / "data", 0)
    return tmp_path / "data"


def test_every_reader_is_registered() -> None:
    found = set()
    for file in (CHECKOUT / "gristmill").glob("*/read/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            bases = [ast.unparse(base) for base in node.bases]
            methods = {getattr(item, "name", "") for item in node.body}
            passes = "__iter__" in methods and any(base.startswith("Reader[") for base in bases)
            # A line of a trace gives its values by key.
            if ("__getitem__" in methods or passes) and not {"Protocol", "Origin"} & {*bases}:
                place = file.relative_to(CHECKOUT / "gristmill").with_suffix("").as_posix()
                found.add(f"{place}:{node.name}")
    assert found == {place for _, _, place in READERS.values()}
    assert {place.split("/")[0] for place in found} >= set(FAMILIES)


@pytest.mark.parametrize("reader", BY_NUMBER, indirect=True)
def test_a_plain_data_loader_delivers_every_sample_once(reader: Reader, root: Path) -> None:
    dataset = reader.open(root, "sizes")
    expected = all_samples(dataset)
    loader = torch_data.DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2)
    found = [sample for batch in loader for sample in samples_in(batch)]
    assert Counter(found) == expected
    assert len(found) == len(dataset) > 64
    assert samples_of(dataset, [5, 3]) == [samples_of(dataset, [i])[0] for i in (5, 3)]


@pytest.mark.parametrize("reader", BY_NUMBER, indirect=True)
def test_numbers_ask_for_the_same_samples_in_every_reader(reader: Reader, root: Path) -> None:
    dataset = reader.open(root, "sizes")
    of = partial(samples_of, dataset)
    no_numbers = [torch.tensor([False, True]), *NO_NUMBERS.values()]
    count = len(dataset)
    expected = of([1, count - 1])
    assert expected[0] != expected[1]
    for numbers in ([np.uint8(1), -1], [np.int64(1), np.int64(-1)], torch.tensor([1, -1])):
        assert of(numbers) == expected
    assert of([-count]) == of([0])
    for wrong in (True, np.True_, 1.7, 1.0, "1", slice(0, 2), *no_numbers):
        with pytest.raises(TypeError, match="numbers are"):
            dataset[wrong]
    for outside in (count, -count - 1, 2**70, np.uint64(2**64 - 1)):
        with pytest.raises(IndexError, match=f"^no [a-z]+ {outside}: there are {count}$"):
            dataset[outside]
    if not hasattr(dataset, "__getitems__"):
        assert type(dataset).__name__ == "SynthKDDataset"
        return
    for listed in (np.array([1, -1], np.int8), (np.uint8(1), -1), torch.tensor([1, -1])):
        assert samples_in(torch_data.default_collate(dataset.__getitems__(listed))) == expected
    assert len(dataset.__getitems__([])) == 0
    for wrong in no_numbers:
        with pytest.raises(TypeError, match="numbers are"):
            dataset.__getitems__(wrong)
    for outside in (count, -count - 1, 2**70):
        with pytest.raises(IndexError, match=f"^no [a-z]+ {outside}: there are {count}$"):
            dataset.__getitems__([0, outside])


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("reader", WITH_WORKERS, indirect=True)
def test_a_rebuild_under_running_workers_never_mixes(
    reader: Reader, root: Path, context: str
) -> None:
    dataset = reader.open(root, "sizes")
    expected = set(samples := all_samples(dataset))
    count = samples.total()
    loader = loader_of(
        dataset,
        4,
        shuffle=True,
        num_workers=2,
        multiprocessing_context=context,
        persistent_workers=True,
    )
    batches = iter(loader)
    first = samples_in(next(batches))
    reader.publish(root, 1)
    rest, stale = read_until_stale(batches)
    again, _ = read_until_stale(loader) if not stale else ([], stale)
    assert set(first + rest + again) <= expected
    assert stale or len(first + rest) == len(again) == count
    assert not set(all_samples(reader.open(root, "sizes"))) <= expected


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("reader", WITH_WORKERS, indirect=True)
def test_a_rebuild_before_the_first_batch_never_mixes(
    reader: Reader, root: Path, context: str
) -> None:
    dataset = reader.open(root, "sizes")
    expected = set(samples := all_samples(dataset))
    loader = loader_of(dataset, 16, num_workers=2, multiprocessing_context=context)
    reader.publish(root, 1)
    found, stale = read_until_stale(loader)
    assert set(found) <= expected
    assert (stale, len(found)) == ((True, 0) if context == "spawn" else (False, samples.total()))


def test_a_rebuild_of_each_artifact_is_seen_after_a_pickle(reader: Reader, root: Path) -> None:
    for number, part in enumerate(reader.parts):
        dataset = reader.open(root, "sizes")
        expected = all_samples(dataset)
        opened, unread = (pickle.loads(pickle.dumps(dataset)) for _ in range(2))
        assert all_samples(opened) == expected
        publish_part(root, reader.parts, number, 1)
        for other in (dataset, opened):
            assert all_samples(other) == expected
        with pytest.raises(StaleDataset) as caught:
            all_samples(unread)
        text = str(caught.value)
        assert str(root / part.artifact) in text
        assert "/proc/" not in text
        for source in reader.parts[number:]:
            publish_part(root, reader.parts, reader.parts.index(source), 1)
        assert text.count("data version") == 2 or "no such folder" in text
        reader.publish(root, 0)


def test_a_rebuild_with_an_equal_payload_is_read_on(reader: Reader, root: Path) -> None:
    dataset = reader.open(root, "hash")
    expected = all_samples(dataset)
    unread = pickle.dumps(dataset)
    before = {record: record.read_bytes() for record in _records(root)}
    reader.publish(root, 1)
    reader.publish(root, 0)
    assert all(record.read_bytes() != before[record] for record in _records(root))
    again = pickle.loads(unread)
    assert all_samples(again) == expected == all_samples(dataset)
    assert all_samples(pickle.loads(pickle.dumps(again))) == expected


def test_a_pickle_of_a_relative_path_is_read_in_another_working_directory(
    reader: Reader, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> None:
    monkeypatch.chdir(root.parent)
    dataset = reader.open(Path(root.name), "sizes")
    kept = pickle.dumps(dataset)
    expected = all_samples(dataset)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert all_samples(pickle.loads(kept)) == expected


def _records(root: Path) -> list[Path]:
    """The provenance records of a data root."""
    return [*root.rglob("provenance.json"), *root.rglob("provenance/*.json")]


def test_files_without_a_record_are_one_generation_too(reader: Reader, root: Path) -> None:
    for record in _records(root):
        record.unlink()
    dataset = reader.open(root, "sizes")
    expected = all_samples(dataset)
    unread = pickle.loads(pickle.dumps(dataset))
    assert all_samples(pickle.loads(pickle.dumps(dataset))) == expected
    with pytest.raises(BadInput, match="has no provenance record"):
        reader.open(root, "hash")
    file = root / reader.used[0]
    octets = file.read_bytes()
    file.unlink()
    file.write_bytes(octets)
    with pytest.raises(StaleDataset, match=f"now .*{file.name} is another file"):
        all_samples(unread)


def test_a_file_that_is_cut_short_is_refused_at_every_level(reader: Reader, root: Path) -> None:
    for name in reader.used:
        file = root / name
        octets = file.read_bytes()
        file.write_bytes(octets[:-1])
        for level in LEVELS:
            with pytest.raises(GristmillError, match=str(root)):
                all_samples(reader.open(root, level))
        file.write_bytes(octets)
    assert all_samples(reader.open(root, "hash"))


def test_one_flipped_bit_of_any_file_is_refused_by_its_hash(reader: Reader, root: Path) -> None:
    for name in reader.used:
        file = root / name
        octets = file.read_bytes()
        at = len(octets) // 2
        file.write_bytes(octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1 :])
        with pytest.raises(GristmillError, match=str(root)) as caught:
            reader.open(root, "hash")
        assert "/proc/" not in str(caught.value)
        file.write_bytes(octets)
    assert all_samples(reader.open(root, "hash"))


def _flip(octets: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(octets))
    return octets[:at] + bytes([octets[at] ^ 1 << chance.randrange(8)]) + octets[at + 1 :]


def _fill(octets: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(octets))
    filler = chance.choice([b"\0", b"\xff", b"[", b'"', b"9"]) * 8
    return octets[:at] + filler + octets[at + 8 :]


DAMAGES: list[Callable[[bytes, random.Random], bytes | None]] = [
    _flip,
    _flip,
    _fill,
    lambda octets, chance: octets[: chance.randrange(len(octets))],
    lambda octets, chance: octets + chance.randbytes(8),
    lambda octets, chance: chance.randbytes(len(octets)),
    lambda octets, chance: b"",
    lambda octets, chance: None,
]
"""What becomes of a file's bytes; None: it is deleted."""


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_ends_in_errors_of_gristmill(reader: Reader, root: Path, seed: int) -> None:
    chance = random.Random(seed)
    expected = all_samples(reader.open(root, "hash"))
    records = [p for p in root.rglob("*.json") if "provenance" in p.as_posix()]
    records = [path for path in records if ".gristmill" not in path.parts]
    for file in [*(root / name for name in reader.used), *records]:
        octets = file.read_bytes()
        damaged = chance.choice(DAMAGES)(octets, chance)
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        for level in LEVELS:
            try:
                dataset = reader.open(root, level)
                found = all_samples(dataset)
            except GristmillError as error:
                assert "/proc/" not in str(error)
                continue
            if level == "hash":
                assert found == expected, f"{file}: {damaged!r:.100}"
        file.write_bytes(octets)


OTHER_VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 1.5, 10**6, 2**63, 2**70, 1e308),
    *("", "x", "a_1x", "../../x", "a\0b", [], {}, [None], [[]]),
]
"""What values of JSON become."""


def _change(value: Any, depths: int, chance: random.Random, other: Any) -> None:
    """Put another value at a place of a JSON value, or take a key away."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    if not keys:
        return
    key = chance.choice(keys)
    if depths and isinstance(value[key], (dict, list)) and value[key]:
        _change(value[key], depths - 1, chance, other)
    elif isinstance(value, dict) and chance.random() < 0.1:
        del value[key]
    else:
        value[key] = other


def _other_value(octets: bytes, chance: random.Random) -> bytes:
    """A JSON file, or lines of a JSON Lines file, with another value: in one line or in all."""
    lines = octets.splitlines()
    try:
        json.loads(octets)
        lines = [octets]
    except ValueError:
        pass
    numbers = [chance.randrange(len(lines))] if chance.random() < 0.5 else range(len(lines))
    depths, other, seed = chance.randrange(4), chance.choice(OTHER_VALUES), chance.random()
    for number in numbers:
        value = json.loads(lines[number])
        _change(value, depths, random.Random(seed), other)
        lines[number] = json.dumps(value).encode()
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("seed", [0, 3])
def test_other_values_in_json_end_in_errors_of_gristmill(
    reader: Reader, root: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for record in _records(root):
        record.unlink()  # it would refuse a file of another size
    for name in reader.used:
        if not name.endswith((".json", ".jsonl")):
            continue
        file = root / name
        octets = file.read_bytes()
        for _ in range(25):
            damaged = _other_value(octets, chance)
            file.write_bytes(damaged)
            try:
                all_samples(reader.open(root, "none"))
            except GristmillError as error:
                assert str(root) in str(error) and "/proc/" not in str(error)
            except Exception as error:
                error.add_note(f"{name}: {_changed(octets, damaged)}")
                raise
        file.write_bytes(octets)


def _changed(octets: bytes, damaged: bytes) -> str:
    """The lines of a file that were changed."""
    changed = set(damaged.splitlines()) - set(octets.splitlines())
    return b"\n".join(changed).decode()[:2000]


def test_values_of_another_version_of_the_pack_are_refused(
    reader_of: Callable[[str], Reader], tmp_path: Path
) -> None:
    reader = reader_of("StepDataset")
    reader.publish(tmp_path, 0)
    publish_part(tmp_path, reader.parts, 0, 1)
    with pytest.raises(BadInput, match=r"values/p: was built from another version of .*packs/p"):
        reader.open(tmp_path, "none")
    publish_part(tmp_path, reader.parts, 1, 1)
    assert len(reader.open(tmp_path, "hash"))
