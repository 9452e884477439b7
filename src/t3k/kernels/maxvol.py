"""Rows of a tall matrix in which all its other rows are expressed by small coefficients."""

import numpy as np

__all__ = ["maxvol"]

#: How much the volume must grow for one more exchange of rows, and how many exchanges there are at most.
_GROWTH, _MAX_EXCHANGES = 1.05, 200


def maxvol(Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A square submatrix of nearly the largest volume, and all rows in terms of its rows.

    Starts from the pivots of Gaussian elimination and exchanges rows while the volume grows (Goreinov, Oseledets,
    Savostyanov, Tyrtyshnikov, Zamarashkin, "How to find a good submatrix", 2010).

    Args:
      Q: (p, r), p >= r, of full rank.

    Returns:
      Rows (r,), and coefficients B (p, r) with ``Q = B Q[rows]`` and entries of at most 1.05.

    Example:
      >>> rows, B = maxvol(np.array([[1.0, 0.0], [4.0, 0.0], [0.0, 2.0]]))
      >>> sorted(rows.tolist()), B[0].tolist()
      ([1, 2], [0.25, 0.0])
    """
    rows = _pivots(Q)
    B = np.linalg.solve(Q[rows].T, Q.T).T
    for _ in range(_MAX_EXCHANGES):
        i, j = np.unravel_index(np.argmax(np.abs(B)), B.shape)
        if abs(B[i, j]) <= _GROWTH:
            break
        change = B[i].copy()
        change[j] -= 1
        B -= np.outer(B[:, j] / B[i, j], change)
        rows[j] = i
    return rows, B


def _pivots(Q: np.ndarray) -> np.ndarray:
    rest, rows = Q.copy(), []
    for j in range(Q.shape[1]):
        i = int(np.argmax(np.abs(rest[:, j])))
        rows.append(i)
        rest -= np.outer(rest[:, j] / rest[i, j], rest[i])
    return np.array(rows)
