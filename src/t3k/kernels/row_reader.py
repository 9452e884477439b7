"""Reading blocks of rows of one array on the host, the next block while the one before is computed with.

Only numpy and the array itself are at work here: it runs while compiled code waits, and nothing may wait for JAX.
"""

import mmap
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

__all__ = ["RowReader"]

#: One thread reads for all: disks like one reader best, and h5py lets in no more.
_POOL = ThreadPoolExecutor(1, "t3k-reads-rows")


class RowReader:
    """Reads blocks of an array, and after each begins with the one that a loop will ask for next.

    Args:
      source: anything with ``shape``, ``dtype`` and slices.
      dtype: of the blocks.

    Attributes:
      error: what went wrong in the last attempt to read, if anything did.
    """

    def __init__(self, source: Any, dtype: np.dtype) -> None:
        self.source, self.dtype = source, dtype
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._ahead: tuple[tuple[int, int, int], Future] | None = None

    def read(self, axis: int, start: int, size: int) -> np.ndarray:
        """`size` rows from `start` on.

        Raises:
          OSError: if there are not as many, or the file has become shorter; and what the source raises.

        Example:
          >>> RowReader(np.arange(6.0).reshape(3, 2), np.dtype("float32")).read(0, 1, 2).tolist()
          [[2.0, 3.0], [4.0, 5.0]]
        """
        try:
            return self._read(axis, start, size)
        except BaseException as error:
            self.error = error
            raise

    def _read(self, axis: int, start: int, size: int) -> np.ndarray:
        request = axis, start, size
        with self._lock:
            ahead, self._ahead = self._ahead, None
            if ahead is None or ahead[0] != request:
                ahead = request, _POOL.submit(self._fetch, *request)
            rows = ahead[1].result()
            following = axis, _next_start(self.source.shape[axis], start, size), size
            if following != request:
                self._ahead = following, _POOL.submit(self._fetch, *following)
        return rows

    def _fetch(self, axis: int, start: int, size: int) -> np.ndarray:
        _require_whole(self.source)
        # A copy: a slice of a mapped file has not been read yet.
        rows = np.array(self.source[(*(slice(None),) * axis, slice(start, start + size))], self.dtype, order="C")
        expected = (*self.source.shape[:axis], size, *self.source.shape[axis + 1 :])
        if rows.shape != expected:
            raise OSError(f"rows {start} to {start + size} must have shape {expected}; reading gave {rows.shape}")
        _forget_pages(self.source)
        return rows


def _next_start(n_rows: int, start: int, size: int) -> int:
    """Where a loop goes from `start`: on by a block, in the end to where the last one fits, and then over again."""
    return 0 if start + size >= n_rows else min(start + size, n_rows - size)


def _mapping(source: Any) -> mmap.mmap | None:
    """The map of a file that an array of numpy is a view of, if it is."""
    while isinstance(source, np.ndarray):
        source = source.base
    return source if isinstance(source, mmap.mmap) else None


def _require_whole(source: Any) -> None:
    """Refuses a mapped file that has become shorter: to touch what is gone would end the process."""
    mapping = _mapping(source)
    if mapping is not None and mapping.size() < len(mapping):
        raise OSError(f"the file must have {len(mapping)} bytes, as when it was mapped; got {mapping.size()}")


def _forget_pages(source: Any) -> None:
    """Lets go of a mapped file's pages, which else count as this process's memory until another needs them."""
    mapping = _mapping(source)
    # What was written to a private map ("c") is nowhere but in its pages.
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED") and getattr(source, "mode", "c") != "c":
        mapping.madvise(mmap.MADV_DONTNEED)
