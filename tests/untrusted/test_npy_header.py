"""The header of an npy file is read, or refused by a ValueError; nothing is unpickled."""

import io
import pickle

import numpy as np
import pytest

from gristmill.untrusted.npy_header import npy_header, read_header


def _file(text: str, version: tuple[int, int] = (1, 0)) -> io.BytesIO:
    header = text.encode().ljust(117) + b"\n"
    size = len(header).to_bytes(2 if version == (1, 0) else 4, "little")
    return io.BytesIO(b"\x93NUMPY" + bytes(version) + size + header + b"rest")


def _text(descr: object = "<i8", fortran: object = False, shape: object = (3, 2)) -> str:
    return repr({"descr": descr, "fortran_order": fortran, "shape": shape})


@pytest.mark.parametrize("shape", [(0, 2), (3, 2), (2**40, 2), (5,)])
def test_a_header_is_that_of_numpy_and_its_length_does_not_depend_on_the_rows(shape):
    header = npy_header("<i8", shape)
    assert len(header) == len(npy_header("<i8", (0, *shape[1:])))
    assert read_header(io.BytesIO(header)) == (shape, False, np.dtype("<i8"))
    if shape[0] < 9:
        file = io.BytesIO()
        np.save(file, np.zeros(shape, "<i8"))
        assert file.getvalue().startswith(header)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("array", [np.zeros((0, 2), "<i8"), np.ones((3, 2), ">i4", "F")])
def test_what_numpy_wrote_is_read(array, version):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    file.seek(0)
    assert read_header(file) == (array.shape, not array.flags.c_contiguous, array.dtype)
    assert len(file.read()) == array.nbytes


@pytest.mark.parametrize(
    "text",
    [
        _text()[:-1] + "(",
        "{" * 5000,
        "1" * 5000,
        "\0",
        _text(shape=(3, -1)),
        _text(shape=(True, 2)),
        _text(shape=(1 << 62,)),
        _text(shape=3),
        _text(descr="no"),
        # NumPy 2.4 divides by zero where it sees these, and the process ends.
        _text(descr="M8[s/0]"),
        _text(descr="<m8[D/0]"),
        _text(descr=[("a", "<i4"), ("b", [("c", "<M8[s/0]")])]),
        _text(descr="M8[s/0]").replace("M8", "\\x4d8"),
        _text(descr="<M8[s]"),
        _text(descr=()),
        _text(descr=((),)),
        _text(descr=("<i8",)),
        _text(descr=[("a", [("b", ())])]),
        _text(descr=[("a",)]),
        _text(descr=[("a", "<i4", (2,), 0)]),
        _text(descr=["a"]),
        _text(descr=None),
        _text(descr="<i4" + "0" * 10),
        "[]",
        "{}",
        _text(fortran=2),
        "",
    ],
)
def test_a_broken_header_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        read_header(_file(text))


@pytest.mark.parametrize("size", [10_000, 10_001])
def test_a_header_has_at_most_so_many_bytes(size):
    text = _text().encode().ljust(size - 1) + b"\n"
    file = io.BytesIO(b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text + b"rest")
    if size > 10_000:
        with pytest.raises(ValueError, match="a header of 10,001 bytes"):
            read_header(file)
        return
    assert read_header(file)[0] == (3, 2)
    assert file.read() == b"rest"


def test_what_python_2_wrote_is_read_and_nothing_is_unpickled():
    shape, fortran, dtype = read_header(_file(_text().replace("(3, 2)", "(3L, 2L)")))
    assert (shape, fortran, dtype) == ((3, 2), False, np.dtype("<i8"))
    assert read_header(_file(_text(shape=((1 << 62) - 1,))))[0] == ((1 << 62) - 1,)
    with pytest.raises(ValueError, match=r"version \(3, 0\) is not 1.0 or 2.0"):
        read_header(_file(_text(), (3, 0)))

    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return pytest.fail, ("unpickled",)

    file = io.BytesIO()
    np.lib.format.write_array(file, np.zeros(2, "O"))
    header = file.getvalue()[:128]
    assert read_header(io.BytesIO(header + pickle.dumps(Bomb())))[2] == np.dtype("O")


@pytest.mark.parametrize(
    "dtype",
    [
        *("?", "<i1", ">u2", "<f2", "<f8", "<c16", "S3", "<U5", "V7", "O"),
        np.dtype([("a", "<i4"), ("b", "u1", (16,)), ("c", [("d", "<f4", (2, 2))])]),
        np.dtype([("a b/c", "<i4")]),
        np.dtype([(("title", "name"), "<i4")]),
        np.dtype({"names": ["a"], "formats": ["<i2"], "offsets": [2], "itemsize": 8}),
    ],
    ids=str,
)
def test_every_type_but_times_is_read(dtype):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.zeros(2, dtype))
    file.seek(0)
    assert read_header(file)[2] == np.dtype(dtype)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x01", b"PK\x03\x04" + b" " * 200])
def test_another_file_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"."):
        read_header(io.BytesIO(data))
