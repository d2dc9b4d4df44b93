"""ARC datasets, against the oracle; the same bytes however they are built."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, counts_of
from gristmill.hashing import sha256_file
from gristmill.puzzles.builders.arc import ArcSummary, build_arc
from gristmill.puzzles.config import ArcConfig
from gristmill.puzzles.format.dataset import read_sources
from gristmill.puzzles.laws.arc import arc_laws
from gristmill.puzzles.laws.contract import contract_laws
from gristmill.puzzles.raw.arc_tasks import read_tasks
from gristmill.puzzles.read.examples import trace
from gristmill.run.progress import Progress, Report
from tests.paths import REAL_DATA
from tests.puzzles import arc_oracle, arc_tasks
from tests.puzzles.raw.test_arc_tasks import write

FIELDS = ("inputs", "labels", "puzzle_identifiers", "puzzle_indices", "group_indices")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return arc_tasks.source(tmp_path_factory.mktemp("drops") / "arc")


def config(num_aug: int = 12, **options: Any) -> ArcConfig:
    return ArcConfig(**({"num_aug": num_aug, "dtype": "uint8", "seed": 3} | options))


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def arrays(out: Path, split: str) -> dict[str, np.ndarray]:
    return {field: np.load(out / split / f"all__{field}.npy") for field in FIELDS}


@pytest.mark.parametrize("num_aug", [0, 12])
def test_a_dataset_is_that_of_the_oracle(tmp_path, source, num_aug):
    summary = build_arc(source, tmp_path / "out", config(num_aug))
    expected = arc_oracle.built([source], 3, num_aug)
    identifiers = json.loads((tmp_path / "out" / "identifiers.json").read_text())
    listed = [name for groups in expected.values() for group in groups for name, _ in group]
    assert identifiers == ["<blank>", *dict.fromkeys(listed)]
    for split, groups in expected.items():
        puzzles = [puzzle for group in groups for puzzle in group]
        examples = [example for _, held in puzzles for example in held]
        found = arrays(tmp_path / "out", split)
        assert found["inputs"].dtype == np.uint8
        assert found["inputs"].tolist() == [example[0] for example in examples]
        assert found["labels"].tolist() == [example[1] for example in examples]
        assert [identifiers[k] for k in found["puzzle_identifiers"]] == [
            name for name, _ in puzzles
        ]
        assert np.diff(found["puzzle_indices"]).tolist() == [len(held) for _, held in puzzles]
        assert np.diff(found["group_indices"]).tolist() == [len(group) for group in groups]
        origins = np.load(tmp_path / "out" / "trace" / split / "all.npy")
        assert origins[:, 1:].tolist() == [[pair, number] for _, _, number, pair in examples]
    assert summary.tasks == 5 and summary.groups == {"train": 5, "test": 3}
    assert summary.known_leaks == summary.leaks_dropped == summary.files_dropped == 0


def test_the_progress_counts_the_files_of_all_sources(tmp_path, source):
    other = arc_tasks.write(tmp_path / "other", {"training/x": arc_tasks.task(9)})
    reports: list[Report] = []
    build_arc([source, other], tmp_path / "out", config(1), None, Progress(reports.append))
    assert [report.done for report in reports if report.stage == "read"][-1] == 6


def test_draws_that_repeat_are_counted(tmp_path, source):
    summary = build_arc(source, tmp_path / "out", config(100))
    groups = np.diff(np.load(tmp_path / "out" / "train" / "all__group_indices.npy"))
    origins = np.load(tmp_path / "out" / "trace" / "train" / "all.npy")
    removed = 0
    for number, size in enumerate(groups):
        draws = origins[origins[:, 0] == number, 2]
        tries = draws.max() if size == 101 else 500
        removed += tries - (size - 1)
    assert summary.duplicates_removed == removed > 400
    # One colour has nine others, and the grid four frames that differ.
    assert groups.tolist().count(36) == 1
    assert summary.not_full == np.count_nonzero(groups < 101) == 1


def test_a_task_is_augmented_alike_whatever_is_built_beside_it(tmp_path, source):
    alone = arc_tasks.write(
        tmp_path / "alone",
        {"evaluation/bb": json.loads((source / "evaluation" / "bb.json").read_text())},
    )
    build_arc(alone, tmp_path / "one", config(6))
    build_arc(source, tmp_path / "two", config(6))
    origins = np.load(tmp_path / "two" / "trace" / "train" / "all.npy")
    held = arrays(tmp_path / "two", "train")["inputs"][origins[:, 0] == 1]
    np.testing.assert_array_equal(arrays(tmp_path / "one", "train")["inputs"], held)
    build_arc(source, tmp_path / "other", config(6, seed=4))
    assert not np.array_equal(arrays(tmp_path / "other", "train")["inputs"][: len(held)], held)


def built(tmp_path: Path, *sources: dict[str, Any], **options: Any) -> ArcSummary:
    folders = [
        arc_tasks.write(tmp_path / f"source{number}", tasks) for number, tasks in enumerate(sources)
    ]
    return build_arc(folders, tmp_path / "out", config(2, **options))


def test_an_evaluation_task_of_a_source_that_trains_it_and_a_repeated_id_are_refused(tmp_path):
    mixed = {f"training/m{k:02d}": arc_tasks.task(k) for k in range(12)}
    other = {f"evaluation/m{k:02d}": arc_tasks.task(30 + k) for k in range(12)}
    with pytest.raises(BadInput, match=r"both roles: 12 \(m00, m01, .*m09, ") as refused:
        built(tmp_path, mixed, other)
    assert "m10" not in str(refused.value) and 'leaks = "drop"' in str(refused.value)
    assert not (tmp_path / "out").exists()
    for number, advice in ((2, "and other pairs: rename one of them"), (1, "or set leaks")):
        second = {**arc_tasks.task(number), "name": "a"}
        with pytest.raises(BadInput, match=rf"b\.json: has the id a of .*/a\.json.*{advice}"):
            built(tmp_path, {"training/a": arc_tasks.task(1), "training/b": second})


def _turned(pair: dict[str, Any]) -> dict[str, Any]:
    table = np.array([0, 3, 1, 2, 4, 9, 8, 7, 6, 5])
    return {key: np.rot90(table[np.array(grid)]).tolist() for key, grid in pair.items()}


def _with_own_repeat() -> dict[str, Any]:
    """Task b's second test pair is its first demonstration, beside one that is not."""
    task = arc_tasks.task(2, train=2, test=2)
    task["test"][1] = task["train"][0]
    return {"training/a": arc_tasks.task(1), "evaluation/b": task}


@pytest.mark.parametrize("key", [None, "input", "output"])
def test_a_test_pair_that_is_a_demonstration_of_its_task_is_refused(tmp_path, key):
    tasks = _with_own_repeat()
    if key:  # one of the two grids differs: no repeat
        changed = [[cell ^ 1 for cell in line] for line in tasks["evaluation/b"]["test"][1][key]]
        tasks["evaluation/b"]["test"][1] = {**tasks["evaluation/b"]["test"][1], key: changed}
        assert built(tmp_path, tasks).leaks_dropped == 0
        return
    with pytest.raises(BadInput, match="its own task has for training, cell by cell") as refused:
        built(tmp_path, tasks)
    assert "1 such pairs in all: b pair 3 = b pair 0 " in str(refused.value)
    assert refused.value.file.endswith("evaluation/b.json")


def test_a_repeat_of_a_task_or_of_a_pair_is_no_leak(tmp_path):
    tasks = _with_own_repeat()
    tasks = {"training/b": tasks["evaluation/b"], "evaluation/a": tasks["training/a"]}
    assert built(tmp_path, tasks).examples == {"train": 12 + 6, "test": 3}
    (tmp_path := tmp_path / "next").mkdir()
    # A demonstration in other colours, or turned, does not show the test pair.
    first, second = arc_tasks.task(1), arc_tasks.task(2)
    first["test"] = [_turned(first["train"][0])]
    second["test"] = [*arc_tasks.task(3)["test"], *first["test"]]
    third = arc_tasks.task(4)
    third["test"] = arc_tasks.task(3)["test"]
    with pytest.raises(BadInput, match="b pair 3 = a pair 0 "):
        built(tmp_path, {"evaluation/a": first, "evaluation/b": second})
    second["test"].pop()
    summary = built(
        tmp_path, {"evaluation/a": first, "evaluation/b": second, "evaluation/c": third}
    )
    assert summary.groups["test"] == 3


def test_the_trace_says_what_was_left_out_of_a_task(tmp_path):
    (tasks,) = _leak_of("demonstration of a training task")[0]
    built(tmp_path, tasks, leaks="drop")
    kept = [
        (np.array(pair["input"], np.uint8), np.array(pair["output"], np.uint8))
        for pair in [*tasks["evaluation/b"]["train"], *tasks["evaluation/b"]["test"][:1]]
    ]
    files = read_sources(tmp_path / "out" / "trace" / "sources.json").files
    assert files[1].facts == {"task_hash": arc_oracle.hashed(kept), "left_out": 1}


def test_of_files_with_one_id_the_training_one_stays(tmp_path):
    task = arc_tasks.task(1, test=3)
    summary = built(
        tmp_path,
        {"evaluation/a": task, "evaluation/b": arc_tasks.task(2)},
        {"training/a": task, "evaluation/b": arc_tasks.task(2)},
        leaks="drop",
    )
    assert summary.leaks_dropped == 3 and summary.files_dropped == 2
    files = read_sources(tmp_path / "out" / "trace" / "sources.json").files
    assert [file.path for file in files] == ["source1/training/a.json", "source0/evaluation/b.json"]


@pytest.mark.parametrize(
    ("field", "given", "wrong"),
    [
        ("evaluation", ("evaluation", "evaluation_2"), "evaluation_2"),
        ("subsets", ("trainig", "evaluation"), "trainig"),
    ],
)
def test_a_folder_that_settings_name_and_no_source_has_is_refused(tmp_path, field, given, wrong):
    # Tasks that are meant for the test split would be for training, or be left out.
    names = ("training/a", "evaluation2/b", "evaluation/d")
    tasks = {name: arc_tasks.task(number) for number, name in enumerate(names)}
    rule = f"no source has tasks in a folder or subset `{wrong}`, which {field} names; there are"
    other = {"evaluation/c": arc_tasks.task(3)}
    with pytest.raises(BadInput, match=rule):
        built(tmp_path, tasks, other, **{field: given})
    summary = built(tmp_path, tasks, other, subsets=("training", "evaluation"))
    assert summary.training_tasks == {"source0": 1, "source1": 0}


def test_sources_without_an_evaluation_task_are_refused_and_the_counts_name_them(tmp_path):
    with pytest.raises(BadInput, match="in a folder or subset `evaluation`") as refused:
        built(tmp_path, {"training/a": arc_tasks.task(1)}, {"Count/b": arc_tasks.task(2)})
    assert refused.value.file.endswith("source0")
    assert not (tmp_path / "out").exists()
    (tmp_path := tmp_path / "next").mkdir()
    summary = built(
        tmp_path,
        {"training/a": arc_tasks.task(1), "evaluation/b": arc_tasks.task(2)},
        {"Count/c": arc_tasks.task(3), "Count/d": arc_tasks.task(4)},
        {"evaluation/e": arc_tasks.task(5)},
    )
    assert summary.training_tasks == {"source0": 1, "source1": 2, "source2": 0}
    assert summary.evaluation_tasks == {"source0": 1, "source1": 0, "source2": 1}
    counts = counts_of(summary)
    assert counts["evaluation_tasks/source1"] == counts["training_tasks/source2"] == 0


# Leaks: every kind, refused and dropped


def _leak_of(kind: str) -> tuple[list[dict[str, Any]], str, dict[str, list[int]], int, int]:
    """Sources with one leak of a kind.

    Returns them, what the refusal names, the numbers of the pairs that each task of the test split
    keeps, and how many test pairs and files are dropped.
    """
    test, other = arc_tasks.task(1, train=2, test=2), arc_tasks.task(2, train=2, test=2)
    kept = {"a": [2, 3], "b": [2]}
    leaking = {**other, "test": [arc_tasks.task(3)["test"][0], _turned(test["train"][1])]}
    tested = {**other, "test": [arc_tasks.task(3)["test"][0], _turned(test["test"][0])]}
    if kind == "demonstration of a training task":
        sources = [{"training/a": test, "evaluation/b": leaking}]
        return sources, "1 such pairs in all: b pair 3 = a pair 1 ", {"b": [2]}, 1, 0
    if kind == "demonstration of an evaluation task":
        sources = [{"evaluation/a": test}, {"evaluation/b": leaking}]
        return sources, "b pair 3 = a pair 1 ", kept, 1, 0
    if kind == "test pair of a training task":
        sources = [{"training/a": test}, {"evaluation/b": tested}]
        return sources, "b pair 3 = a pair 2 ", {"b": [2]}, 1, 0
    if kind == "task in a folder of another name":
        return [{"Count/a": test, "evaluation/b": leaking}], "b pair 3 = a", {"b": [2]}, 1, 0
    if kind == "one pair of two training tasks":
        again = {**arc_tasks.task(4), "train": [_turned(test["train"][1])]}
        sources = [{"training/a": test, "training/c": again, "evaluation/b": leaking}]
        return sources, "2 such pairs in all: b pair 3 = a pair 1, b", {"b": [2]}, 1, 0
    if kind == "both test pairs":
        both = {**other, "test": [test["train"][0], test["train"][1]]}
        sources = [{"training/a": test, "evaluation/b": both, "evaluation/c": arc_tasks.task(5)}]
        return sources, "2 such pairs in all", {"c": [2]}, 2, 0
    if kind == "demonstration of its own task":
        own = {**other, "test": [other["train"][1], arc_tasks.task(3)["test"][0]]}
        sources = [{"training/a": test, "evaluation/b": own}]
        return sources, "1 such pairs in all: b pair 2 = b pair 1 ", {"b": [3]}, 1, 0
    if kind == "the id of a training task":
        sources = [{"evaluation/a": test, "evaluation/b": other}, {"training/a": arc_tasks.task(6)}]
        return sources, "both roles: 1 (a)", {"b": [2, 3]}, 2, 1
    assert kind == "the id of a training task, twice"
    sources = [{"evaluation/a": test, "evaluation/b": other}, {"evaluation/a": test}]
    return [*sources, {"training/a": test}], "both roles: 1 (a)", {"b": [2, 3]}, 2, 2


LEAKS = [
    *("demonstration of a training task", "demonstration of an evaluation task"),
    *("test pair of a training task", "task in a folder of another name"),
    *("one pair of two training tasks", "both test pairs", "demonstration of its own task"),
    *("the id of a training task", "the id of a training task, twice"),
]


@pytest.mark.parametrize("kind", LEAKS)
def test_a_leak_of_every_kind_is_refused_or_dropped_and_counted(kind, tmp_path):
    sources, named, kept, pairs, files = _leak_of(kind)
    with pytest.raises(BadInput) as refused:
        built(tmp_path / "refused", *sources)
    assert named in str(refused.value) and 'leaks = "drop"' in str(refused.value)
    assert refused.value.file.endswith(("evaluation/a.json", "evaluation/b.json"))
    for order in (sources, sources[::-1]):
        here = tmp_path / str(order is sources)
        summary = built(here, *order, leaks="drop")
        assert (summary.leaks_dropped, summary.files_dropped) == (pairs, files)
        listed = read_sources(here / "out" / "trace" / "sources.json").files
        origins = np.load(here / "out" / "trace" / "test" / "all.npy")
        found = {
            Path(file.path).stem: sorted(set(origins[origins[:, 0] == number, 1].tolist()))
            for number, file in enumerate(listed)
        }
        assert {base: numbers for base, numbers in found.items() if numbers} == kept
        assert list(arc_laws(here / "out")) == []


SAME = arc_tasks.task(1, train=2, test=2)
DIVIDED = {"train": [*SAME["train"], SAME["test"][0]], "test": SAME["test"][1:]}


@pytest.mark.parametrize(
    ("first", "others", "differs"),
    [
        ("training", [SAME], False),
        ("evaluation", [SAME], False),
        ("training", [DIVIDED], False),  # all of it is for training
        ("evaluation", [DIVIDED], True),
        ("evaluation", [SAME, DIVIDED], True),
        ("evaluation", [{**SAME, "test": SAME["test"][::-1]}], False),
        ("evaluation", [{**SAME, "test": SAME["test"][:1]}], True),
        ("evaluation", [{**SAME, "train": SAME["train"][::-1]}], False),
        ("training", [SAME, arc_tasks.task(2)], True),
    ],
)
@pytest.mark.parametrize("trained", [False, True])
def test_equal_files_of_an_id_are_dropped_and_others_not(first, others, differs, trained, tmp_path):
    sources = [{f"{first}/a": task} for task in (SAME, *others)]
    sources.append({"evaluation/z": arc_tasks.task(9)})
    if trained:  # the one that stays, or one more of the same
        sources.append({"training/a": SAME})
    if differs:
        with pytest.raises(BadInput, match=r"has the id a of .*, and other pairs"):
            built(tmp_path, *sources, leaks="drop")
        return
    with pytest.raises(BadInput, match=r"has the id a of|both roles: 1 \(a\)"):
        built(tmp_path / "refused", *sources)
    summary = built(tmp_path, *sources, leaks="drop")
    assert summary.files_dropped == len(others) + trained
    assert summary.leaks_dropped == (2 if trained and first == "evaluation" else 0)
    assert summary.tasks == 2


def test_a_task_of_100_pairs_is_built_and_traced(tmp_path):
    large = arc_tasks.task(1, train=50, test=50)
    summary = built(tmp_path, {"evaluation/a": large, "training/b": arc_tasks.task(2)})
    assert summary.examples == {"train": 3 * 50 + 3 * 3, "test": 3 * 50}
    origins = np.load(tmp_path / "out" / "trace" / "test" / "all.npy")
    assert origins[:50, 1].tolist() == list(range(50, 100))
    assert list(arc_laws(tmp_path / "out")) == []


CONFIG = ArcConfig(num_aug=3, dtype="uint8")


def tasks() -> dict[str, Any]:
    return {"tr_1": arc_tasks.task(1), "ev_2": arc_tasks.task(2, train=3, test=2)}


def of_kaggle(tmp_path: Path, **settings: Any) -> Path:
    source = write(tmp_path / "kaggle", "training", {"tr_1": tasks()["tr_1"]})
    write(source, "evaluation", {"ev_2": tasks()["ev_2"]})
    build_arc(source, tmp_path / "out", ArcConfig(num_aug=3, dtype="uint8", **settings))
    return tmp_path / "out"


def test_the_arrays_are_links_and_the_names_are_those_of_the_source(tmp_path):
    out = of_kaggle(tmp_path)
    for split in ("train", "test"):
        names = sorted(path.name for path in (out / split).iterdir())
        assert len(names) == 6
        for name in names:
            assert (out / split / name).samefile(out / "trm" / split / name)
    own, other = (json.loads((out / at / "identifiers.json").read_text()) for at in ("", "trm"))
    assert own[0] == other[0] == "<blank>" and "ev-2" in own
    assert [name.replace("ev-2", "ev_2").replace("tr-1", "tr_1") for name in own] == [
        "_".join(name.split("|||")) for name in other
    ]
    assert sum(name.startswith("ev_2|||t") for name in other) == 3


def test_the_tasks_have_the_pairs_of_the_source_and_a_trace_leads_to_them(tmp_path):
    out = of_kaggle(tmp_path)
    found = json.loads((out / "trm/test_puzzles.json").read_text())
    assert found == {"ev_2": tasks()["ev_2"]}
    (tmp_path := tmp_path / "next").mkdir()
    facts = trace(of_kaggle(tmp_path), 0, "test").facts()
    assert facts["task"] == "ev_2" and facts["identifier"] == "1 ev-2"
    assert facts["source"] == "kaggle/arc-agi_evaluation_challenges.json"
    assert facts["sha256"] == sha256_file(tmp_path / str(facts["source"]))


def test_a_test_pair_that_is_left_out_is_no_task_to_score(tmp_path):
    trained, tested = tasks()["tr_1"], tasks()["ev_2"]
    tested["test"][0] = trained["train"][0]
    source = arc_tasks.write(tmp_path / "a", {"training/t": trained, "evaluation/e": tested})
    build_arc(source, tmp_path / "out", ArcConfig(num_aug=1, leaks="drop"))
    found = json.loads((tmp_path / "out/trm/test_puzzles.json").read_text())
    assert found["e"] == {"train": tested["train"], "test": tested["test"][1:]}


def test_copies_take_the_place_of_links_where_there_are_none(tmp_path, monkeypatch):
    def refuses(*_: object) -> None:
        raise OSError(1, "not permitted")

    monkeypatch.setattr("os.link", refuses)
    out = of_kaggle(tmp_path)
    one, other = out / "train/all__inputs.npy", out / "trm/train/all__inputs.npy"
    assert one.read_bytes() == other.read_bytes() and not one.samefile(other)


def test_identifiers_begin_at_the_one_that_is_set_and_the_list_is_filled_with_blanks(tmp_path):
    out = of_kaggle(tmp_path, first_identifier=10, num_puzzle_identifiers=30)
    listed = json.loads((out / "identifiers.json").read_text())
    assert len(listed) == 30 and listed[:10] == ["<blank>"] * 10 and listed[10] == "ev-2"
    assert listed[18:] == ["<blank>"] * 12 and list(contract_laws(out)) == []
    assert json.loads((out / "train/dataset.json").read_text())["num_puzzle_identifiers"] == 30
    with pytest.raises(
        BadInput, match="num_puzzle_identifiers = 17: the last puzzle has the ident"
    ):
        of_kaggle(tmp_path / "again", first_identifier=10, num_puzzle_identifiers=17)


REAL = REAL_DATA / "puzzles"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data at {REAL}"),
]


def of_real(out: Path, num_aug: int, *sources: str, leaks: str = "refuse") -> ArcSummary:
    config = ArcConfig(num_aug=num_aug, dtype="uint8", leaks=leaks)  # type: ignore[arg-type]
    summary = build_arc([REAL / source for source in sources], out, config)
    assert [*contract_laws(out), *arc_laws(out)] == []
    return summary


def mean(out: Path, split: str) -> float:
    return float(json.loads((out / split / "dataset.json").read_text())["mean_puzzle_examples"])


@pytest.mark.slow
def test_arc_1_has_the_groups_and_examples_of_the_original(tmp_path):
    summary = of_real(tmp_path / "out", 0, "arc")
    assert summary.groups == summary.puzzles == {"train": 800, "test": 400}
    assert summary.examples == {"train": 3081, "test": 419}
    assert mean(tmp_path / "out", "train") == 3.85125
    assert mean(tmp_path / "out", "test") == 1.0475
    assert summary.identifiers == 801
    assert summary.leaks_dropped == summary.files_dropped == 0


@pytest.mark.slow
def test_arc_1_with_concept_arc_is_not_refused(tmp_path):
    summary = of_real(tmp_path / "out", 2, "arc", "concept_arc/corpus")
    assert summary.groups == {"train": 960, "test": 400}
    # Two tests of ARC-1 repeat a pair of its training; nothing of ConceptARC does.
    assert summary.known_leaks == 2


@pytest.mark.slow
def test_the_tests_that_arc_1_trains_are_dropped_where_the_config_says_so(tmp_path):
    summary = of_real(tmp_path / "out", 0, "arc", leaks="drop")
    assert summary.leaks_dropped == 2 and summary.known_leaks == 0
    assert summary.examples["test"] == 417


def test_the_files_have_what_the_rules_speak_of():
    tasks = read_tasks(REAL / "arc")
    keys = Counter(tuple(json.loads(task.path.read_text())) for task in tasks)
    assert sum(count for order, count in keys.items() if order[0] == "test") == 81
    assert sum(count for order, count in keys.items() if "name" in order) == 11
    assert sum(task.is_test[0] for task in tasks) == 81


@pytest.mark.slow
def test_a_task_with_few_symmetries_is_not_full(tmp_path):
    summary = of_real(tmp_path / "out", 100, "arc")
    assert 10 < summary.not_full < 30
    listed = json.loads((tmp_path / "out" / "identifiers.json").read_text())
    assert sum(name.startswith("332efdb3_") for name in listed) == 8
    assert summary.augmented > 300_000
