"""The sample drop of SYNTH."""

import pyarrow.parquet as pq

from gristmill.synth.raw import COLUMNS, DONE, TEXTS
from gristmill.synth.samples import write_drop, write_samples


def test_equal_arguments_give_equal_files_and_the_unusual_texts_are_there(tmp_path):
    first, second = (write_drop(tmp_path / name, files=2) for name in "ab")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    other = write_drop(tmp_path / "c", files=2, seed=2)
    assert other[0].read_bytes() != first[0].read_bytes()
    table = pq.read_table(first[0])
    assert tuple(table.schema.names) == COLUMNS
    texts = " ".join(
        t or "" for name in TEXTS for p in first for t in pq.read_table(p)[name].to_pylist()
    )
    assert "<|end|>" in texts
    assert (tmp_path / "a" / DONE).exists()


def test_the_sample_of_a_data_root_is_eight_files_of_sixty_rows_and_its_settings(tmp_path):
    write_samples(tmp_path)
    files = sorted(tmp_path.glob("*.parquet"))
    assert [path.name for path in files] == [f"synth_00{number}.parquet" for number in range(1, 9)]
    assert {pq.read_metadata(path).num_rows for path in files} == {60}
    settings = (tmp_path / "gristmill.toml").read_text()
    assert settings == "[synth.kd_shards]\nvalid_fraction = 0.1\n"
    assert (tmp_path / DONE).exists()
