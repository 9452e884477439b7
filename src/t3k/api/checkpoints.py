"""Checkpoints of a fit: all that its loop goes on from, in one file that is there whole or not at all.

An npz archive without pickle holds ``format``, ``version``, the name and fingerprint of the fit, its history as JSON
and the arrays of the optimizer's state, keys included. A fit that goes on from it takes the very steps that it would
have taken.
"""

import dataclasses
import hashlib
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api.archives import as_bits, from_bits, read_archive, require_format, write_archive
from t3k.api.fit_stats import FitStats
from t3k.kernels.stored_arrays import flatten_stored

__all__ = ["FORMAT", "VERSION", "fingerprint", "load_fit", "save_fit"]

FORMAT = "t3k.fit"
VERSION = 2


def fingerprint(*parts: Any) -> str:
    """A digest of values by their `repr`, and of arrays by their bytes: it tells one fit from another.

    Arrays in files count by shape and dtype alone.

    Example:
      >>> fingerprint("a", np.ones(2)) == fingerprint("a", np.ones(2)) != fingerprint("a", np.zeros(2))
      True
    """
    digest = hashlib.sha256()
    for leaf in flatten_stored(parts)[0]:
        if isinstance(leaf, jax.Array | np.ndarray):
            array = np.asarray(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        else:
            digest.update(repr(leaf).encode())
    return digest.hexdigest()


def _from_bits(array: np.ndarray, like: Any) -> Any:
    bits = as_bits(like)
    if array.dtype != bits.dtype or array.shape != bits.shape:
        raise ValueError(f"expected an array {bits.dtype}{bits.shape}; got {array.dtype}{array.shape}")
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    return from_bits(array, like.dtype)


def save_fit(path: Any, mark: str, tree: Any, stats: FitStats) -> None:
    """Writes a fit's state and history.

    Args:
      path: of the file.
      mark: the fit's `fingerprint`.
      tree: a pytree of arrays.
      stats: the history so far.
    """
    arrays = {f"leaf_{i}": as_bits(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}
    header = {"format": FORMAT, "version": VERSION, "mark": mark, "stats": json.dumps(dataclasses.asdict(stats))}
    write_archive(path, header, arrays)


def load_fit(path: Any, mark: str, like: Any) -> tuple[Any, FitStats]:
    """Reads a fit's state and history back.

    Args:
      path: of the file.
      mark: the fingerprint that it must have.
      like: a pytree with the structure, shapes and dtypes of the state.

    Raises:
      ValueError: if the file is damaged, of another kind or version, or belongs to another fit.
      FileNotFoundError: if there is none.
    """
    try:
        return _fit(read_archive(path), mark, like)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no checkpoint that this fit can go on from: {error}") from error


def _fit(stored: dict[str, np.ndarray], mark: str, like: Any) -> tuple[Any, FitStats]:
    require_format(stored, FORMAT, VERSION)
    if str(stored["mark"]) != mark:
        raise ValueError("it was written by a fit of other data, another start or other settings")
    leaves, structure = jax.tree.flatten(like)
    restored = [_from_bits(stored[f"leaf_{i}"], leaf) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, restored), FitStats(**json.loads(str(stored["stats"])))
