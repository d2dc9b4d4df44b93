"""Leaks: what is found of planted questions, what is reported wrongly, and at what cost.

Plants are drawn with a seed, 1,000 of each kind: of GSM8K's test, of questions in Chinese that a
grammar makes, and of functions of the standard library. Wrong reports are counted in real text that
has nothing of the set. The rate is that of `gristmill leaks` over files on the disk, from reading
them to what is kept, beside the build of GPT-2 shards of the same text. datatrove's filter by
12-grams, as `pip install datatrove spacy` brings it into an environment of its own, reads the same
plants and files. CPU seconds. Ends with status 1 where a bound is missed.

    python -m bench.leaks [--only recall | wrong | rate | shards] [--documents 100000] [--seed 1]
"""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np

from bench import kit
from gristmill import leaks
from gristmill.leaks.kernels import flat
from gristmill.leaks.method import Index, compiled
from gristmill.leaks.words import seeds_of

_SEEDS = seeds_of(b"bench" * 6)
_PLANTS = 1000
_SHORT = 300
_LEFT_OUT = {"site-packages", "test", "tests", "distutils", "compat", "_inspect.py"}
"""Folders of tests, those of which NumPy has copies, and its copy of a part of `inspect`."""
_CHANGED = "names and numbers changed"
_NAMES = ("Priya", "Old Mr. Okafor", "Wei", "Anne-Marie", "DeShawn", "Lucía")
_TABLES = ("strategyqa", "qasc", "aqua", "ecqa")
_WORDS = (
    "苹果学校老师学生火车城市公园图书水果商店工人农田小时分钟米饭河流桥梁花园汽车飞机船只足球比赛音乐电影医生病人药品房屋窗户桌子椅子电脑手机屏幕键盘价格数量重量长度"
    "速度温度时间天气春天夏天秋天冬天早晨晚上昨天今天明天一共剩下增加减少购买出售运送制造学习教授阅读书写行走跑步游泳开始结束需要可以应该如果因为所以"
)
"""Words of two characters."""
_DATATROVE = """
import json, sys, time, numpy as np, tempfile, pathlib
from importlib.metadata import version
from datatrove.data import Document
from datatrove.pipeline.decont import n_grams as d
sets, texts = (json.load(open(name)) for name in sys.argv[1:3])
folder = pathlib.Path(tempfile.mkdtemp())
indexer = object.__new__(d.NGramsDecontIndexer)  # else it asks for lighteval
indexer.config, indexer.tokenizer = d.NGramsDecontConfig(), d.load_word_tokenizer("eng")
indexer.hash_func = d.create_hash_func(indexer.config.hash_config)
hashes = {each for text in sets for each in indexer.compute_hashes(text)}
np.array(list(hashes), indexer.config.hash_config.np_descr).tofile(folder / "set.index.hashes")
filter = d.NGramsDecontFilter(str(folder))
filter.filter(Document("warm up", "0"))
begun = time.process_time()
found = [filter.filter(Document(text, "0")) is not True for text in texts]
spent = time.process_time() - begun
print(json.dumps({"found": found, "seconds": spent, "version": version("datatrove")}))
"""


def _json_lines(name: str, column: str) -> list[str]:
    lines = (kit.real("reasoning") / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)[column] for line in lines]


def _tables(*names: str, asked: bool = False) -> list[str]:
    """Rows of the tables as texts, or their questions."""
    files = [kit.real("reasoning") / f"flan_cot/{name}_train.tsv" for name in names]
    rows = [line.split("\t") for file in files for line in file.read_text("utf-8").splitlines()]
    return ["\n".join(cells[:1] if asked else cells).replace("\\n", "\n") for cells in rows]


def _chinese(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    words = [_WORDS[at : at + 2] for at in range(0, len(_WORDS), 2)]

    def clause() -> str:
        return "".join(rng.choices(words, k=rng.randint(3, 6))) + str(rng.randint(2, 999))

    return ["，".join(clause() for _ in range(rng.randint(3, 6))) + "？" for _ in range(count)]


@cache
def _functions(folder: Path, most: int) -> list[str]:
    """Functions in the sources of a folder, but for tests and what is installed below it."""
    found = list[str]()
    for path in sorted(folder.rglob("*.py")):
        if _LEFT_OUT & {*path.relative_to(folder).parts}:
            continue
        try:
            text = path.read_text(encoding="utf-8")
            nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
        except (SyntaxError, UnicodeDecodeError):
            continue
        lines = text.splitlines(keepends=True)
        codes = [dedent("".join(lines[node.lineno - 1 : node.end_lineno])) for node in nodes]
        found += [code for code in codes if len(code) > _SHORT and _is_code(code)]
        if len(found) > most:
            break
    return found


def _is_code(text: str) -> bool:
    """Whether a text is code by itself: a text in it may lie left of its first line."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _code() -> tuple[list[str], list[str]]:
    """Functions of the standard library, and those of NumPy, without what both have."""
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    return _functions(stdlib, 5000), _functions(Path(np.__file__).parent, 5000)


def _half(text: str) -> str:
    parts = re.findall(r"\s*\S+", text) if text.isascii() or " " in text else list(text)
    return "".join(parts[: len(parts) // 2])


def _changed(text: str) -> str:
    named = re.sub(r"\b[A-Z][a-z]+\b", "Zork", text)
    return re.sub(r"\d+", lambda found: str(int(found[0]) + 3), named)


def _renamed(text: str) -> str:
    """The same with real names, each by itself, for those that no sentence begins with."""
    rng = random.Random(text)
    names = {*re.findall(r"(?<=[a-z,;] )[A-Z][a-z]+\b", text)}
    for name, other in zip(sorted(names), rng.sample(_NAMES, len(_NAMES)), strict=False):
        text = re.sub(rf"\b{name}\b", other, text)
    return re.sub(r"\d+", lambda found: str(int(found[0]) * 7 + rng.randint(1, 2000)), text)


def _respelled(text: str) -> str:
    return text.swapcase().replace(" ", "  ").replace(".", " . ").replace("，", " , ")


def _kinds(
    rng: random.Random, others: Sequence[str], respelled: Callable[[str], str]
) -> dict[str, Callable[[str], str]]:
    def diluted(text: str) -> str:
        around, size = list[str](), 0
        while size < 9 * len(text):
            around.append(rng.choice(others))
            size += len(around[-1])
        around.insert(rng.randint(0, len(around)), text)
        return "\n".join(around)

    wrap = "Here is what my cousin asked me yesterday:"
    return {
        "verbatim": str,
        "wrapped in prose": lambda text: f'{wrap} "{text}" I had no idea.',
        "diluted ten times": diluted,
        "other case and spacing": respelled,
        "half a question": _half,
    }


def _sets(seed: int) -> Mapping[str, tuple[list[str], Mapping[str, Callable[[str], str]]]]:
    rng = random.Random(seed)
    gsm8k, (code, other_code) = _json_lines("gsm8k/test.jsonl", "question"), _code()
    prose = _kinds(rng, _tables(*_TABLES), _respelled) | {
        _CHANGED: _changed,
        f"{_CHANGED}, to real ones": _renamed,
    }
    chinese = _kinds(rng, _chinese(seed + 1, 3000), _respelled)
    spaced = _kinds(rng, other_code, lambda text: re.sub(r"\s*([^\w\s])\s*", r" \1 ", text).upper())
    return {
        "GSM8K": (gsm8k, prose),
        "Chinese": (_chinese(seed, _PLANTS), chinese),
        "code": (rng.sample(code, min(_PLANTS, len(code))), spaced),
    }


def _found(questions: Sequence[str], texts: Sequence[str]) -> list[set[int]]:
    """The questions that are found in each text; those with the same words count as one."""
    made = compiled(questions, _SEEDS)
    (hit,) = Index([made], _SEEDS).find(texts)[2]
    found: list[set[int]] = [set() for _ in texts]
    for text, question in zip(hit.text.tolist(), hit.question.tolist(), strict=True):
        found[text] |= {*(made.equal == question).nonzero()[0].tolist()}
    return found


def _datatrove(scratch: Path, questions: Sequence[str], texts: Sequence[str]) -> Any:
    """What datatrove's filter says of each text, its CPU seconds and its version."""
    place = scratch / "venv"
    if not place.exists():
        venv.create(place, with_pip=True)
        pip = [str(place / "bin/python"), "-m", "pip", "install", "-q"]
        subprocess.run(
            [*pip, "datatrove[processing]==0.10.1", "spacy"], check=True, stdout=sys.stderr
        )
    files = [scratch / "set.json", scratch / "texts.json"]
    for file, some in zip(files, (questions, texts), strict=True):
        file.write_text(json.dumps(some))
    command = [str(place / "bin/python"), "-c", _DATATROVE, *map(str, files)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=scratch)
    return json.loads(done.stdout.splitlines()[-1])


def recall(given: kit.Given) -> None:
    """Plants of each kind that are found, ours and by datatrove."""
    for name, (questions, changes) in _sets(given.seed).items():
        rng = random.Random(given.seed)
        chosen = rng.sample(range(len(questions)), min(_PLANTS, len(questions)))
        texts = [change(questions[at]) for change in changes.values() for at in chosen]
        found = _found(questions, texts)
        theirs = _datatrove(given.scratch, questions, texts)
        for number, kind in enumerate(changes):
            first = number * len(chosen)
            ours = sum(at in found[first + place] for place, at in enumerate(chosen))
            other = sum(theirs["found"][first : first + len(chosen)])
            bound: float | None = {"half a question": 0.9}.get(kind, 0.99)
            if name == "code" and kind == "half a question":
                bound = None  # the first half of a function is often that of others
            by = f"datatrove {theirs['version']} {other:,}"
            what = f"{name}, {kind}: {ours:,} of {len(chosen):,} ({by}), share"
            kit.bounded(what, ours / len(chosen), least=bound)


def wrong(given: kit.Given) -> None:
    """Reports in text that has nothing of the set."""
    gsm8k = _json_lines("gsm8k/test.jsonl", "question")
    train = _json_lines("gsm8k/train.jsonl", "question")
    code, other_code = _code()
    pairs = {"GSM8K's test in its train": (gsm8k, train)}
    pairs["GSM8K's test in four tables"] = gsm8k, _tables(*_TABLES)
    for name in _TABLES:
        others = _tables(*(each for each in _TABLES if each != name))
        pairs[f"{name} in the other tables and GSM8K"] = _tables(name, asked=True), others + train
    pairs["Chinese"] = _chinese(given.seed, _PLANTS), _chinese(given.seed + 1, 20_000)
    pairs["functions of the standard library in those of NumPy"] = code, other_code
    for name, (questions, texts) in pairs.items():
        reported = sum(map(bool, _found(questions, texts)))
        what = f"{name}: {reported:,} of {len(texts):,} texts reported, share"
        kit.bounded(what, reported / len(texts), most=0.001)


def _documents(root: Path, documents: int, seed: int) -> int:
    """Write a corpus of real rows, drawn with a seed, and the set; returns the bytes of text."""
    rows = [(o["question"], o["answer"]) for o in map(json.loads, _lines("gsm8k/train.jsonl"))]
    rows += [(first, rest) for each in _tables(*_TABLES) for first, rest in [each.split("\n", 1)]]
    rng, size = random.Random(seed), 0
    drop = root / "drops/reasoning/gsm8k"
    drop.mkdir(parents=True)
    with (drop / "train.jsonl").open("w") as file:
        for question, answer in rng.choices(rows, k=documents):
            file.write(json.dumps({"question": question, "answer": answer}) + "\n")
            size += len(question) + len(answer)
    evals = root / "drops/evals/gsm8k_test"
    evals.mkdir(parents=True)
    shutil.copyfile(kit.real("reasoning") / "gsm8k/test.jsonl", evals / "test.jsonl")
    return size


def _lines(name: str) -> list[str]:
    return (kit.real("reasoning") / name).read_text(encoding="utf-8").splitlines()


def _audit(root: Path) -> int:
    found = leaks.audit(root, leaks.parts_of(root, "reasoning/gsm8k"), leaks.sets_of(root))
    return sum(each.leaked for each in found)


def _warm() -> None:
    """Load the kernels, and make the table of characters."""
    Index([compiled(["one two three four five six"], _SEEDS)], _SEEDS).find(["warm"])
    flat(np.frombuffer(b'{"warm": "up"}', np.uint8), *np.empty((2, 14), np.uint8))


def _child(documents: str, seed: str, folder: str) -> dict[str, Any]:
    """CPU seconds of a first and a second audit, after kernels are loaded, and peak memory."""
    root = Path(folder)
    size = _documents(root, int(documents), int(seed))
    _warm()
    before = kit.peak_bytes()
    first, again = (kit.spent(lambda: _audit(root)) for _ in range(2))
    return {"size": size, "first": first, "again": again, "peak": kit.peak_bytes(), "had": before}


def rate(given: kit.Given) -> None:
    """CPU seconds and memory of an audit of files, and of datatrove over the same texts."""
    found = {}
    for documents in (given.documents, 10 * given.documents):
        folder = given.scratch / f"of{documents}"
        found[documents] = kit.finish(kit.start(documents, given.seed, folder))
        each = found[documents]
        what = f"{documents:,} documents of {each['size'] / 1e6:.0f} MB: again"
        kit.bounded(f"{what} {each['again']:.3f} s, first, CPU seconds", each["first"])
    small, large = found.values()
    kit.bounded("CPU seconds a 100,000 documents", small["first"] * 1e5 / given.documents, most=2)
    kit.bounded("CPU seconds where nothing changed", small["again"], most=0.1)
    few, many = (each["peak"] / 1e6 for each in (small, large))
    what = f"peak memory {few:.0f} MB, of ten times as many {many:.0f} MB, ratio"
    kit.bounded(what, many / few, most=1.5)
    rows = (given.scratch / f"of{given.documents}/drops/reasoning/gsm8k/train.jsonl").open()
    texts = ["\n".join(json.loads(row).values()) for row, _ in zip(rows, range(5000), strict=False)]
    theirs = _datatrove(given.scratch, _json_lines("gsm8k/test.jsonl", "question"), texts)
    seconds = theirs["seconds"] * given.documents / len(texts)
    print(f"datatrove {theirs['version']}, by 5,000 of them: {seconds:.0f} CPU seconds")


def shards(given: kit.Given) -> None:
    """An audit beside the build of GPT-2 shards of the same text."""
    from bench.reasoning_build import normalized
    from gristmill.asset import Wanted, declared
    from gristmill.data_root import DataRoot
    from gristmill.publish.publish import publish
    from gristmill.vocabularies.pinned import GPT2, drop_folder, find

    root = given.scratch / "shards"
    _documents(root, given.documents, given.seed)
    normalized(root, ["gsm8k__train"])
    folder = drop_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(find(GPT2, kit.DATA), folder / GPT2.file)

    def built(asset: str, partition: str) -> None:
        found = declared()[asset]
        publish(found.build(Wanted(found, DataRoot(root), partition)))

    _warm()
    built("tokenizers/gpt2", GPT2.name)
    begun = kit.cpu_seconds()
    built("reasoning/gpt2_shards", "gsm8k__train")
    middle = kit.cpu_seconds()
    leaks.audit(root, leaks.parts_of(root, "gsm8k__train"), leaks.sets_of(root))
    audit, build = kit.cpu_seconds() - middle, middle - begun
    kit.bounded(f"audit {audit:.2f} s, shards {build:.2f} s, ratio", audit / build, most=1 / 3)


if __name__ == "__main__":
    kit.main(__doc__, recall, wrong, rate, shards, child=_child, documents=100_000, seed=1)
