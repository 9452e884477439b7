"""Files of trains: tensors, frames, variations and tangents as archives of their cores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import jax.numpy as jnp

from t3k.api.archives import as_bits, from_bits, read_archive, require_format, write_archive
from t3k.kernels.types import Array

__all__ = ["VERSION", "Saved", "load_trains", "save_trains"]

VERSION = 1

_Trains = Mapping[str, tuple[Array, ...]]


class Saved(ABC):
    """What all objects made of trains inherit: `save` and `load`."""

    @abstractmethod
    def _trains(self) -> _Trains:
        """All cores, by the names of their trains in a file."""

    @classmethod
    @abstractmethod
    def _train_names(cls) -> tuple[str, ...]:
        """The names of the trains, in the order that `_from_trains` takes them."""

    @classmethod
    def _from_trains(cls, *trains: tuple[Array, ...]) -> Self:
        """The object of these trains."""
        return cls(*trains)

    def save(self, path: Any) -> None:
        """Writes the cores to an npz file without pickle, atomically."""
        save_trains(path, f"t3k.{type(self).__name__}", self._trains())

    @classmethod
    def load(cls, path: Any) -> Self:
        """Reads what `save` wrote.

        Raises:
          ValueError: if the file is damaged, of another kind or of a newer version.
          OSError: if it cannot be opened.
        """
        name = f"t3k.{cls.__name__}"
        trains = load_trains(path, name, cls._train_names())
        try:
            return cls._from_trains(*trains)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is no {name} that this version of t3k can read: {error}") from error


def save_trains(path: Any, name: str, trains: _Trains) -> None:
    """Writes trains of equal length and dtype.

    The archive holds ``format``, ``version``, ``d``, ``dtype`` and one array per core, such as ``tt_0``. bfloat16,
    which npz cannot hold, is kept as its bits.
    """
    first = next(iter(trains.values()))
    arrays = {f"{train}_{i}": as_bits(core) for train, cores in trains.items() for i, core in enumerate(cores)}
    header = {"format": name, "version": VERSION, "d": len(first), "dtype": jnp.dtype(first[0].dtype).name}
    write_archive(path, header, arrays)


def load_trains(path: Any, name: str, names: tuple[str, ...]) -> list[tuple[Array, ...]]:
    """Reads trains back, in the order of their names.

    Raises:
      ValueError: if the file is damaged, of another kind or of a newer version.
      OSError: if it cannot be opened.
    """
    stored = read_archive(path)
    try:
        require_format(stored, name, VERSION)
        d, dtype = int(stored["d"]), jnp.dtype(str(stored["dtype"]))
        expected = {"format", "version", "d", "dtype", *(f"{train}_{i}" for train in names for i in range(d))}
        if set(stored) != expected or not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(f"expected arrays {sorted(expected)} of floats; got {sorted(stored)}, {dtype}")
        return [tuple(from_bits(stored[f"{train}_{i}"], dtype) for i in range(d)) for train in names]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} is no {name} that this version of t3k can read: {error}") from error
