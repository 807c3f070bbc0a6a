"""Arguments and results of jax as the files that the command reads: p0, p1 … and o0, o1 …, bits as they are."""
from __future__ import annotations

import pathlib
from typing import Any, Iterable

import jax
import jax.numpy as jnp
import numpy as np

_NUMPY = "biufc"
_untyped: Any = jax


def host(x: Any) -> np.ndarray[Any, Any]:
    """An array of jax, also a key's, as one of numpy. What numpy has no type for comes as integers of its bits."""
    if isinstance(x, jax.Array) and _untyped.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    # Numbers of Python and arrays of numpy come in the types that jax gives them.
    a = np.array(x if isinstance(x, jax.Array) else jnp.asarray(x))
    if a.dtype.kind not in _NUMPY:  # bf16, f8 …: ml_dtypes
        a = a.view(f"u{a.dtype.itemsize}")
    return a


def write(path: pathlib.Path, letter: str, arrays: Iterable[Any]) -> None:
    arguments: dict[str, Any] = {f"{letter}{k}": host(a) for k, a in enumerate(arrays)}
    np.savez(path, **arguments)
