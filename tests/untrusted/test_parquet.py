"""What helps with a file that Arrow does not read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gristmill.untrusted.parquet import cure

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
def test_a_file_is_got_again_only_where_its_bytes_are_wrong(error: Exception, advice: str) -> None:
    assert cure(error) == advice


def test_an_error_of_the_disk_is_no_damage() -> None:
    assert cure(OSError(5, "Input/output error")).startswith("Input/output error: the disk or the ")
    assert cure(OSError("Couldn't deserialize thrift")) == "get it again"
