"""The licence that files beside the data name.

Source: `docs/corpora.md`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.untrusted.files import LinkRule, open_file

_HEAD: Final = 1 << 15
_FILES: Final = re.compile(r"(?:licen[cs]e|copying|readme|dataset_?card)[^/]*", re.IGNORECASE)
_SAID: Final = re.compile(r"^\s*licen[cs]e\s*:\s*([A-Za-z0-9.+-]{2,40})\s*$", re.I | re.M)
_WORDS: Final = (
    ("Apache-2.0", r"apache license,?\s+version 2|apache[- ]2\.0"),
    ("CC-BY-NC-SA-4.0", r"by-nc-sa[- ]4\.0|attribution-noncommercial-sharealike 4\.0"),
    ("CC-BY-NC-4.0", r"by-nc[- ]4\.0|attribution-noncommercial 4\.0"),
    ("CC-BY-SA-4.0", r"by-sa[- ]4\.0|attribution-sharealike 4\.0"),
    ("CC-BY-4.0", r"\bcc[- ]by[- ]4\.0|attribution 4\.0 international"),
    ("CC0-1.0", r"\bcc0\b"),
    ("MIT", r"\bmit license\b|permission is hereby granted, free of charge, to any person"),
    ("ODC-BY-1.0", r"odc-by|open data commons attribution"),
    ("GPL-3.0", r"gnu general public license\s+version 3"),
    ("BSD-3-Clause", r"redistribution and use in source and binary forms"),
)


def licence_of(root: Path, names: Collection[str], links: LinkRule) -> tuple[str, str]:
    """The licence that a file names, and that file; two empty texts where none does.

    root: the folder. names: of the files in it. The key `license` of a dataset card comes first.
    """
    texts = {}
    for name in filter(_FILES.fullmatch, sorted(names)):
        with suppress(GristmillError, OSError), open_file(root / name, root=root, links=links) as f:
            texts[name] = f.read(_HEAD).decode("utf-8", "replace")
    ids = {each.lower(): each for each, _ in _WORDS}
    for name, text in texts.items():
        if found := _SAID.search(text):
            return ids.get(found[1].lower(), found[1]), name
    said = (
        (licence, name)
        for name, text in texts.items()
        for licence, form in _WORDS
        if re.search(form, text, re.IGNORECASE)
    )
    return next(said, ("", ""))
