"""What a mirror holds, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gristmill.mirror import versions
from gristmill.mirror.layout import Version, WrongVersion
from gristmill.mirror.store import Store
from gristmill.run import amounts


def lines(url: str | Store, names: Sequence[str] = (), threads: int = 8) -> Iterator[str]:
    """A line for each version, the newest first: what it is, when it was pushed, and its sha256.

    url, names: as for `pull`.

    Raises MirrorError where the mirror cannot be read, GristmillError for a name that means
    nothing.
    """
    store = url if isinstance(url, Store) else Store(url, make=False)
    known = versions.numbers(store)
    newest = versions.newest(store, known, threads)
    items = [
        (place.entry, version.asset if isinstance(version, Version) else "", place)
        for place, version in newest.items()
    ]
    for entry, _, place in versions.chosen(items, names, store.url):
        for number in reversed(known[place]):
            try:
                version = versions.read(store, place, number)
            except WrongVersion as error:
                yield str(error)
                continue
            yield (
                f"{entry.title}: version {number}, data version {version.data_version[:12]}, "
                f"pushed {version.pushed}, {version.files:,} files, "
                f"{amounts.size(version.total_bytes)}, sha256 {version.sha256}"
            )
