"""A toy model is trained for some steps on each kind, through a data loader of torch."""

from pathlib import Path
from typing import Any

import pytest

from examples.lights_out import LightsOutConfig, build_lights_out
from gristmill.puzzles.config import KINDS
from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
from tests.later import later
from tests.puzzles.kinds import built

torch = later("torch")
torch_data = later("torch.utils.data", "torch")

BATCH, STEPS = 16, 24


def toy(metadata: Any, width: int = 32) -> Any:
    class Toy(torch.nn.Module):  # type: ignore[misc]
        """Logits of each position from its token, its place, the puzzle, and the mean of all."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens = torch.nn.Embedding(metadata.vocab_size, width)
            self.places = torch.nn.Embedding(metadata.seq_len, width)
            self.puzzles = torch.nn.Embedding(metadata.num_puzzle_identifiers, width)
            self.mixed = torch.nn.Linear(width, width)
            self.logits = torch.nn.Linear(width, metadata.vocab_size)

        def forward(self, batch: dict[str, Any]) -> Any:
            """Logits [B, vocab_size, seq_len]."""
            each = self.tokens(batch["inputs"]) + self.places.weight
            each = each + self.puzzles(batch["puzzle_identifiers"])[:, None]
            hidden = torch.relu(self.mixed(each) + each.mean(dim=1, keepdim=True))
            return self.logits(hidden).transpose(1, 2)

    return Toy()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "lights out"])
def test_the_loss_of_a_toy_model_falls(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if kind == "lights out":
        build_lights_out(out, LightsOutConfig(boards=100))
    else:
        built(kind, tmp_path)
    data = PuzzleDataset(PuzzleDatasetConfig(0, out, BATCH, False, 4, 0, 1))
    torch.manual_seed(0)
    model = toy(data.metadata)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    loader = torch_data.DataLoader(
        data, batch_size=None, num_workers=1, persistent_workers=True, prefetch_factor=4
    )
    losses: list[float] = []
    while len(losses) < STEPS:
        for _, batch, size in loader:
            assert size == BATCH == len(batch["inputs"])
            labels = batch["labels"].long()
            loss = torch.nn.functional.cross_entropy(model(batch), labels, ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses, "a pass has at least one batch"
    assert sum(losses[-4:]) / 4 < 0.8 * losses[0], losses
    test = PuzzleDataset(PuzzleDatasetConfig(0, out, BATCH, True, 1, 0, 1), "test")
    assert test.metadata.vocab_size == data.metadata.vocab_size
    seen = 0
    with torch.no_grad():
        for _, batch, size in torch_data.DataLoader(test, batch_size=None):
            assert model(batch).isfinite().all()
            seen += size
    assert seen == sum(made.examples for made in test.held.sets)
