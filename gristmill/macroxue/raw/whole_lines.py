"""The lines of a batch as they are in the file, while the scanner reads them without spaces.

See also `json_spaces.py`: which spaces are taken out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass
class WholeLines:
    """The lines of a batch as they are in the file; errors name places in them.

    starts: int64, where each line begins in it from the line `first` on, once they were squeezed.
    """

    buffer: bytearray
    starts: npt.NDArray[np.int64] | None = None
    first: int = 0

    def squeeze(self, at: int, end: int, first: int, padding: int) -> tuple[bytearray, int]:
        """Lines without spaces between tokens, for the scanner, and the end of their text."""
        from gristmill.macroxue.raw.json_spaces import squeezed

        self.first = first
        buffer, size, self.starts = squeezed(self.buffer, at, end, padding)
        return buffer, size

    def line(self, number: int, at: int, stop: int) -> bytes:
        """A line as it is in the file."""
        if self.starts is not None:
            at, stop = self.starts[number - self.first : number - self.first + 2].tolist()
        return bytes(self.buffer[at:stop])
