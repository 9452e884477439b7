"""Frozen dataclasses that are pytrees: their fields are children, and nothing is checked when JAX rebuilds them."""

from dataclasses import fields
from typing import Any, TypeVar

import jax

__all__ = ["pytree"]

T = TypeVar("T")


def pytree(cls: type[T]) -> type[T]:
    """Registers a frozen dataclass; JAX rebuilds it around tracers, shapes or nothing at all, so without `__init__`."""
    names = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    def flatten_with_keys(self: Any) -> tuple[tuple[Any, ...], None]:
        return tuple((jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in names), None

    def unflatten(_: None, children: Any) -> Any:
        self = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(self, name, child)
        return self

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten)
    return cls
