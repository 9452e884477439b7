"""Files of arrays: npz archives without pickle, versioned, that are there whole or not at all."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["as_bits", "from_bits", "read_archive", "require_format", "write_archive"]


def as_bits(leaf: Any) -> np.ndarray:
    """What npz can hold of an array: keys as their data, bfloat16 as its bits."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    return array.view(np.uint16) if array.dtype == jnp.bfloat16 else array


def from_bits(array: np.ndarray, dtype: Any) -> Any:
    """The array of a dtype that `as_bits` was given, where that is no key.

    Raises:
      ValueError: if it is of another dtype.
    """
    if dtype == jnp.bfloat16 and array.dtype == np.uint16:
        array = array.view(jnp.bfloat16)
    if array.dtype != dtype:
        raise ValueError(f"expected an array of dtype {dtype}; got {array.dtype}")
    return jnp.asarray(array)


def write_archive(path: Any, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes numbers, words and arrays by their names."""
    path = Path(path)
    # Not made by tempfile, whose files nobody else may read.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            np.savez(file, allow_pickle=False, **{name: np.asarray(value) for name, value in header.items()}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_archive(path: Any) -> dict[str, np.ndarray]:
    """All that `write_archive` was given, as arrays.

    Raises:
      ValueError: if the file is damaged.
      OSError: if it cannot be opened.
    """
    # Opened here, because numpy leaves the file open where it finds that it is no archive.
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except Exception as error:  # of zipfile, its decompressors and numpy: damaged bytes raise almost anything
            raise ValueError(f"{path} is damaged or no npz archive without pickle: {error}") from error


def require_format(stored: Mapping[str, np.ndarray], name: str, version: int) -> None:
    """Refuses an archive of something else, or of another version.

    Raises:
      ValueError: saying what came and what was expected.
    """
    if "format" not in stored or str(stored["format"]) != name:
        raise ValueError(f"expected format {name!r}; got {str(stored.get('format'))!r}")
    if int(stored["version"]) != version:
        raise ValueError(f"expected version {version}; got {int(stored['version'])}. A newer t3k may read it")
