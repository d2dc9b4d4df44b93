"""Trains a small net on the samples of each family, on the CPU, and resumes it in the middle.

    make run install
    .venv/bin/python examples/train_small_nets.py --plot docs/small-nets.svg

The batches come from `gristmill.loading`: another folder, a mixture or more processes change
`sources` alone. See also `docs/training.md`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gristmill.chess import GameSpliceDataset
from gristmill.contract import GristmillError
from gristmill.loading import Loader, Packed, Plan, Source, mixture
from gristmill.macroxue import StepDataset
from gristmill.puzzles import PuzzleExamples
from gristmill.reasoning import ShardReader
from gristmill.svg import BOLD, END, INK, MIDDLE, RULE, small_card, small_text
from gristmill.synth import SynthKDDocuments

SEED, BATCH, WIDTH, IDS, LONGEST = 7, 16, 48, 2_048, 96
COLOURS = {
    "2048": "#b06a1f",
    "chess": "#2f7d5b",
    "SYNTH": "#7a4fa3",
    "reasoning": "#3668a8",
    "puzzles": "#b3383f",
}

Batch = Mapping[str, torch.Tensor]


class Task(NamedTuple):
    """What a net sees and what it should say: [B, S] each; a label counts where `mask` is 1."""

    ids: torch.Tensor
    labels: torch.Tensor
    mask: torch.Tensor


class Family(NamedTuple):
    """One family: its samples, what is learnt of them, and whether a place sees those behind it."""

    source: Callable[[], Source]
    task: Callable[[Batch], Task]
    is_causal: bool


def move(batch: Batch) -> Task:
    """The move of a board of 2048, said at its first cell."""
    ids = batch["ranks"].long()
    labels, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    labels[:, 0], mask[:, 0] = batch["move_dir"].long(), 1
    return Task(ids, labels, mask)


def next_move(batch: Batch) -> Task:
    """The move that follows each move of a game so far."""
    ids, mask = batch["context"], batch["context_mask"].long()
    last = mask.sum(1, keepdim=True) - 1
    behind = torch.nn.functional.pad(ids[:, 1:], (0, 1))
    return Task(ids, behind.scatter(1, last, batch["target"][:, :1]), mask)


def next_token(batch: Batch) -> Task:
    """The next token of the same document. Ids are folded, so that the net stays small."""
    tokens = batch["tokens"] if "tokens" in batch else batch["input_ids"]
    columns = (tokens, batch["labels"], batch["loss_mask"])
    ids, labels, mask = (column[:, :LONGEST].long() for column in columns)
    return Task(ids % IDS, labels % IDS, mask)


def cells(batch: Batch) -> Task:
    """Each cell of the solution, at the cell of the puzzle."""
    return Task(batch["inputs"].long(), batch["labels"].long(), (batch["labels"] > 0).long())


def families(data: Path) -> dict[str, Family]:
    """The families by name. data: the data root with the samples."""
    months = sorted((data / "chess/dataset").glob("elite_*_game"))
    shards = sorted((data / "megatron/synth_kd_v1/train").glob("shard_*_tokens.bin"))
    documents = [str(shard.with_suffix("")) for shard in shards]
    gpt2 = data / "reasoning/tokenized/gpt2"
    return {
        "2048": Family(
            lambda: StepDataset(data / "macroxue/packs/sample_d6").source(), move, is_causal=False
        ),
        "chess": Family(
            lambda: GameSpliceDataset(months, "train").source(), next_move, is_causal=True
        ),
        "SYNTH": Family(
            lambda: Packed(SynthKDDocuments(documents), LONGEST), next_token, is_causal=True
        ),
        "reasoning": Family(
            lambda: ShardReader(gpt2, splits=["train"], documents=True).source(),
            next_token,
            is_causal=True,
        ),
        "puzzles": Family(
            lambda: PuzzleExamples(data / "puzzles/sudoku-sample").source(), cells, is_causal=False
        ),
    }


class SmallNet(torch.nn.Module):
    """One layer of attention of width 48 over 2,048 ids."""

    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.is_causal = is_causal
        self.ids = torch.nn.Embedding(IDS, WIDTH)
        self.places = torch.nn.Embedding(512, WIDTH)
        self.layer = torch.nn.TransformerEncoderLayer(
            WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True
        )
        self.out = torch.nn.Linear(WIDTH, IDS)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return logits [B, S, 2048] of ids [B, S]."""
        length = ids.shape[1]
        behind = torch.nn.Transformer.generate_square_subsequent_mask(length)
        values = self.ids(ids) + self.places(torch.arange(length))
        mixed = self.layer(values, behind if self.is_causal else None, is_causal=self.is_causal)
        return self.out(mixed)


def losses_of(family: Family, steps: int, checkpoint: Path) -> Iterator[float]:
    """Train a net, and give the mean loss of a label in each step.

    checkpoint: a folder. After half of the steps, net and state of the loader are written there;
        what follows knows nothing but these files, as after a crash.
    """
    torch.manual_seed(SEED)
    net = SmallNet(family.is_causal)
    training = net, torch.optim.Adam(net.parameters(), lr=0.01)
    loader = Loader(endless(family, steps), BATCH)
    yield from trained(family, loader, training, steps // 2)
    torch.save([part.state_dict() for part in training], checkpoint / "net.pt")
    (checkpoint / "loader.json").write_text(json.dumps(loader.state_dict()))

    net = SmallNet(family.is_causal)
    training = net, torch.optim.Adam(net.parameters())
    states = torch.load(checkpoint / "net.pt")
    training[0].load_state_dict(states[0])
    training[1].load_state_dict(states[1])
    loader = Loader(endless(family, steps), BATCH)
    loader.load_state_dict(json.loads((checkpoint / "loader.json").read_text()))
    yield from trained(family, loader, training, steps - steps // 2)


def endless(family: Family, steps: int) -> Plan:
    """A plan with samples for all steps, epoch after epoch."""
    source = family.source()
    epochs = steps * BATCH / int(source.cuts[-1])
    return Plan(mixture({"samples": source}, epochs={"samples": epochs}, max_epochs=1e9), seed=SEED)


def trained(family: Family, loader: Loader, training: Any, steps: int) -> Iterator[float]:
    """Take steps, and give the loss of each."""
    net, optimizer = training
    for _, batch in zip(range(steps), loader, strict=False):
        task = family.task(batch)
        logits = net(task.ids)
        each = torch.nn.functional.cross_entropy(logits.mT, task.labels, reduction="none")
        loss = (each * task.mask).sum() / task.mask.sum().clamp(min=1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def plot(losses: Mapping[str, Sequence[float]]) -> str:
    """The losses as an SVG on a background of its own: means of ten steps of each family."""
    left, right, top, bottom = 52, 560, 84, 300
    steps = max(map(len, losses.values()))
    most = 2.0 * -(-max(max(values) for values in losses.values()) // 2)
    across, down = (right - left) / max(steps - 1, 1), (bottom - top) / most
    body = [small_text(20, 30, "Small nets on the samples of five families", BOLD, right)]
    body.append(small_text(right, 30, "mean loss of a label, ten steps", END, right))
    for loss in range(0, int(most) + 1, 2):
        y = bottom - loss * down
        body.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{RULE}" stroke-width="0.7"/>')
        body.append(small_text(left - 8, y + 4, str(loss), END, right))
    middle = left + across * (steps // 2)
    body.append(f'<path d="M{middle:.1f} {top}V{bottom}" stroke="{INK}" stroke-dasharray="3 3"/>')
    body.append(small_text(middle, bottom + 20, f"resumed after {steps // 2} steps", MIDDLE, right))
    body.append(small_text(right, bottom + 20, f"step {steps}", END, right))
    for number, (name, values) in enumerate(losses.items()):
        colour, x = COLOURS[name], left + 105 * number
        means = [values[max(0, k - 9) : k + 1] for k in range(len(values))]
        points = " ".join(
            f"{left + across * k:.1f},{bottom - down * sum(last) / len(last):.1f}"
            for k, last in enumerate(means)
        )
        body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body.append(f'<path d="M{x} 60h18" stroke="{colour}" stroke-width="2.6"/>')
        body.append(small_text(x + 24, 64, name, f" fill='{colour}'{BOLD}", right))
    return small_card(336, body, 580)


def main() -> None:
    """Train a net for each family, print its losses, and draw them if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("data"), help="with the samples")
    parser.add_argument("--families", nargs="+", choices=list(COLOURS), default=list(COLOURS))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--checkpoint", type=Path, default=Path("build/checkpoint"))
    parser.add_argument("--plot", type=Path, help="an SVG file to write")
    args = parser.parse_args()
    args.checkpoint.mkdir(parents=True, exist_ok=True)
    known, losses = families(args.data), {}
    for name in args.families:
        losses[name] = list(losses_of(known[name], args.steps, args.checkpoint))
        first, last = (sum(part) / len(part) for part in (losses[name][:10], losses[name][-10:]))
        print(
            f"{name}: loss {first:.3f} in the first ten steps, {last:.3f} in the last", flush=True
        )
    if args.plot:
        args.plot.write_text(plot(losses))


if __name__ == "__main__":
    try:
        main()
    except GristmillError as error:
        raise SystemExit(f"{error}; `make run` builds the samples, --data says where") from error
