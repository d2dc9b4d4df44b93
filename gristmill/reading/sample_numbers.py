"""The numbers by which samples are asked for, checked in one way by all readers.

NumPy takes a mask for the numbers 0 and 1, cuts 1.7 to 1 and reads "1" as 1: other samples than
those that were meant. So all readers refuse what is not an integer.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt


def number_of(number: Any, length: int, noun: str) -> int:
    """The number of one sample, from 0.

    number: an int, an integer of NumPy of any width, or one in an array or tensor without
        dimensions; a negative one counts from the end.

    Raises TypeError for anything else, such as a bool or a float, and IndexError for a number
    outside.
    """
    if type(number) is not int and (not is_one(number) or _kind(number) == "bool"):
        raise _no_integer(noun, number)
    try:
        found: int = operator.index(number)
    except TypeError:
        raise _no_integer(noun, number) from None
    if not -length <= found < length:
        raise _outside(noun, found, length)
    return found + length if found < 0 else found


def numbers_of(
    numbers: Any, length: int, noun: str, *, from_end: bool = True
) -> npt.NDArray[np.int64]:
    """The numbers of samples as int64 [N], each from 0.

    numbers: integers [N] in a list, an array or a tensor, of any width; or one integer.
    from_end: whether negative numbers count from the end, default True; False: they are outside.

    Raises TypeError for anything else, such as a mask of booleans, floats or texts, and IndexError
    for the first number outside.
    """
    array = _integers(numbers, noun)
    if not array.size:
        return np.empty(0, np.int64)
    least = -length if from_end else 0
    if int(array.min()) < least or int(array.max()) >= length:
        wrong = next(each for each in array.tolist() if not least <= each < length)
        raise _outside(noun, wrong, length)
    found = array.astype(np.int64, copy=False)
    return np.where(found < 0, found + length, found) if from_end else found


def is_one(numbers: Any) -> bool:
    """Whether this asks for one sample, and not for a list of them."""
    return isinstance(numbers, int) or getattr(numbers, "ndim", None) == 0


def _integers(numbers: Any, noun: str) -> npt.NDArray[Any]:
    """Integers [N]: an array of integers, or of objects where one has more than 64 bits."""
    try:
        array = np.asarray(numbers)
        if isinstance(numbers, (list, tuple)):
            # Of [1, True] NumPy makes integers, of [-1, 2**63] floats.
            kinds = set(map(type, numbers))
            are_integers = all(issubclass(kind, (int, np.integer)) for kind in kinds - {bool})
            if bool in kinds or (
                not are_integers and any(_kind(each) == "bool" for each in numbers)
            ):
                raise _no_integer(noun, True)
            if are_integers and array.dtype.kind == "f":
                array = np.array(numbers, object)
    except ValueError:
        raise TypeError(f"{noun} numbers are a list of integers, not lists in a list") from None
    if array.ndim > 1:
        raise TypeError(
            f"{noun} numbers are a list of integers, not an array of {array.ndim} dimensions"
        )
    array = np.atleast_1d(array)
    if array.dtype.kind == "O":
        for each in array:
            if isinstance(each, bool) or not isinstance(each, (int, np.integer)):
                raise _no_integer(noun, each)
    elif array.size and array.dtype.kind not in "iu":
        raise _no_integer(noun, array)
    return array


def _kind(found: Any) -> str:
    """The type of a value, or that of the values of an array or tensor."""
    kind = getattr(found, "dtype", type(found))
    name = getattr(kind, "type", kind)
    return str(getattr(name, "__name__", name)).removeprefix("torch.").rstrip("_")


def _no_integer(noun: str, found: Any) -> TypeError:
    kind = _kind(found)
    if kind == "bool":
        kind += ": for a mask use np.flatnonzero(mask)"
    elif getattr(found, "ndim", 0):
        kind = f"an array of {kind}"
    return TypeError(f"{noun} numbers are integers, not {kind}")


def _outside(noun: str, number: int, length: int) -> IndexError:
    return IndexError(f"no {noun} {number}: there are {length}")
