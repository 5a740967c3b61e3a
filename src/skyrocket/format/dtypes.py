"""Layouts as numpy types, and the arrays that the vectorised readers speak of."""

import re
from collections.abc import Iterable
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.record import Buffer

Int64s = NDArray[np.int64]
AnyPositions = NDArray[np.int64] | NDArray[np.int32]  # in a file, or within a batch
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

_KINDS = {"h": ">i2", "i": ">i4", "q": ">i8"}


def dtype_of(layout: Struct, names: Iterable[str]) -> np.dtype[np.void]:
    """The type of an array of such structures; its fields bear these names, and bytes stay bytes."""
    codes = re.findall(r"(\d*)([a-z])", layout.format)
    kinds = [f"V{count}" if code == "s" else _KINDS[code] for count, code in codes]
    return np.dtype(list(zip(names, kinds, strict=True)))


def gathered(buffer: Buffer | Bytes, dtype: np.dtype[Any], positions: AnyPositions) -> NDArray[Any]:
    """The values of a type that begin at these bytes of a buffer.

    Copied as bytes without meaning and named afterwards: numpy copies structures field by field, twelve times slower.
    """
    count = max(len(buffer) - dtype.itemsize + 1, 0)
    anywhere = np.ndarray((count,), f"V{dtype.itemsize}", buffer, 0, strides=(1,))
    return anywhere[positions].view(dtype)
