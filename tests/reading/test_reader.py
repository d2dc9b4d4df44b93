"""Every reader of every family: one generation, plain data loaders, three levels."""

import ast
import io
import json
import os
import pickle
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.contract import BadInput, GristmillError
from gristmill.families import FAMILIES
from gristmill.layout import WORK
from gristmill.mirror import push
from gristmill.mirror.store import MirrorError
from gristmill.mirror.transfers import CACHE
from gristmill.reading import StaleDataset, Verify, reader
from gristmill.reading.reader import (
    Ranges,
    array_fact,
    file_facts,
    lines_from,
    located,
    refuse_other_stream,
    stream_of,
)
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
    reader.publish(tmp_path / "data", 0)
    return tmp_path / "data"


def test_every_reader_is_registered():
    found = set()
    for file in (CHECKOUT / "gristmill").glob("*/read/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            bases = [ast.unparse(base) for base in node.bases]
            methods = {getattr(item, "name", "") for item in node.body}
            passes = "__iter__" in methods and any("Reader" in base for base in bases)
            # A line of a trace gives its values by key.
            if ("__getitem__" in methods or passes) and not {"Protocol", "Origin"} & {*bases}:
                place = file.relative_to(CHECKOUT / "gristmill").with_suffix("").as_posix()
                found.add(f"{place}:{node.name}")
    assert found == {place for _, _, place in READERS.values()}
    assert {place.split("/")[0] for place in found} >= set(FAMILIES)


@pytest.mark.parametrize("reader", BY_NUMBER, indirect=True)
def test_a_plain_data_loader_delivers_every_sample_once(reader, root):
    dataset = reader.open(root, "sizes")
    expected = all_samples(dataset)
    loader = torch_data.DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2)
    found = [sample for batch in loader for sample in samples_in(batch)]
    assert Counter(found) == expected
    assert len(found) == len(dataset) > 64
    assert samples_of(dataset, [5, 3]) == [samples_of(dataset, [i])[0] for i in (5, 3)]


@pytest.mark.parametrize("reader", BY_NUMBER, indirect=True)
def test_numbers_ask_for_the_same_samples_in_every_reader(reader, root):
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
        for batch in (found := dataset.__getitems__(listed), pickle.loads(pickle.dumps(found))):
            assert samples_in(torch_data.default_collate(batch)) == expected
    assert len(dataset.__getitems__([])) == 0
    for wrong in no_numbers:
        with pytest.raises(TypeError, match="numbers are"):
            dataset.__getitems__(wrong)
    for outside in (count, -count - 1, 2**70):
        with pytest.raises(IndexError, match=f"^no [a-z]+ {outside}: there are {count}$"):
            dataset.__getitems__([0, outside])


@pytest.mark.slow
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("reader", WITH_WORKERS, indirect=True)
def test_a_rebuild_under_running_workers_never_mixes(reader, root, context):
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
def test_a_rebuild_before_the_first_batch_never_mixes(reader, root, context):
    dataset = reader.open(root, "sizes")
    expected = set(samples := all_samples(dataset))
    loader = loader_of(dataset, 16, num_workers=2, multiprocessing_context=context)
    reader.publish(root, 1)
    found, stale = read_until_stale(loader)
    assert set(found) <= expected
    assert (stale, len(found)) == ((True, 0) if context == "spawn" else (False, samples.total()))


def test_a_rebuild_of_each_artifact_is_seen_after_a_pickle(reader, root):
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


def test_a_rebuild_with_an_equal_payload_is_read_on(reader, root):
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


def test_a_pickle_of_a_relative_path_is_read_elsewhere(reader, root, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(root.parent)
    dataset = reader.open(Path(root.name), "sizes")
    kept = pickle.dumps(dataset)
    expected = all_samples(dataset)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert all_samples(pickle.loads(kept)) == expected


def _records(root: Path) -> list[Path]:
    """The provenance records of what is published in a data root."""
    found = [*root.rglob("provenance.json"), *root.rglob("provenance/*.json")]
    return [path for path in found if WORK not in path.parts]


def test_files_without_a_record_are_one_generation_too(reader, root):
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


def test_a_file_that_is_cut_short_is_refused_at_every_level(reader, root):
    for name in reader.used:
        file = root / name
        octets = file.read_bytes()
        file.write_bytes(octets[:-1])
        for level in LEVELS:
            with pytest.raises(GristmillError, match=str(root)):
                all_samples(reader.open(root, level))
        file.write_bytes(octets)
    assert all_samples(reader.open(root, "hash"))


def test_one_flipped_bit_of_any_file_is_refused_by_its_hash(reader, root):
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
def test_random_damage_ends_in_errors_of_gristmill(reader, root, seed):
    chance = random.Random(seed)
    expected = all_samples(reader.open(root, "hash"))
    for file in [*(root / name for name in reader.used), *_records(root)]:
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
def test_other_values_in_json_end_in_errors_of_gristmill(reader, root, seed):
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


def test_values_of_another_version_of_the_pack_are_refused(reader_of, tmp_path):
    reader = reader_of("StepDataset")
    reader.publish(tmp_path, 0)
    publish_part(tmp_path, reader.parts, 0, 1)
    with pytest.raises(BadInput, match=r"values/p: was built from another version of .*packs/p"):
        reader.open(tmp_path, "none")
    publish_part(tmp_path, reader.parts, 1, 1)
    assert len(reader.open(tmp_path, "hash"))


@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_the_range_of_a_column_is_that_of_all_rows_of_all_arrays(batch_bytes, monkeypatch):
    monkeypatch.setattr(reader, "_BATCH_BYTES", batch_bytes)
    rows = np.zeros(4, [("run", "<u4"), ("ev", "<f4", (2,))])
    rows["run"] = [7, 3, 4, 2_000]
    rows["ev"][2] = [-0.25, 1 / 3]
    ranges = Ranges()
    ranges.add(rows)
    rows["run"], rows["ev"] = 5, 1e9
    ranges.add(rows[:1])
    assert list(ranges.lines()) == ["run: uint32, 3 to 2,000", "ev: float32, -0.25 to 1e+09"]


def test_an_array_has_its_type_and_range_and_an_address_is_no_path():
    tokens = np.arange(2_400, dtype=np.uint16).reshape(1_200, 2)
    assert array_fact("inputs.npy", tokens) == "inputs.npy: uint16 [1,200, 2], 0 to 2,399"
    assert array_fact("empty.npy", tokens[:0]) == "empty.npy: uint16 [0, 2]"
    for text in ("mirror://a/b", "mirror+s3://b/p!a"):
        with pytest.raises(BadInput, match="give it as text"):
            located(Path(text))
    assert located("/a/b") == located(Path("/a/b")) == Path("/a/b")


def test_text_files_have_lines_and_bytes_and_a_missing_one_has_no_line(tmp_path):
    (tmp_path / "one").write_text("a\n")
    (tmp_path / "many").write_text("a\n" * 2_000 + "b")
    (tmp_path / "folder").mkdir()
    assert list(file_facts(tmp_path, ["one", "gone", "folder", "many"])) == [
        "one: 1 line, 2 bytes",
        "many: 2,000 lines, 4,001 bytes",
    ]


@dataclass(frozen=True)
class Addresses:
    """Gives addresses where a data root gives paths: `addresses / PATH`."""

    mirror: str
    reader: Reader

    def __truediv__(self, path: str) -> str:
        artifacts = [part.artifact for part in self.reader.parts]
        outer = [name for name in artifacts if path.startswith(f"{name}/")]
        inside = (
            f"{outer[0]}//{path[len(outer[0]) + 1 :]}" if path not in artifacts and outer else path
        )
        return f"mirror+{self.mirror}!{inside}"


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which the environment names."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def _pushed(reader: Reader, folder: Path, version: int = 0) -> tuple[Path, Any]:
    reader.publish(folder / "data", version)
    done = push(folder / "data", str(folder / "m"))
    assert not any(each.error for each in done)
    return folder / "data", Addresses(str(folder / "m"), reader)


def test_a_mirror_is_read_as_the_data_root(reader, tmp_path):
    root, addresses = _pushed(reader, tmp_path)
    expected = all_samples(reader.open(root, "hash"))
    opened = reader.open(addresses, "hash")
    assert all_samples(opened) == expected and sum(expected.values()) > 0
    # A pickle holds local paths: who loads it needs no mirror, and keeps the version.
    kept = pickle.dumps(opened)
    _pushed(reader, tmp_path, 1)
    shutil.rmtree(tmp_path / "m")
    assert all_samples(pickle.loads(kept)) == expected


def test_a_wrong_byte_in_the_cache_is_refused_by_its_hash(reader_of, tmp_path, kept):
    reader = reader_of("StepDataset")
    _, addresses = _pushed(reader, tmp_path)
    reader.open(addresses, "hash")
    (file,) = kept.rglob("macroxue/packs/p/steps-00001.npy")
    data, found = file.read_bytes(), file.stat()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    with pytest.raises(BadInput, match="does not have the sha256"):
        reader.open(addresses, "hash")
    # A time that is not that of the record has it fetched again.
    os.utime(file)
    reader.open(addresses, "hash")
    assert file.read_bytes() == data


@pytest.mark.slow
def test_spawned_workers_read_the_version_of_their_parent(reader_of, tmp_path):
    reader = reader_of("StepDataset")
    root, addresses = _pushed(reader, tmp_path)
    expected = all_samples(reader.open(root, "sizes"))
    opened = reader.open(addresses, "sizes")
    _pushed(reader, tmp_path, 1)
    loader = loader_of(opened, 7, num_workers=2, multiprocessing_context="spawn")
    found = [sample for batch in loader for sample in samples_in(batch)]
    assert sorted(found) == sorted(expected.elements())


def test_a_relative_path_is_absolute_from_its_opening(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert located("a/b") == located(Path("a/b")) == tmp_path / "a/b"
    # The place of `..` behind a link is not that of its text.
    assert located("a/../b") == tmp_path / "a/../b"


def test_errors_name_the_address(tmp_path, monkeypatch):
    with pytest.raises(MirrorError, match="is no address in a mirror"):
        located("mirror+file:///x")
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MirrorError, match=r"gristmill\[mirror\]"):
        located(f"mirror+{tmp_path}/m!a")


def test_a_server_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr("gristmill.mirror.store._RETRIES", {"max_retries": 0})
    with pytest.raises(MirrorError, match="s3://b/p: artifacts/a"):
        located("mirror+s3://b/p!a")


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40))), st.integers(-1, 31))
def test_the_lines_from_a_key_on_are_those_of_a_scan(made, wanted):
    lines = [json.dumps([key, "x" * size]).encode() + b"\n" for key, size in sorted(made)]
    found = lines_from(io.BytesIO(b"".join(lines)), lambda line: json.loads(line)[0], wanted)
    assert list(found) == [line for line in lines if json.loads(line)[0] >= wanted]


def test_few_lines_of_many_are_read():
    asked = []

    def key(line: bytes) -> int:
        asked.append(line)
        return int(line)

    file = io.BytesIO(b"".join(b"%d\n" % number for number in range(100_000)))
    assert next(lines_from(file, key, 77_777)) == b"77777\n"
    assert len(asked) < 40


def pcg64(*seed: int) -> Any:
    return np.random.Generator(np.random.PCG64(seed))


def philox(seed: int) -> Any:
    return np.random.Generator(np.random.Philox(seed=seed))


class Changed:
    """A generator of a NumPy that shuffles or draws otherwise in one place."""

    def __init__(self, method: str, place: int) -> None:
        self._real, self._method, self._place = pcg64(7, 0, 0), method, place

    def __getattr__(self, name: str) -> Any:
        def draw(*arguments: Any, **keywords: Any) -> Any:
            drawn = getattr(self._real, name)(*arguments, **keywords)
            if name == self._method:
                drawn[self._place] ^= 1
            return drawn

        return draw


def test_digits_are_those_of_the_pinned_numpy_and_states_with_others_are_refused():
    """Where another NumPy draws otherwise, states of this one are refused."""
    assert stream_of(pcg64(7, 0, 0)) == {"stream": "0555ac74", "numpy": np.__version__}
    assert stream_of(philox(7)) == {"stream": "3535c881", "numpy": np.__version__}
    assert len({stream_of(pcg64(seed, 0, 0))["stream"] for seed in range(50)}) == 50
    refuse_other_stream({}, pcg64(7))
    refuse_other_stream({"numpy": "1.0"} | stream_of(pcg64(7)), pcg64(7))
    for wrong in (None, 5, "", "x" * 1000, stream_of(philox(7))["stream"]):
        with pytest.raises(GristmillError, match="another random stream: its digits are"):
            refuse_other_stream({"stream": wrong}, pcg64(7))


@pytest.mark.parametrize(
    ("method", "place"),
    [("permutation", 0), ("permutation", -1), ("integers", 5), ("integers", -1)],
)
def test_a_stream_that_differs_in_any_draw_is_refused_with_the_cure(method, place):
    state = stream_of(pcg64(7, 0, 0))
    refuse_other_stream(state, pcg64(7, 0, 0))
    with pytest.raises(GristmillError) as caught:
        refuse_other_stream(state | {"numpy": "1.0"}, Changed(method, place))
    here = stream_of(Changed(method, place))["stream"]
    assert str(caught.value) == (
        f"the state is of another random stream: its digits are '{state['stream']}', drawn by NumPy"
        f" '1.0'; here NumPy '{np.__version__}' draws '{here}': continue with the NumPy that wrote"
        " it, or begin a new pass"
    )
