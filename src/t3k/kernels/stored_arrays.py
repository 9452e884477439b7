"""Arrays that stay in files, and are read block by block by the loops of `chunk_reduce`.

`StoredArray` stands for anything with a shape, a dtype and slices: `numpy.memmap`, a dataset of h5py or zarr. It is a
pytree with a number for its only leaf. Compiled code asks for rows under that number, so that one program serves all
files of equal shapes and none of them is part of it.
"""

import itertools
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import numpy as np

from t3k.kernels.row_reader import RowReader
from t3k.kernels.types import Array

__all__ = ["BLOCK_BYTES", "StoredArray", "block_rows", "flatten_stored", "has_stored", "is_stored", "reading"]

#: What is read at a time. Some four such blocks are in memory: being computed with, just read, and being read.
BLOCK_BYTES = 32 * 2**20

_READERS: weakref.WeakValueDictionary[int, RowReader] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


class StoredArray:
    """An array in a file, in the place of one in memory wherever `chunk_reduce` loops over rows.

    It must live until the programs that read it have ended: `reading` sees to that. Under `jax.grad`, blocks are read
    again on the way back.

    Args:
      source: anything with ``shape``, ``dtype`` and slices.
      dtype: of the rows as they are computed with; by default the source's.

    Example:
      >>> import jax.numpy as jnp
      >>> from t3k.kernels import add, chunk_reduce
      >>> rows = StoredArray(np.arange(20.0).reshape(10, 2))
      >>> with reading(rows) as wait:
      ...     total = wait(chunk_reduce(lambda x, valid: jnp.sum(x), rows, add, chunk_size=5, n_rows=10))
      >>> float(total)
      190.0
    """

    number: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    reader: RowReader | None

    def __init__(self, source: Any, dtype: Any = None) -> None:
        kind = np.dtype(jax.dtypes.canonicalize_dtype(source.dtype if dtype is None else dtype))
        reader, number = RowReader(source, kind), np.int32(next(_NUMBERS))
        _READERS[int(number)] = reader
        self._set(number, tuple(source.shape), kind, reader)

    def _set(self, number: Any, shape: tuple[int, ...], dtype: np.dtype, reader: RowReader | None) -> "StoredArray":
        self.number, self.shape, self.dtype, self.reader = number, shape, dtype, reader
        return self

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        """The length of the first axis."""
        return self.shape[0]

    @property
    def source(self) -> Any:
        """What the rows come from."""
        return _reader(self.number).source

    def __repr__(self) -> str:
        """One line."""
        return f"StoredArray(shape {self.shape}, {self.dtype.name})"

    def __getitem__(self, index: Any) -> "StoredArray":
        """With one more axis in front, for the index None; rows come in order, by `rows`."""
        if index is not None:
            raise TypeError("an array in a file is streamed from its first row to its last; load it to index it")
        return object.__new__(StoredArray)._set(self.number, (1, *self.shape), self.dtype, self.reader)

    def rows(self, axis: int, start: Any, size: int) -> Array:
        """`size` rows from `start` on, which may be traced: compiled code asks the host for them when it needs them."""
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        kind = jax.ShapeDtypeStruct(shape, self.dtype)
        return jax.pure_callback(partial(_read, shape, axis), kind, self.number, start)


def _reader(number: Any) -> RowReader:
    reader = _READERS.get(int(number))
    if reader is None:
        raise RuntimeError("the array in a file is gone: its StoredArray must live until the results are ready")
    return reader


def _read(shape: tuple[int, ...], axis: int, number: Any, start: Any) -> np.ndarray:
    reader = _reader(number)
    added = len(shape) - len(reader.source.shape)
    return reader.read(axis - added, int(start), shape[axis]).reshape(shape)


def _unflatten(aux: tuple[tuple[int, ...], np.dtype], children: Sequence[Any]) -> StoredArray:
    (number,) = children
    reader = _READERS.get(int(number)) if isinstance(number, np.integer) else None
    return object.__new__(StoredArray)._set(number, *aux, reader)


jax.tree_util.register_pytree_node(StoredArray, lambda x: ((x.number,), (x.shape, x.dtype)), _unflatten)


def is_stored(x: Any) -> bool:
    """Whether an array is elsewhere than in memory: mapped from a file, or neither numpy's nor JAX's.

    Example:
      >>> is_stored(np.ones(3)), is_stored([1.0, 2.0]), is_stored(StoredArray(np.ones(3)))
      (False, False, True)
    """
    if isinstance(x, StoredArray | np.memmap):
        return True
    described = all(hasattr(x, name) for name in ("shape", "dtype", "__getitem__"))
    return described and isinstance(x.dtype, np.dtype) and not isinstance(x, np.ndarray | np.generic | jax.Array)


def flatten_stored(xs: Any) -> tuple[list[Any], Any]:
    """The leaves of a pytree and its structure, stored arrays being leaves."""
    return jax.tree.flatten(xs, is_leaf=lambda x: isinstance(x, StoredArray))


def has_stored(xs: Any) -> bool:
    """Whether any leaf of a pytree is a `StoredArray`."""
    return any(isinstance(x, StoredArray) for x in flatten_stored(xs)[0])


def block_rows(leaves: Sequence[Any], axes: Sequence[int | None]) -> int | None:
    """How many rows to read at a time: `BLOCK_BYTES` of all that is stored; None if nothing is."""
    row_bytes = [
        math.prod(x.shape) // max(1, x.shape[axis]) * x.dtype.itemsize
        for x, axis in zip(leaves, axes, strict=True)
        if isinstance(x, StoredArray) and axis is not None
    ]
    return max(1, BLOCK_BYTES // max(1, sum(row_bytes))) if row_bytes else None


@contextmanager
def reading(*trees: Any) -> Iterator[Callable[[Any], Any]]:
    """Keeps the stored arrays in `trees` alive, and raises what went wrong in reading them as it was raised there.

    Yields a function to pass results through; with stored arrays about, it waits for them.
    """
    readers = [x.reader for x in flatten_stored(trees)[0] if isinstance(x, StoredArray) and x.reader is not None]
    for reader in readers:
        reader.error = None
    try:
        yield jax.block_until_ready if readers else lambda result: result
    except Exception:
        # JAX gives an account of the error, under a type that depends on whether it waited for the program.
        for reader in readers:
            if reader.error is not None:
                raise reader.error from None
        raise
