"""The parser of the files of a dataset of puzzles, as training reads them."""

from __future__ import annotations

from tests.fuzz.parser import TEN_THOUSAND, Parser, file, folder, split

_READ = "gristmill.puzzles.read"
_FIELDS = ("inputs", "labels", "puzzle_identifiers", "puzzle_indices", "group_indices")


def dataset(data: bytes) -> None:
    """dataset.json and the arrays of the set `all`: the batches are those of a plain reader."""
    import numpy as np

    from gristmill.puzzles.read.dataset import PuzzleDataset, PuzzleDatasetConfig
    from gristmill.reading.reader import Reader
    from tests.puzzles.read.plain_reader import PlainReader

    metadata, *arrays = split(data, 6)
    with folder("puzzles") as root:
        file("puzzles/train/dataset.json", metadata)
        for field, octets in zip(_FIELDS, arrays, strict=True):
            file(f"puzzles/train/all__{field}.npy", octets)
        for test in (False, True):
            config = PuzzleDatasetConfig(1, root, 2, test, 1, 0, 1)
            reader = Reader.__new__(PuzzleDataset)  # without torch
            PuzzleDataset.__init__(reader, config)
            batches = list(reader)
            if not test and any(len(made.inputs) > made.groups for made in reader.held.sets):
                continue  # which examples of a puzzle are chosen is our own
            plain = PlainReader(root, "train", seed=1, size=2, test=test)
            for ours, theirs in zip(batches, plain, strict=True):
                assert ours[::2] == theirs[::2]
                for field, column in ours[1].items():
                    np.testing.assert_array_equal(column, theirs[1][field])


PARSERS = (
    Parser(
        "puzzles_dataset",
        dataset,
        (
            *(f"{_READ}.{name}" for name in ("rows", "dataset", "batch_kernels")),
            "gristmill.puzzles.format.metadata",
            "gristmill.untrusted.npy_header",
            "numpy.lib._format_impl",
        ),
        inputs=TEN_THOUSAND,
        interpreted=True,
        words=(
            *(b"\x93NUMPY\x01\x00", b"'descr':", b"'shape':", b"(0,)", b"(2, 3)", b"<i4", b"|u1"),
            *(b">i4", b"<u8", b"<f4", b"|V", b"'fortran_order':", b"True", b"\xff\xfe"),
            *(b'"pad_id":', b'"ignore_label_id":', b'"seq_len":', b'"sets":', b"null", b"1e999"),
        ),
    ),
)
