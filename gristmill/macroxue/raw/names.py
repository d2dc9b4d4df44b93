"""The names of valuation types that a part of a drop has met so far.

Source: docs/formats/macroxue.md#valuation-types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.macroxue.format.valuation_types import MAX_NAMES, STANDARD_NAMES

_BYTES = 32
"""Longest name that the scanner reads itself."""

# JSON may spell these characters as they are.
_PLAIN = re.compile(rf"[ !#-\[\]-~]{{0,{_BYTES}}}")


class TooManyNames(GristmillError):
    """More names than ids of `valuation_type`: an error of the drop, not of one run."""


@dataclass
class Names:
    """The valuation names by id: the three standard names, then others as they occur."""

    known: list[str] = field(default_factory=lambda: list(STANDARD_NAMES))
    _plain: npt.NDArray[np.uint8] = field(default_factory=lambda: _plain_names([]))

    def id_of(self, name: str) -> int:
        """The id of a name; a new name gets the next id. Raises TooManyNames."""
        if name not in self.known:
            if len(self.known) == MAX_NAMES:
                raise TooManyNames(
                    f"valuation_type {name[:40]!r} would be name {MAX_NAMES + 1}, but a pack has at"
                    f" most {MAX_NAMES}: pack fewer drops together"
                )
            self.known.append(name)
            self._plain = _plain_names(self.known)
        return self.known.index(name)

    def plain(self) -> npt.NDArray[np.uint8]:
        """The names that are not standard as `fast_scanner.scan` takes them."""
        return self._plain


def _plain_names(known: list[str]) -> npt.NDArray[np.uint8]:
    """uint8 [M, 34]: length, id and bytes of each name that JSON spells as it is; not the three."""
    plain = [
        bytes([len(name), number]) + name.encode().ljust(_BYTES, b"\0")
        for number, name in enumerate(known)
        if number >= len(STANDARD_NAMES) and _PLAIN.fullmatch(name)
    ]
    return np.frombuffer(b"".join(plain), np.uint8).reshape(-1, _BYTES + 2)
