"""An artifact of two files in two versions, for tests of single modules."""

from pathlib import Path

import pytest

from tests.reading.readers import Part, publish_part


class Tiny:
    """Two files, `a.bin` with four equal bytes and `b.json`, as versions 0 and 1."""

    def __init__(self, scratch: Path) -> None:
        made = []
        for version in (0, 1):
            made.append(scratch / f"made{version}")
            made[-1].mkdir(parents=True)
            (made[-1] / "a.bin").write_bytes(b"%d" % version * 4)
            (made[-1] / "b.json").write_text(f"[{version}]")
        self.part = Part("tiny/p", "tiny/p", "p", made)
        self.derived = Part("tiny/q", "tiny/q", "q", made, source=0)
        self.root = scratch / "data"
        self.folder = self.root / "tiny/p"
        self.publish(0)

    def publish(self, version: int) -> None:
        publish_part(self.root, [self.part], 0, version)

    def derive(self) -> Path:
        publish_part(self.root, [self.part, self.derived], 1, 0)
        return self.root / "tiny/q"


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny(tmp_path)
