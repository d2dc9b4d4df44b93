"""The footers of Parquet files: columns and numbers of rows, read in one child process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.raw.parquet import check_begin
from gristmill.untrusted import child
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import HEAD_BYTES
from gristmill.untrusted.parquet import opened

_SECONDS: Final = 60


class Footer(NamedTuple):
    """What a footer says. names: of columns; binary: those that hold bytes; rows: their number."""

    names: Sequence[str]
    binary: Sequence[str]
    rows: int


def footer_of(path: Path, links: LinkRule) -> Footer:
    """The footer of one file. Raises BadInput for a file that is not readable."""
    found = _read([path], links)[0]
    if isinstance(found, str):
        raise BadInput(path, found)
    return found


def footers_of(paths: Sequence[Path], links: LinkRule) -> dict[Path, Footer]:
    """The footers of files, but of those that cannot be read, or that end the child."""
    good = []
    for path in paths:
        with suppress(GristmillError, OSError), ExitStack() as files:
            _opened(path, links, files)
            good.append(path)
    found: list[Footer | str] = []
    with suppress(GristmillError, OSError):
        found = _read(good, links) if good else []
    return {path: each for path, each in zip(good, found, strict=False) if isinstance(each, Footer)}


def _opened(path: Path, links: LinkRule, files: ExitStack) -> int:
    """The descriptor of an open file that begins as Parquet does."""
    file = files.enter_context(open_file(path, root=path.parent, links=links))
    check_begin(os.pread(file.fileno(), HEAD_BYTES, 0), path)
    return file.fileno()


def _read(paths: Sequence[Path], links: LinkRule) -> list[Footer | str]:
    with ExitStack() as files:
        descriptors = [_opened(path, links, files) for path in paths]
        found: list[Footer | str] = child.run(
            footers,
            list(paths),
            file=paths[0],
            descriptors=descriptors,
            seconds=_SECONDS + len(paths),
        )
    return found


def footers(*given: Any) -> list[Footer | str]:
    """The footers of Parquet files, or why one cannot be read. A child runs it."""
    *descriptors, paths = given
    found: list[Footer | str] = []
    for descriptor, path in zip(descriptors, paths, strict=True):
        try:
            found.append(_footer(descriptor, path))
        except BadInput as error:
            found.append(error.rule)
    return found


def _footer(descriptor: int, path: Path) -> Footer:
    import pyarrow as pa

    parquet = opened(descriptor, path)
    schema = parquet.schema_arrow
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)

    def holds_bytes(kind: pa.DataType) -> bool:
        inner = [kind.field(place).type for place in range(kind.num_fields)]
        return any(check(kind) for check in checks) or any(map(holds_bytes, inner))

    binary = [each.name for each in schema if holds_bytes(each.type)]
    return Footer(schema.names, binary, parquet.metadata.num_rows)
