"""What helps with a file that Arrow does not read, and where it is damaged."""

import pyarrow as pa
import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.parquet import Reading, cure

WRITTEN_AGAIN = "write it again without encryption, with a compression and types that Arrow reads"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (pa.ArrowNotImplementedError("Support for codec 'lzo' not built"), WRITTEN_AGAIN),
        (OSError("Could not read encrypted metadata, no decryption found"), WRITTEN_AGAIN),
        (pa.ArrowInvalid("Parquet magic bytes not found in footer"), "get it again"),
        (OSError("Couldn't deserialize thrift: TProtocolException"), "get it again"),
    ],
)
def test_a_file_is_got_again_only_where_its_bytes_are_wrong(error, advice):
    assert cure(error) == advice


def test_an_error_of_the_disk_is_no_damage_and_other_errors_pass(tmp_path):
    assert cure(OSError(5, "Input/output error")).startswith("Input/output error: the disk or the ")
    assert cure(OSError("Couldn't deserialize thrift")) == "get it again"
    path = tmp_path / "x.parquet"
    path.touch()
    with path.open("rb") as file, pytest.raises(AssertionError), Reading(file.fileno(), path):
        raise AssertionError


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (
            pa.ArrowInvalid("bad \n page"),
            "is damaged in this row or one after it (bad page): get it",
        ),
        (MemoryError(), "takes too much memory to read in this row or one after it: it looks like"),
    ],
)
def test_what_ends_the_reading_names_the_first_row_that_was_not_read(tmp_path, error, rule):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1")
    with path.open("rb") as file:
        reading = Reading(file.fileno(), path, 7)
        with pytest.raises(BadInput) as caught, reading:
            reading.row += 2
            raise error
    assert (caught.value.row, caught.value.rule.startswith(rule)) == (10, True)
