"""Sample drops of the seven corpora: records of our own in every form, for every rule."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

Rows = Sequence[Mapping[str, Any]]

_NAMES: Final = ("Mira", "Tomás", "Ada", "Yusuf", "Noor", "Lin", "Ôta", "Jan")
_THINGS: Final = ("apples", "tickets", "pens", "shells", "stamps", "lamps", "books")

CHAINS: Final[tuple[Any, ...]] = (
    "1. Write down what is known.\n2. Add both amounts.\n3. Compare with the total.",
    "Step 1: Read the question.\nStep 2: Take the amounts.\nStep 3: Add them.",
    "step 1. Take the first amount.\nstep 4. Take away what was lost.",
    "First look at the amounts.\n\nThen add them.\n\nThe sum is the result.",
    "The first amount is known. The second one is twice as large! Is that all? It is.",
    "both amounts together",
    ["Read the amounts", "", "  Add them  ", "Compare the sum"],
    None,
)
"""Numbered, marked, with a gap, paragraphs, sentences, one block, a list, none."""

_UNUSUAL: Final = (
    "A text that names <|endoftext|> as it is.",
    "Zażółć gęślą jaźń, 価格は1 200 €, “quotes”, a\u2028line and 🙂.",
    "A bell \x07, a tab\tand a delete \x7f.",
    "Two  spaces,\r\na line of Windows\rand one of old computers.",
)


def write_drop(folder: Path, corpus: str) -> list[Path]:
    """Write the sample drop of a corpus into a new folder.

    corpus: its name; the same name gives the same bytes.
    """
    folder.mkdir(parents=True)
    _WRITERS[corpus](folder)
    return sorted(folder.iterdir())


def _jsonl(path: Path, rows: Rows) -> None:
    octets = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    # No time of day in the header, so that the same rows give the same bytes.
    pack = {".gz": lambda data: gzip.compress(data, mtime=0), ".xz": lzma.compress}
    path.write_bytes(pack.get(path.suffix, bytes)(octets))


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def _parquet(path: Path, rows: Rows) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def _csv(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _asked(number: int) -> tuple[str, int, int]:
    """A question, and its two amounts."""
    name, thing = _NAMES[number % len(_NAMES)], _THINGS[number % len(_THINGS)]
    first = 3 + 7 * number % 40
    question = f"{name} has {first} {thing} and gets twice as many again. How many are there?"
    return question, first, 2 * first


def _worked(number: int) -> dict[str, str]:
    """A record of gsm8k: most have right arithmetic in every line."""
    question, first, second = _asked(number)
    total = first + second
    lines = [
        f"The second amount is 2*{first}=<<2*{first}={second}>>{second}.",
        f"Together there are {first}+{second} = <<{first}+{second}={total}>>{total}.",
    ]
    match number % 8:
        case 1:
            lines[1] = f"Together: <<{first}+{second}={total + 1}>>{total + 1}."
        case 3:
            lines = [f"Twice {first} is {second}.", f"The sum is {total}."]
        case 5:
            lines = [lines[0], "", lines[1]]
        case 7:
            return {"question": question, "answer": "\n".join(lines)}
    return {"question": question, "answer": "\n".join([*lines, f"#### {total}"])}


def _gsm8k(folder: Path) -> None:
    rows = [_worked(number) for number in range(24)]
    rows += [{"question": "What is 3 + 4?", "answer": f"{text}\n#### 7"} for text in _UNUSUAL]
    rows += [
        {"question": "", "answer": ""},
        {"question": "What is the result?", "answer": "#### \\boxed{4}"},
        {"question": "  Edges are stripped. ", "answer": "\nThey are.\n#### 1\n"},
    ]
    _jsonl(folder / "train.jsonl", rows)
    _csv(folder / "test.csv", [_worked(number) for number in range(40, 52)])


def _chained(
    columns: tuple[str, str, str], extras: Mapping[str, Any], count: int
) -> list[dict[str, Any]]:
    """Records in the seed's columns: every chain in turn, and the unusual texts."""
    rows = []
    chains = [*islice(cycle(CHAINS), count), *_UNUSUAL]
    for number, chain in enumerate(chains):
        question, first, second = _asked(number)
        row = dict(zip(columns, (question, str(first + second), chain), strict=True))
        rows.append(row | {name: values[number % len(values)] for name, values in extras.items()})
    rows.append(dict.fromkeys(columns, ""))
    return rows


def _cot_collection(folder: Path) -> None:
    extras = {"dataset": ["sums", "colours"], "source": ["own", None]}
    columns = ("question", "answer", "rationale")
    _jsonl(folder / "seed_train.jsonl.xz", _chained(columns, extras, 16))
    public = {
        str(number): {
            "source": "Which is larger?\nOptions:\n- three\n- four",
            "target": "four",
            "rationale": chain if isinstance(chain, str) else "Four is larger. It comes later.",
            "task": "compare",
            "type": "CoT",
        }
        for number, chain in enumerate(CHAINS)
    }
    _json(folder / "CoT_collection_train.json", public)
    lines = [
        f"{_asked(number)[0]}\\nOptions:\\n(A) {number}\\n(B) {number + 1}\t(B)\t{chain}"
        for number, chain in enumerate(("One reason. Another one.", "Step 1: Read.\\nStep 2: Add."))
    ]
    (folder / "sums_train.tsv").write_text("\n".join(lines), encoding="utf-8")


def _openr1(folder: Path) -> None:
    extras = {"difficulty": ["easy", "medium", "hard", None]}
    seed = _chained(("prompt", "response", "chain_of_thought"), extras, 16)
    _jsonl(folder / "train-seed.jsonl", seed)
    verdicts = [
        ([True, True], [False, True], [True, True]),
        ([True, True], [False, False], [False, True]),
        ([False, True], [True, False], [True, False]),
        ([True, False], [None, None], None),
    ]
    rows = []
    for number, (complete, verified, judged) in enumerate(verdicts * 3):
        question, first, second = _asked(number)
        thought = CHAINS[number % 6]
        generations = [
            f"<think>\n{thought}\n</think>\n\nIt is $\\boxed{{{first + second}}}$.",
            "<think></think>\nThe sum of both." if number % 2 else f"<think>{thought}",
        ]
        rows.append(
            {
                "problem": question,
                "solution": f"Add both: $\\boxed{{{first + second}}}$." if number % 3 else None,
                "answer": str(first + second),
                "generations": generations,
                "is_reasoning_complete": complete,
                "correctness_math_verify": verified,
                "correctness_llama": judged,
            }
        )
    _parquet(folder / "train-00000-of-00001.parquet", rows)


def _traces(folder: Path) -> None:
    extras = {"subject": ["algebra", "geometry"]}
    rows = _chained(("problem", "answer", "chain_of_thought"), extras, 16)
    _jsonl(folder / "train_seed.jsonl", rows)
    public, backward = [], []
    for number in range(8):
        question, first, second = _asked(number)
        text = f"Twice {first} is {second}.\n\nThe answer is: no guess.\nAdd both.\n####"
        end = f"{first + second}\nThe answer is: {first + second}"
        row = {"query": question, "response": f"{text} {end}", "type": "GSM_Rephrased"}
        public.append(row if number else row | {"response": "There is no last line here."})
        asked = {"question": f"{question} If it is {second}, what is x?", "answer": str(first)}
        chain = f"Step 1. x is unknown.\nStep 2. Half of {second} is {first}."
        key, rest = ("output", f"\nThe answer is: {first}") if number % 2 else ("", "")
        backward.append(asked | {key or "inv_question_pred_answer": chain + rest})
    _json(folder / "MetaMath_validation.json", public)
    _jsonl(folder / "Backward_train.jsonl", backward)


def _reveal(folder: Path) -> None:
    columns = ("question", "answer", "rationale")
    extras = {"context": ["A page about sums.", ["Two", "texts"]], "citation": ["page 3", None]}
    _jsonl(folder / "train.jsonl", _chained(columns, extras, 16))
    for name, count in (("open", 6), ("eval", 8)):
        steps = [
            {
                "answer_id": f"{name}-{number}",
                "question": _asked(number)[0],
                "step_idx": str(step),
                "step": f"Reason {step} of answer {number}.",
                "evidence": f"Evidence, “{step // 2}”." if step else "",
                "http_link": "https://example.org/sums",
            }
            # Rows of one answer are apart, and its steps are not in order.
            for step in (2, 0, 10, 1)
            for number in range(count)
        ]
        _csv(folder / f"reveal_{name}.csv", steps)


def _story(*sentences: str, entity: str = "plate") -> dict[str, Any]:
    states = {entity: [[[0] * 20, [0] * 20] for _ in sentences]}
    states[entity][1][1][7] = 1
    states[entity][1][1][5] = 4
    states[entity][-1][0][7] = 2
    return {
        "sentences": list(sentences),
        "confl_pairs": [[1, len(sentences) - 1]],
        "confl_sents": [1],
        "breakpoint": len(sentences) - 1,
        "entities": [entity],
        "states": states,
    }


def _trip(folder: Path) -> None:
    curated, public = [], []
    for number in range(8):
        name = _NAMES[number]
        start, end = f"{name} took a plate.", f"{name} ate from the clean plate."
        good = _story(start, f"{name} washed the plate.", end)
        bad = _story(start, f"{name} dropped the plate in the mud.", end)
        stories, plausible = ([good, bad], 0) if number % 2 else ([bad, good], 1)
        row = {"stories": stories, "pair_plausible_story": plausible}
        curated.append(row | {"location": "kitchen", "objects": ["plate", "mud"]})
        texts = [{"sentences": story["sentences"]} for story in stories]
        conflict = {"confl_pairs": [[1, 2]]} if number % 2 else {"confl_sents": [1]}
        public.append({"stories": texts, "label": plausible, "breakpoint": 2, **conflict})
    _json(folder / "ClozeTrain.json", curated)
    _json(folder / "OrderDev.json", public)
    extras = {"context": [None, "in the kitchen"]}
    rows = _chained(("question", "answer", "program"), extras, 8)
    rows[0]["program"] = "Conflict: 2, 3\nEffect: plate clean = negative"
    rows[1]["program"] = [{"op": "conflict", "pair": [2, 3]}, "Effect: plate", ""]
    _jsonl(folder / "test.jsonl", rows)


def _wiqa(folder: Path) -> None:
    steps = ["Rain falls on a hill", "Water runs down", "The river rises", ""]
    labels = ("more", "less", "no_effect")
    flat, nested = [], []
    for number in range(12):
        happens = f"suppose {_NAMES[number % 8]} builds {number} dams happens"
        stem = f"{happens}, how will it affect MORE water in the valley."
        label = labels[number % 3]
        flat.append({"question_stem": stem, "question_para_step": steps, "answer_label": label})
        question = {"stem": stem, "para_steps": steps[: 1 + number % 4], "answer_label": label}
        nested.append({"question": question, "metadata": {"path_len": number % 3}})
    flat[0]["question_stem"] = "What does a dam do to a river?"
    _parquet(folder / "train-00000-of-00001.parquet", flat)
    _jsonl(folder / "dev.jsonl.gz", nested)
    columns = ("question_stem", "answer_label", "para_steps")
    extras = {"perturbation": ["a dam", None], "effect1": ["less water"], "effect2": [None]}
    rows = _chained(columns, extras, 8)
    for number, row in enumerate(rows[:-1]):
        row["answer_label"] = labels[number % 3]
    _jsonl(folder / "test.jsonl", rows)


_WRITERS: Final[Mapping[str, Callable[[Path], None]]] = {
    "gsm8k": _gsm8k,
    "cot_collection": _cot_collection,
    "openr1_math_220k": _openr1,
    "reasoning_traces": _traces,
    "reveal": _reveal,
    "trip": _trip,
    "wiqa": _wiqa,
}


_QUESTIONS: Final = (
    "Which of the two ferries reaches the northern island before the tide turns?",
    "How many lanterns burn on the pier when every second one is put out at dawn?",
    "Why does the clock of the town hall strike thirteen on the first day of spring?",
    "In which drawer does the baker keep the key of the old mill by the river?",
    "What did the gardener plant between the beans to keep the snails away?",
)


def write_questions(folder: Path) -> None:
    """Write the sample of an evaluation set into a new folder; no other sample has its questions.

    folder: its path.
    """
    folder.mkdir(parents=True)
    _jsonl(folder / "questions.jsonl", [{"question": each} for each in _QUESTIONS])


def write_sample(corpus: str, path: Path) -> None:
    """Write the sample drop of a corpus into the new folder `path`."""
    write_drop(path, corpus)
