"""Texts and conversations of one's own beside the programs that people use for them.

Run from the checkout:

    python -m bench.own_data [--megabytes 17] [--talks 20000] [--only talks]

Texts: a file of JSON lines by `gristmill build`, with rows, tokens, index, hashes and laws, beside
datatrove's reader and tokenizer, and beside `datasets.map` with the same tokenizer. Conversations:
by `gristmill build` to a Megatron dataset with its mask, beside transformers'
`apply_chat_template`, which gives ids and the mask of the answers; the tokenizers are placed
before, once for all datasets. Theirs run in an environment of their own, of the versions below. CPU
seconds of whole processes, and of more rows less those of a tenth of them, which leaves out what a
process takes to begin. Exit status 1 where a bound is missed.
"""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench import kit
from bench.billion import TROVE, _called, _command, _datatrove, _root, _tokenizer, _write
from bench.distinct_text import Text

VERSIONS: Final = {"datasets": "5.2.0", "transformers": "5.24.0", "jinja2": "3.1.6"}
MOST_FIXED: Final = 3.0
_BYTES_OF_TOKEN: Final = 2.3
_MAP: Final = """
import sys
from datasets import load_dataset
from tokenizers import Tokenizer
files, out, file = sys.argv[1:]
tokenizer = Tokenizer.from_file(file)
rows = load_dataset("json", data_files=files + "/*.jsonl", split="train", cache_dir=out + "/cache")
ids = lambda batch: {"ids": [each.ids for each in tokenizer.encode_batch(batch["text"])]}
rows.map(ids, batched=True, remove_columns=["text"]).save_to_disk(out + "/rows")
"""
_TEMPLATE: Final = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}"
    "{% endgeneration %}{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}"
    "{% endfor %}"
)
_APPLY: Final = """
import json
import sys
from transformers import PreTrainedTokenizerFast
files, out, file, template = sys.argv[1:]
tokenizer = PreTrainedTokenizerFast(tokenizer_file=file)
asked = dict(chat_template=template, return_dict=True, return_assistant_tokens_mask=True)
with open(files + "/talks.jsonl") as rows, open(out, "w") as made:
    for line in rows:
        done = tokenizer.apply_chat_template(json.loads(line)["messages"], tokenize=True, **asked)
        made.write(json.dumps([done["input_ids"], done["assistant_masks"]]) + "\\n")
"""


def _python(scratch: Path) -> Path:
    """Python of an environment with their programs, which is made once."""
    place = scratch / "theirs"
    if not place.exists():
        venv.create(place, with_pip=True)
        pip = [str(place / "bin/python"), "-m", "pip", "install", "-q"]
        named = [f"{name}=={version}" for name, version in VERSIONS.items()]
        subprocess.run([*pip, *named], check=True, stderr=subprocess.DEVNULL)
    return place / "bin/python"


def _print(what: str, ours: list[float], theirs: list[float]) -> None:
    """Print the ratio of whole processes, and of what more rows take."""
    print(f"{what}: ours {ours[1]:.1f} CPU s, theirs {theirs[1]:.1f}")
    kit.bounded(f"{what}, whole processes, ratio", theirs[1] / ours[1], least=1)
    more = (theirs[1] - theirs[0]) / (ours[1] - ours[0])
    kit.bounded(f"{what}, rows without the begin, ratio", more, least=1.5)


def _both(
    given: kit.Given,
    write: Callable[[Path, float], object],
    run: Callable[[Path, Path], list[float]],
) -> list[list[float]]:
    """CPU seconds of each program at a tenth of the rows and at all."""
    columns = []
    for share in (0.1, 1.0):
        scratch = given.scratch / f"{share}-{write.__name__}"
        files, root = scratch / "own", scratch
        write(files, share)
        columns.append(run(files, root))
    return [list(each) for each in zip(*columns, strict=True)]


def texts(given: kit.Given) -> None:
    """A file of texts."""
    python = _python(given.scratch)

    def write(files: Path, share: float) -> None:
        tokens = int(given.megabytes * 1e6 * share / _BYTES_OF_TOKEN)
        _write(files, tokens, is_mutated=False)

    def run(files: Path, scratch: Path) -> list[float]:
        root = _root(scratch / "root")
        built = _called(_command("build", files, "--data-root", root)).seconds
        trove = _datatrove(files, scratch).seconds
        (scratch / "mapped").mkdir()
        words = (_MAP, files, scratch / "mapped", scratch / "tokenizer.json")
        return [built, trove, _called([python, "-c", *words]).seconds]

    ours, trove, mapped = _both(given, write, run)
    _print(f"texts, datatrove {TROVE}", ours, trove)
    _print(f"texts, datasets.map of {VERSIONS['datasets']}", ours, mapped)


def talks(given: kit.Given) -> None:
    """A file of conversations."""
    python, text = _python(given.scratch), Text(2)

    def write(files: Path, share: float) -> None:
        files.mkdir(parents=True)
        with (files / "talks.jsonl").open("w") as file:
            for _ in range(int(given.talks * share)):
                said = [
                    {"role": role, "content": text.body(size)}
                    for role, size in (("user", 200), ("assistant", 600)) * 2
                ]
                file.write(json.dumps({"messages": said}) + "\n")
        (files / "corpus.toml").write_text(
            'schema = 1\nkind = "chat"\nname = "own"\nmessages = "messages"\n'
            '[render]\ntemplate = "chatml"\ntokenizer = "mine"\n'
        )

    def run(files: Path, scratch: Path) -> list[float]:
        root = _root(scratch / "root")
        file = _tokenizer(scratch)
        _called(
            _command(
                "tokenizers", file, "--name", "mine", "--eod", "<|endoftext|>", "--data-root", root
            )
        )
        for asset in ("placed", "o200k_harmony"):
            _called(_command("materialize", f"tokenizers/{asset}", "--data-root", root))
        built = _called(_command("build", files, "--data-root", root)).seconds
        words = (_APPLY, files, scratch / "theirs.jsonl", file, _TEMPLATE)
        return [built, _called([python, "-c", *words]).seconds]

    ours, theirs = _both(given, write, run)
    kit.bounded(
        "conversations, CPU s of a process with no row, at most",
        ours[0] - (ours[1] - ours[0]) / 9,
        most=MOST_FIXED,
    )
    _print(
        f"conversations, apply_chat_template of transformers {VERSIONS['transformers']}",
        ours,
        theirs,
    )


if __name__ == "__main__":
    kit.main(__doc__, texts, talks, megabytes=17.0, talks=20_000)
