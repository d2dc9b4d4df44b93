"""Amounts as people read them: bytes, seconds, counts of things."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("kB", "MB", "GB", "TB", "PB")


def size(octets: float) -> str:
    """Bytes in the largest unit that gives 1 or more, in steps of 1,000: `812 bytes`, `1.2 GB`."""
    if octets < 1000:
        return f"{octets:.0f} bytes"
    unit = 0
    amount = octets / 1000
    while amount >= 999.95 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """A length of time: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(amount: float, unit: str) -> str:
    """An amount with its unit: `1,500 rows`; bytes as `size` gives them."""
    if unit == "bytes":
        return size(amount)
    return f"{amount:,.0f} {unit}"


def needed(rows: int, octets: int) -> str:
    """What a build takes at most: `up to 3,200,000 rows, 12.0 GB on disk while it builds`.

    0 is unknown.
    """
    parts = [f"{rows:,} rows"] if rows else []
    parts += [f"{size(octets)} on disk while it builds"] if octets else []
    return f"up to {', '.join(parts)}" if parts else "its size is not known"
