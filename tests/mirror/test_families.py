"""What each family publishes goes through a mirror and back."""

import pytest

from gristmill import provenance
from tests.mirror.roots import clean, files, pulled, pushed
from tests.mirror.s3 import served


@pytest.mark.parametrize("kind", ["folder", pytest.param("s3", marks=pytest.mark.engines)])
def test_all_samples_go_there_and_back(kind, sample_root, tmp_path):
    root, got = sample_root.data, tmp_path / "b"

    def there_and_back(url: str) -> None:
        assert not any(each.error for each in pushed(root, url))
        assert not any(each.created for each in pushed(root, url))
        done = pulled(got, url)
        assert not any(each.error or each.skipped for each in done)
        assert len(done) == len(list(sample_root.records()))
        assert not any(each.changed for each in pulled(got, url))

    if kind == "folder":
        there_and_back(str(tmp_path / "m"))
    else:
        with served() as s3:
            there_and_back(s3.url)
    for _, record in sample_root.records():
        paths = [each.path for each in record.outputs] + [provenance.RECORD]
        for path in (f"{record.artifact}/{each}" for each in paths):
            if (root / path).exists():
                assert (got / path).read_bytes() == (root / path).read_bytes(), path
    assert clean(got) and len(files(got)) > 100
