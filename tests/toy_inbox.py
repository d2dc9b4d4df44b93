"""Toy inboxes: what decides about their drops, and what a family's catalog would say of them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill import families
from gristmill.contract import GristmillError
from gristmill.inbox import AT_ONCE, FOLDER, Asked, DropKind, Settling, Shape
from gristmill.inbox.listing import Account, IsThere
from gristmill.inbox.readiness import HashOf
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

Refuse = Callable[[Path], str | None]


def takes_all(_drop: Path) -> str | None:
    """No drop is refused."""
    return None


def asked(
    refuse: Refuse = takes_all,
    links: LinkRule = REFUSE_LINKS,
    settling: Settling = AT_ONCE,
    hash_of: Callable[[Path], HashOf] = lambda _: lambda _name: None,
) -> Asked:
    """What decides about the drops of a toy inbox; by default two equal looks are enough."""
    return Asked(refuse, links, settling, hash_of)


def toy_kind(
    refuse: Refuse = takes_all,
    shape: Shape = FOLDER,
    needs: Callable[[Path, Path, IsThere], None] = lambda _drop, _root, _is_there: None,
) -> DropKind:
    """The drops of a toy inbox; the account of one that is not refused has its name.

    refuse: takes a drop, returns why it is refused, or None. shape, needs: as of `DropKind`.
    """

    def account(drop: Path, _links: LinkRule) -> Account:
        if reason := refuse(drop):
            raise GristmillError(reason)
        return Account({"": [drop.name]})

    return DropKind(account, shape, needs)


def add_inboxes(monkeypatch: pytest.MonkeyPatch, **kinds: DropKind) -> None:
    """Let inboxes be in the families' catalogs; those that are there stay."""
    everything = {**families.inboxes(), **kinds}
    monkeypatch.setattr(families, "inboxes", lambda: everything)
    monkeypatch.setattr(families, "inboxes_of", lambda _: everything)
    monkeypatch.setattr(families, "drop_kind", everything.__getitem__)


def spy_on_reads(monkeypatch: pytest.MonkeyPatch, root: Path) -> list[str]:
    """Returns a list that gets the name of each file of a drop that is opened, but for marks."""
    names: list[str] = []
    real, drops = os.open, root.resolve() / "drops"

    def spy(path: str | Path, flags: int, *rest: int, **options: int | None) -> int:
        descriptor = real(path, flags, *rest, **options)
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        is_data = place.is_file() and not place.name.endswith((".done", ".sha256", "SHA256SUMS"))
        if is_data and place.is_relative_to(drops) and flags & os.O_ACCMODE == os.O_RDONLY:
            names.append(place.name)
        return descriptor

    monkeypatch.setattr(os, "open", spy)
    return names
