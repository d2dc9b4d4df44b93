"""The loaders of other programs, each in its own process, over what `gristmill project` writes.

`PYTHON -P tests/consumers/programs.py NUMBER CHECKOUT FOLDER SCRATCH` writes into
`SCRATCH/rows.json` what the loader of one of `PROGRAMS` gives of a folder: of messages
`[whole text, text that is trained on]` for each conversation of train, of tokens the blocks of
train. PYTHON has what the program imports, and not Gristmill. `test_programs.py` runs all, and
compares.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

MESSAGES, TAGS = "messages", "messages --thoughts tags"
PAGE = Path(__file__).parents[2] / "docs/consumers.md"
BLOCK, SEPARATOR = 32, 50256
MARKS = ["<pad>", "<unk>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% generation %}{{ '<think>\n' + m.thinking + '\n</think>\n\n' if m.thinking else '' }}"
    "{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}"
    "\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Rows = Iterator[Any]


def byte_tokenizer(scratch: Path) -> Any:
    """A tokenizer of bytes with ChatML, saved as `scratch/model` beside a tiny model."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = [*MARKS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE({word: at for at, word in enumerate(words)}, [], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    said = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "<|im_end|>"}
    said |= {"chat_template": TEMPLATE, "extra_special_tokens": MARKS[2:3]}
    found = PreTrainedTokenizerFast(tokenizer_object=made, **said)
    found.save_pretrained(scratch / "model")
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    size |= {"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(words)}
    LlamaForCausalLM(LlamaConfig(**size)).save_pretrained(scratch / "model")
    return found


def decoded(tokenizer: Any, ids: Any, labels: Any) -> tuple[str, str]:
    """All that a row says, and what of it has labels."""
    trained = [int(at) for at, label in zip(ids, labels, strict=True) if label != -100]
    return tokenizer.decode([int(at) for at in ids]), tokenizer.decode(trained)


def messages(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "train.jsonl").open("rb")]


def run_lines(first: str, *folders: Path) -> None:
    """Run the Python of docs/consumers.md with other folders in its line that begins `first =`."""
    blocks = PAGE.read_text().split("```")
    (code,) = [each for each in blocks if each.startswith("python\n") and f"\n{first} = " in each]
    (line,) = [each for each in code.splitlines() if each.startswith(f"{first} = ")]
    texts = iter(folders)
    given = re.sub('"[^"]*"', lambda _: repr(str(next(texts))), line)
    exec(code.removeprefix("python").replace(line, given), {})


def taken(path: Path, names: set[str], given: dict[str, Any]) -> dict[str, Any]:
    """Functions and classes of a file that imports what this machine lacks, or trains at once."""
    text = path.read_text().replace("pin_memory=True", "pin_memory=False")  # asks for a GPU
    found = [node for node in ast.parse(text).body if getattr(node, "name", "") in names]
    assert len(found) == len(names), names
    exec(compile(ast.Module(found, []), str(path), "exec"), given)
    return given


def windows(rows: Any) -> list[list[int]]:
    return [rows[at]["input_ids"].tolist() for at in range(len(rows))]


def trl(_: Path, folder: Path, scratch: Path) -> Rows:
    """The batches of a trainer, which makes one step; its loss is that of labels alone."""
    import torch
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    tokenizer, rows = byte_tokenizer(scratch), load_dataset(str(folder), split="train")
    given = {"output_dir": str(scratch / "out"), "save_strategy": "no", "report_to": []}
    given |= {"assistant_only_loss": True, "max_length": None, "use_cpu": True, "bf16": False}
    given |= {"max_steps": 1, "per_device_train_batch_size": 4}
    model = str(scratch / "model")
    trainer = SFTTrainer(
        model, args=SFTConfig(**given), train_dataset=rows, processing_class=tokenizer
    )
    for batch in trainer.get_train_dataloader():
        shown = {name: batch[name].clone() for name in ("input_ids", "attention_mask", "labels")}
        with torch.no_grad():
            scores = trainer.model(shown["input_ids"], attention_mask=shown["attention_mask"])
            own = torch.nn.functional.cross_entropy(
                scores.logits[:, :-1].flatten(0, 1), shown["labels"][:, 1:].flatten()
            )
            assert torch.isclose(own, trainer.compute_loss(trainer.model, batch), rtol=1e-4)
        for ids, mask, labels in zip(*shown.values(), strict=True):
            yield decoded(tokenizer, ids[mask == 1].tolist(), labels[mask == 1].tolist())
    before = [each.detach().clone() for each in trainer.model.parameters()]
    trainer.train()
    assert any((a != b).any() for a, b in zip(before, trainer.model.parameters(), strict=True))


def axolotl(_: Path, folder: Path, scratch: Path) -> Rows:
    from axolotl.prompt_strategies.chat_template import load
    from axolotl.utils.dict import DictDefault

    tokenizer = byte_tokenizer(scratch)
    given = {"type": "chat_template", "field_messages": "messages", "roles_to_train": []}
    given |= {"message_field_training": "train", "train_on_eos": "turn"}
    given |= {"field_thinking": "thinking", "template_thinking_key": "thinking"}
    strategy = load(tokenizer, DictDefault({"sequence_len": 8192}), given)
    for said in map(strategy.tokenize_prompt, messages(folder)):
        yield decoded(tokenizer, said["input_ids"], said["labels"])


def llama_factory(_: Path, folder: Path, scratch: Path) -> Rows:
    """It imports torchaudio for sounds, which is built for accelerators: an empty module here."""
    os.environ["DISABLE_VERSION_CHECK"] = "1"
    import peft  # noqa: F401

    sys.modules["torchaudio"] = ModuleType("torchaudio")
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args

    tokenizer = byte_tokenizer(scratch)
    given = {"stage": "sft", "do_train": True, "dataset": "train", "dataset_dir": str(folder)}
    given |= {"model_name_or_path": str(scratch / "model"), "output_dir": str(scratch / "out")}
    given |= {"template": "chatml", "cutoff_len": 8192, "use_cpu": True, "report_to": "none"}
    model, data, training, _, _ = get_train_args(given)
    template = get_template_and_fix_tokenizer(tokenizer, data)
    for row in get_dataset(template, model, data, training, "sft", tokenizer)["train_dataset"]:
        yield decoded(tokenizer, row["input_ids"], row["labels"])


def torchtitan(_: Path, folder: Path, scratch: Path) -> Rows:
    from torchtitan.hf_datasets.text_datasets import ChatProcessor

    tokenizer = byte_tokenizer(scratch)
    plain = SimpleNamespace(
        eos_id=tokenizer.eos_token_id,
        encode=lambda text, **_: tokenizer.encode(text),
        apply_chat_template=lambda *a, **k: tokenizer.apply_chat_template(*a, tokenize=False, **k),
    )
    context = SimpleNamespace(tokenizer=plain, max_context_length=8192)
    read = ChatProcessor(
        ChatProcessor.Config(messages_fn=lambda row: row["messages"]), context=context
    )
    for row in messages(folder):
        if [each["role"] for each in row["messages"]] == ["user", "assistant"]:
            said = read(row, None)
            yield decoded(tokenizer, [*said.input_ids, said.labels[-1]], [-100, *said.labels])


def litgpt_chat(_: Path, folder: Path, scratch: Path) -> Rows:
    """The lines of docs/consumers.md make its form of conversations of one question."""
    import torch
    from litgpt.data import JSON

    tokenizer = byte_tokenizer(scratch)
    tokenizer.encode = lambda text, **_: torch.tensor(tokenizer(text)["input_ids"])
    run_lines("talks, out", folder, scratch / "instructions")
    data = JSON(scratch / "instructions", mask_prompt=True, num_workers=0)
    data.connect(tokenizer, batch_size=1, max_seq_length=8192)
    data.setup()
    for row in map(data.train_dataset.__getitem__, range(len(data.train_dataset))):
        yield decoded(tokenizer, row["input_ids"].tolist(), row["labels"].tolist())


def nanochat(_: Path, folder: Path, __: Path) -> Rows:
    from nanochat.tokenizer import RustBPETokenizer

    rows = messages(folder)
    texts = (each["content"] for row in rows for each in row["messages"])
    tokenizer = RustBPETokenizer.train_from_iterator(texts, 300)
    for ids, mask in (tokenizer.render_conversation(row, 1 << 20) for row in rows):
        trained = [at for at, is_trained in zip(ids, mask, strict=True) if is_trained]
        yield tokenizer.decode(ids), tokenizer.decode(trained)


def megatron(checkout: Path, folder: Path, scratch: Path) -> Rows:
    """Its package `training` asks for Python 3.12, so its modules are run as files."""
    from megatron.core.tokenizers.text.libraries.sft_tokenizer import SFTTokenizer

    tokenizer, place = byte_tokenizer(scratch), checkout / "megatron/training/datasets"
    of = {name: run_path(str(place / f"{name}_dataset.py")) for name in ("sft", "varlen")}
    rows = of["sft"]["SFTLowLevelDataset"](str(folder / "train.jsonl")).dataset
    convert, name = of["varlen"]["_select_converter"](rows.column_names)
    assert name == "openai-messages"
    sft = SFTTokenizer(str(scratch / "model"), "identity")
    for row in rows:
        yield decoded(tokenizer, *sft.tokenize_conversation(convert(row), True, False))


def datatrove(_: Path, folder: Path, __: Path) -> Rows:
    """Windows, whose positions begin at 0 behind each separator."""
    from datatrove.utils.dataset import DatatroveFolderDataset

    given = {"seq_len": BLOCK - 1, "token_size": 2, "return_positions": True}
    rows = DatatroveFolderDataset(str(folder / "train"), **given)
    for at, ids in enumerate(windows(rows)):
        begins = [n for n, place in enumerate(rows[at]["positions"].tolist()) if place == 0]
        assert begins == [0, *(n + 1 for n, token in enumerate(ids[:-1]) if token == SEPARATOR)]
        yield ids


def olmo_core(_: Path, folder: Path, scratch: Path) -> Rows:
    from olmo_core.data.numpy_dataset import NumpyFSLDataset

    given = dict.fromkeys(("pad_token_id", "eos_token_id"), SEPARATOR)
    files = sorted(folder.glob("train/*.ds"))
    rows = NumpyFSLDataset(*files, sequence_length=BLOCK, vocab_size=SEPARATOR + 1, **given)
    rows.work_dir = scratch
    rows.prepare()
    yield from windows(rows)


def nanotron(checkout: Path, folder: Path, _: Path) -> Rows:
    """Its reader of files: the package imports flash-attn, which is built beside a GPU."""
    import numpy
    import torch

    data = checkout / "src/nanotron/data"
    given = {"np": numpy, "torch": torch, "os": os, "human_format": str, "dataclass": dataclass}
    given |= {"Dataset": torch.utils.data.Dataset}
    given["_stream_file"] = run_path(str(data / "s3_utils.py"))["_stream_file"]
    names = {"TBFileDatasetLog", "TokenizedBytesFileDataset"}
    read = taken(data / "tokenized_bytes.py", names, given)["TokenizedBytesFileDataset"]
    (path,) = folder.glob("train/*.ds")
    yield from windows(read(str(path), BLOCK - 1))


def nano_gpt(checkout: Path, folder: Path, scratch: Path) -> Rows:
    """One batch of all places, in order."""
    import numpy
    import torch

    (path,) = folder.glob("train/*.ds")
    (scratch / "train.bin").symlink_to(path)
    count = path.stat().st_size // 2 // BLOCK
    in_order = SimpleNamespace(**vars(torch) | {"randint": lambda *_: torch.arange(count) * BLOCK})
    given = {"np": numpy, "os": os, "data_dir": str(scratch), "block_size": BLOCK - 1}
    given |= {"batch_size": count, "device_type": "cpu", "device": "cpu", "torch": in_order}
    inputs, targets = taken(checkout / "train.py", {"get_batch"}, given)["get_batch"]("train")
    yield from torch.cat([inputs, targets[:, -1:]], 1).tolist()


def litgpt(_: Path, folder: Path, __: Path) -> Rows:
    from litgpt.data import LitData

    data = LitData(folder, split_names=("train", "val"), num_workers=0)
    data.connect(batch_size=1, max_seq_length=BLOCK - 1)
    yield from (batch[0].tolist() for batch in data.train_dataloader())


def llm_c(_: Path, folder: Path, __: Path) -> Rows:
    from train_gpt2 import DistributedDataLoader

    rows = DistributedDataLoader(str(folder / "tokens_train_*.bin"), 1, BLOCK, 0, 1)
    yield from (rows.next_batch()[0][0].tolist() for _ in range((rows.ntok_total - 1) // BLOCK))


def modded_nanogpt(checkout: Path, folder: Path, _: Path) -> Rows:
    """The documents, as a shard finds them by their separators."""
    import threading

    import torch

    given = {"torch": torch, "Tensor": torch.Tensor, "threading": threading, "Path": Path}
    given["BOS_ID"] = SEPARATOR
    taken(checkout / "train_gpt.py", {"_load_data_shard", "Shard"}, given)
    (path,) = folder.glob("tokens_train_*.bin")
    tokens = given["_load_data_shard"](path)
    begins = given["Shard"](tokens).bos_idx.tolist()
    for begin, end in zip(begins, [*begins[1:], len(tokens)], strict=True):
        yield tokens[begin:end].tolist()


def nanochat_texts(_: Path, folder: Path, scratch: Path) -> Rows:
    (scratch / "base_data_climbmix").symlink_to(folder)
    os.environ["NANOCHAT_BASE_DIR"] = str(scratch)
    from nanochat.dataset import parquets_iter_batched

    for split in ("train", "val"):
        yield from ([split, text] for texts in parquets_iter_batched(split) for text in texts)


def distillkit(_: Path, folder: Path, __: Path) -> Rows:
    from distillkit.configuration import DatasetConfiguration
    from distillkit.main import load_data

    places = {
        f"{name}_dataset": {"disk_path": str(folder), "split": split}
        for name, split in (("train", "train"), ("eval", "validation"))
    }
    for rows in load_data(DatasetConfiguration(**places, seed=0), None):
        yield from ([row["id"], row["input_ids"], row["labels"]] for row in rows)


def vpmoe(checkout: Path, folder: Path, scratch: Path) -> Rows:
    """The lines of docs/consumers.md make its form; it is merged, validated, and read back."""
    from datasets import load_dataset

    made, out, saved = (scratch / name for name in ("vpmoe-synth", "merged", "saved"))
    run_lines("source, out, tokens", folder / "data", made)

    def script(name: str, *words: str) -> None:
        program = [sys.executable, str(checkout / f"scripts/{name}.py"), *words]
        subprocess.run(program, check=True, stdout=sys.stderr)

    script("merge_distill_datasets", "--input", f"synth={made}", "--output-dir", str(out))
    files = {name: str(out / name / "*.parquet") for name in ("train", "validation")}
    rows = load_dataset("parquet", data_files=files)
    rows.save_to_disk(saved)
    script("validate_distill_dataset", "--input-dir", str(saved))
    for split in files:
        yield from ([row["id"], row["input_ids"], row["labels"]] for row in rows[split])


def puzzles(_: Path, folder: Path, __: Path) -> Rows:
    """Rows of the test split of every dataset, without those that fill the last batch."""
    from puzzle_dataset import PuzzleDataset, PuzzleDatasetConfig

    given = {"seed": 0, "global_batch_size": 8, "test_set_mode": True, "epochs_per_iter": 1}
    given |= {"rank": 0, "num_replicas": 1}
    for place in sorted(map(str, folder.glob("*-sample"))):
        places = {"dataset_paths": [place], "dataset_path": place}
        own = {key: places[key] for key in places if key in PuzzleDatasetConfig.model_fields}
        for _name, batch, _size in PuzzleDataset(PuzzleDatasetConfig(**given, **own), "test"):
            for row in zip(batch["inputs"].tolist(), batch["labels"].tolist(), strict=True):
                if set(row[1]) != {-100}:
                    yield row


def chess_bot(_: Path, folder: Path, __: Path) -> Rows:
    """The moves before, and the move that is learnt, by the cache of the folder."""
    from src.chessbot import training as bot

    config, paths = bot.RuntimeSpliceConfig(), [str(folder / "train.jsonl")]
    index, is_cached, why = bot._index_game_jsonl_paths_cached_or_runtime(paths, config, "train")
    assert is_cached, why
    own = bot._index_game_jsonl_paths(paths, config)
    assert [list(each) for each in own[:5]] == [list(each) for each in index[:5]]
    vocab = bot._build_vocab_and_count_rows_from_train_game_paths(paths, config)[0]
    words = {number: word for word, number in vocab.items()}
    rows = bot.IndexedJsonlGameSpliceDataset(*index[:5], vocab)
    for context, label, *_rest in map(rows.__getitem__, range(len(rows))):
        yield [" ".join(words[move] for move in context), words[label]]


def former(_: Path, folder: Path, __: Path) -> Rows:
    import numpy
    from train_2048.dataloader.steps import StepsDataset

    rows = StepsDataset(str(folder / "train"))
    for row in rows.get_rows(numpy.arange(len(rows))):
        yield [int(row["board"]), int(row["move_dir"]), row["branch_evs"].tolist()]


class Program(NamedTuple):
    """A program: a row of docs/consumers.md.

    folder: of the checkout, by the repository's name. packages: where Python finds it there.
    form: what `gristmill project --to` makes for it, or the artifact that it reads as it stands.
    compared: what is. one: whether it takes conversations of one question alone.
    """

    name: str
    commit: str
    folder: str
    form: str
    read: Callable[[Path, Path, Path], Rows]
    compared: str
    packages: tuple[str, ...] = (".",)
    one: bool = False


_TALKS = "texts and labels of 60 conversations of up to three questions with the raw file"
_ONE = "the same of conversations of one question: it takes no others"
_BLOCKS = "every block with the documents"
_LABELS = "ids and labels of both splits with all four shards"
_GRIDS = "all rows of five test splits with the arrays"
_SRC = ("src",)
PROGRAMS = (
    Program("TRL", "1.16.0", "trl", MESSAGES, trl, f"a step of `SFTTrainer`, its loss; {_TALKS}"),
    Program("axolotl", "067b021", "axolotl", MESSAGES, axolotl, _TALKS, _SRC),
    Program("LLaMA-Factory", "ff6d4d1", "LLaMA-Factory", TAGS, llama_factory, _TALKS, _SRC),
    Program("nanochat", "92d63d4", "nanochat", TAGS, nanochat, _TALKS),
    Program("Megatron-LM", "d98e8a6", "Megatron-LM", TAGS, megatron, _TALKS),
    Program("torchtitan", "b5bcd76", "torchtitan", TAGS, torchtitan, _ONE, one=True),
    Program("litgpt", "2685705", "litgpt", TAGS, litgpt_chat, _ONE, one=True),
    Program("datatrove", "a649de7", "datatrove", "datatrove", datatrove, _BLOCKS, _SRC),
    Program("nanotron", "2411b02", "nanotron", "datatrove", nanotron, _BLOCKS),
    Program("OLMo-core", "fa6c501", "OLMo-core", "datatrove", olmo_core, _BLOCKS, _SRC),
    Program("nanoGPT", "3adf61e", "nanoGPT", "datatrove", nano_gpt, _BLOCKS),
    Program("litgpt", "2685705", "litgpt", "litdata", litgpt, _BLOCKS),
    Program("llm.c", "f1e2ace", "llm.c", "llm.c", llm_c, _BLOCKS),
    Program(
        "modded-nanogpt", "f411b3d", "modded-nanogpt", "llm.c", modded_nanogpt, "every document"
    ),
    Program("nanochat", "92d63d4", "nanochat", "nanochat", nanochat_texts, "every text"),
    Program("DistillKit", "a61c2e7", "DistillKit", "disk", distillkit, _LABELS),
    Program("vpMoE", "2744046", "vpMoE", "parquet", vpmoe, f"its merge and its check; {_LABELS}"),
    Program("HRM", "42410da", "HRM", "puzzles/", puzzles, _GRIDS),
    Program("HRM of GS-JAL", "376f69b", "gs-jal-hrm", "puzzles/", puzzles, _GRIDS),
    Program("TRM", "e7b6871", "TinyRecursiveModels", "puzzles/", puzzles, _GRIDS),
    Program(
        *("2048former", "a79c8ba", "2048former", "macroxue/training_view", former),
        *("every step", ("packages/train_2048/src", "packages/core_2048/src")),
    ),
    Program(
        *("chess-bot", "da14b93", "chess-bot", "chess/game_dataset", chess_bot),
        "its cache with its own index; every sample with the moves",
    ),
)


if __name__ == "__main__":
    program, places = PROGRAMS[int(sys.argv[1])], [Path(each) for each in sys.argv[2:]]
    sys.path[:0] = [str(places[0] / each) for each in program.packages]
    (places[2] / "rows.json").write_text(json.dumps([*program.read(*places)]))
