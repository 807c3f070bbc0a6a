"""Element types of HLO as dtypes of numpy, the narrow ones by ml_dtypes. Imported when arrays are first asked for."""
from __future__ import annotations

from typing import Any

import numpy as np

from .errors import UnsupportedError, UsageError

_NUMPY = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128",
}
_ML = {
    "bf16": "bfloat16", "s1": "int1", "s2": "int2", "s4": "int4", "u1": "uint1", "u2": "uint2", "u4": "uint4",
    "f4e2m1fn": "float4_e2m1fn", "f6e2m3fn": "float6_e2m3fn", "f6e3m2fn": "float6_e3m2fn", "f8e3m4": "float8_e3m4",
    "f8e4m3": "float8_e4m3", "f8e4m3b11fnuz": "float8_e4m3b11fnuz", "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
}


def dtype(element_type: str) -> np.dtype[Any]:
    """The dtype of an element type by HLO's name (`f32`, `bf16`): four bits and less take a byte an element."""
    if element_type in _NUMPY:
        return np.dtype(_NUMPY[element_type])
    if element_type not in _ML:
        raise UnsupportedError(f"no array has elements of type {element_type}")
    import ml_dtypes

    found = getattr(ml_dtypes, _ML[element_type], None)
    if found is None:
        raise UnsupportedError(f"{element_type}: this release of ml_dtypes ({ml_dtypes.__version__}) has no "
                               f"{_ML[element_type]}")
    made: np.dtype[Any] = np.dtype(found)
    return made


def _as(given: np.ndarray[Any, Any], want: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Python's own numbers in that type; ValueError where an integer type does not have them."""
    whole = element_kind(want) == "integer"
    if whole and given.size and given.dtype.kind not in "biu":
        raise ValueError(f"{given.dtype} is no integer")
    if given.dtype.kind == "c" and element_kind(want) != "complex":
        raise ValueError(f"{given.dtype} is not real")
    out = given.astype(want)
    if whole and not np.array_equal(out.astype(given.dtype), given):
        raise ValueError("out of range")
    return out


def element_kind(of: np.dtype[Any]) -> str:
    """integer (of them bool), float or complex, ml_dtypes' types among them."""
    if of.kind in "biu":
        return "integer"
    if of.kind == "c":
        return "complex"
    return "integer" if of.name.startswith(("int", "uint")) else "float"


def storage(value: Any, element_type: str, dims: tuple[int, ...], what: str) -> np.ndarray[Any, Any]:
    """The array's bytes, row by row, as the library keeps them.

    The dtype must be that of the element type; Python's numbers, and lists of them, take it where they fit. The shape
    must be `dims`. Raises hlo.UsageError in the words of `what`.
    """
    want = dtype(element_type)
    try:
        array = np.asarray(value)
        if isinstance(value, (bool, int, float, complex, list, tuple)):
            array = _as(array, want)
    except (TypeError, ValueError, OverflowError) as e:
        raise UsageError(f"{what} is {element_type}{list(dims)}, which the value given is not: {e}") from None
    if array.dtype != want:
        raise UsageError(f"{what} is {element_type}: the array has {array.dtype}, not {want}")
    if array.shape != dims:
        raise UsageError(f"{what} is {element_type}{list(dims)}: the array has shape {list(array.shape)}")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def element_type(value: Any, what: str) -> str:
    """HLO's name of an array's dtype. Raises hlo.UsageError where it has none."""
    if not isinstance(value, (np.ndarray, np.generic)):
        raise UsageError(f"{what} must be an array of numpy, not {type(value).__name__}")
    names = {name: hlo for hlo, name in (_NUMPY | _ML).items()}
    if value.dtype.name not in names:
        raise UsageError(f"{what}: HLO has no elements of {value.dtype}")
    return names[value.dtype.name]


def array(data: np.ndarray[Any, Any], element_type: str, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The other way round, without a copy."""
    return data.view(dtype(element_type)).reshape(dims)
