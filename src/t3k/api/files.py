"""Files: the cores of a T3 as an npz archive, versioned, without pickle, written atomically."""

import os
import uuid
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from t3k.api import validate
from t3k.kernels.types import T3Cores

__all__ = ["FORMAT", "VERSION", "load", "save"]

FORMAT = "t3k.TuckerTensorTrain"
VERSION = 1


def save(path: Any, cores: T3Cores) -> None:
    """Writes the cores; the file is there whole or not at all.

    The archive holds ``format``, ``version``, ``d``, ``dtype`` and one array per core, ``tucker_i`` and ``tt_i``.
    bfloat16, which npz cannot hold, is kept as its bits.
    """
    path = Path(path)
    dtype = jnp.dtype(cores.tucker[0].dtype)
    arrays = {
        f"{train}_{i}": np.asarray(core) for train in ("tucker", "tt") for i, core in enumerate(getattr(cores, train))
    }
    if dtype == jnp.bfloat16:
        arrays = {name: array.view(np.uint16) for name, array in arrays.items()}
    header = {"format": FORMAT, "version": VERSION, "d": len(cores.tucker), "dtype": dtype.name}
    # Not made by tempfile, whose files nobody else may read.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            np.savez(file, allow_pickle=False, **{**{k: np.asarray(v) for k, v in header.items()}, **arrays})
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path: Any) -> T3Cores:
    """Reads the cores back.

    Raises:
      ValueError: if the file is damaged, of another kind or of a newer version.
      OSError: if it cannot be opened.
    """
    # Opened here, because numpy leaves the file open where it finds that it is no archive.
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                stored = {name: archive[name] for name in archive.files}
        except Exception as error:  # of zipfile, its decompressors and numpy: damaged bytes raise almost anything
            raise ValueError(f"{path} is damaged or no npz archive without pickle: {error}") from error
    try:
        return _cores(stored)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} is no T3 that this version of t3k can read: {error}") from error


def _cores(stored: dict[str, np.ndarray]) -> T3Cores:
    if "format" not in stored or str(stored["format"]) != FORMAT:
        raise ValueError(f"expected format {FORMAT!r}; got {str(stored.get('format'))!r}")
    if int(stored["version"]) != VERSION:
        raise ValueError(f"expected version {VERSION}; got {int(stored['version'])}. A newer t3k may read it")
    d, dtype = int(stored["d"]), jnp.dtype(str(stored["dtype"]))
    expected = {"format", "version", "d", "dtype", *(f"{train}_{i}" for train in ("tucker", "tt") for i in range(d))}
    if set(stored) != expected:
        raise ValueError(f"expected the arrays {sorted(expected)}; got {sorted(stored)}")
    tucker, tt = ([_core(stored[f"{train}_{i}"], dtype) for i in range(d)] for train in ("tucker", "tt"))
    validate.require_cores(tucker, tt)
    return T3Cores(tuple(tucker), tuple(tt))


def _core(array: np.ndarray, dtype: Any) -> Any:
    if dtype == jnp.bfloat16:
        array = array.view(dtype)
    if array.dtype != dtype or not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"expected cores of dtype {dtype}; got {array.dtype}")
    return jnp.asarray(array)
