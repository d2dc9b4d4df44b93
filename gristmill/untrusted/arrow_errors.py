"""What a person does about a Parquet file that Arrow does not read."""

from __future__ import annotations

from gristmill.contract import is_of_machine, os_reason


def cure(error: Exception) -> str:
    """The advice at the end of an error: to get the file again helps only where bytes are damaged.

    error: what Arrow raised.
    """
    import pyarrow as pa

    if isinstance(error, OSError) and is_of_machine(error):
        return os_reason(error)
    is_encrypted = "crypt" in str(error).lower()
    if is_encrypted or isinstance(error, pa.ArrowNotImplementedError):
        return "write it again without encryption, with a compression and types that Arrow reads"
    return "get it again"
