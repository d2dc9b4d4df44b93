"""Opens a file in a drop, or one that was named: its contents are not trusted in either case.

See also `files.py`: how a file of a drop is opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from gristmill.contract import BadInput
from gristmill.hashing import named_reader
from gristmill.untrusted.files import LinkRule, kind_refusal, open_file


def opened(path: Path, links: LinkRule | None = None) -> BinaryIO:
    """Open a regular file for reading.

    path: the file.
    links: what happens if it is a link, for a file of a drop; None (default) for a file that
        a person or our own code named: a link is followed.

    Raises BadInput for a pipe, socket, device or folder, without waiting for it, and OSError
    where the file is not there or cannot be read.
    """
    if links is not None:
        return open_file(path, root=path.parent, links=links)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if reason := kind_refusal(os.fstat(descriptor).st_mode):
            raise BadInput(path, reason)
        return named_reader(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
