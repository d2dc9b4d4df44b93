from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.families import splits_of
from tests.consumers.datatrove import DATATROVE

pytestmark = pytest.mark.slow
SEQ_LEN = 64


def windows(path: Path, size: int) -> list[tuple[list[int], list[int]]]:
    """The windows of a file, and for each token its place in its document, by the index."""
    data = path.read_bytes()
    ends = np.frombuffer(Path(f"{path}.index").read_bytes(), "<u8").astype(np.int64)
    found = []
    for item in range(len(data) // size // (SEQ_LEN + 1)):
        start = item * (SEQ_LEN + 1)
        raw = data[start * size : (start + SEQ_LEN + 1) * size]
        ids = np.frombuffer(raw, np.uint16 if size == 2 else np.uint32)
        inside = {0, *(int(end) - start for end in ends if start < end <= start + SEQ_LEN)}
        places: list[int] = []
        for at in range(SEQ_LEN + 1):
            places.append(0 if at in inside else places[-1] + 1)
        found.append((ids.tolist(), places))
    return found


@DATATROVE.opens(
    "reasoning/gpt2_shards",
    "reasoning/tokens",
    "synth/kd_shards",
    how="the folders of `gristmill project --to datatrove`",
)
@pytest.mark.parametrize("asset", ["reasoning/gpt2_shards", "reasoning/tokens", "synth/kd_shards"])
def test_documents_and_windows_are_those_of_the_artifact(asset, sample_root, tmp_path):
    place, _ = sample_root.record(asset)
    words = ["project", str(place), str(tmp_path / "out"), "--to", "datatrove", "--tokens", "300"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    splits, several = [*splits_of(asset, place)], 0
    for name in dict.fromkeys(each.name for each in splits):
        wanted = []
        for tokens, bounds in (
            batch for each in splits if each.name == name for batch in each.tokens.batches()
        ):
            wanted += [tokens[begin:end].tolist() for begin, end in pairwise(bounds)]
        size = 2 if splits[0].tokens.ids <= 1 << 16 else 4
        files = sorted((tmp_path / "out" / name).glob("*.ds"))
        several += len(files) > 1
        found = []
        for path in files:
            ids = np.fromfile(path, "<u2" if size == 2 else "<u4").tolist()
            ends = np.fromfile(f"{path}.index", "<u8").tolist()
            assert ends[-1] == len(ids) == int(Path(f"{path}.metadata").read_text().split("\n")[1])
            found += [ids[begin:end] for begin, end in pairwise([0, *ends])]
            for number, (window, places) in enumerate(windows(path, size)):
                assert window == ids[number * (SEQ_LEN + 1) :][: SEQ_LEN + 1]
                marks = [at for at in range(1, len(window)) if places[at] == 0]
                ended = [at + 1 for at, token in enumerate(window[:-1]) if token == found[0][-1]]
                assert marks == ended
        assert found == wanted
    assert several
