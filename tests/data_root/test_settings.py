"""What the tables of a data root's `gristmill.toml` mean there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.data_root.settings import RootSettings


@pytest.mark.parametrize(
    ("push", "means"),
    [
        ("../barn", "{above}/barn"),
        ("/barn/./grain", "/barn/grain"),
        ("s3://barn/../grain", "s3://barn/../grain"),
        ("", ""),
    ],
)
def test_a_mirror_in_a_folder_is_found_from_the_data_root_and_an_address_stays(
    tmp_path: Path, push: str, means: str
) -> None:
    root = tmp_path / "data"
    root.mkdir()
    (root / "gristmill.toml").write_text(f'[mirror]\npush = "{push}"\n')
    assert RootSettings(root).mirror().push == means.format(above=tmp_path)


def test_a_mirror_for_an_asset_that_is_none_is_refused_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "gristmill.toml").write_text('[mirror]\nassets = ["macroxue/pck"]\n')
    with pytest.raises(BadInput) as caught:
        RootSettings(tmp_path).mirror()
    assert str(caught.value) == (
        f"{tmp_path}/gristmill.toml: [mirror] assets: no asset is "
        '"macroxue/pck": did you mean macroxue/pack?'
    )
