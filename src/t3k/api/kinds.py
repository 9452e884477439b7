"""Kinds of measurement by their names."""

from typing import Any

from t3k.api import validate
from t3k.api.kind import Kind
from t3k.api.probe_kinds import probe_derivatives_kind, probe_kind
from t3k.api.sample_kinds import apply_derivatives_kind, apply_kind, entries_derivatives_kind, entries_kind

__all__ = ["as_kind"]

#: The kinds without derivatives, and those with, by name.
_PLAIN = {"probe": probe_kind, "apply": apply_kind, "entries": entries_kind}
_DERIVATIVES = {
    "probe_derivatives": probe_derivatives_kind,
    "apply_derivatives": apply_derivatives_kind,
    "entries_derivatives": entries_derivatives_kind,
}


def as_kind(kind: Any, order: Any, weight: Any, chunk_size: Any, memory: Any = None) -> Kind:
    """A kind object from itself or from its name, with the settings that a fit was called with.

    Raises:
      ValueError: for an unknown name, or an order that is missing or not the kind's.
      TypeError: for anything else.
    """
    names = ", ".join(f'"{name}"' for name in (*_PLAIN, *_DERIVATIVES))
    if isinstance(kind, Kind):
        own = getattr(kind, "order", None)
        if order is not None and validate.as_order(order) != own:
            raise ValueError(f"order must be that of the kind, {own}, or None; got {order}")
        return kind.with_settings(weight, chunk_size, memory)
    if not isinstance(kind, str):
        raise TypeError(f"kind must be {names} or a kind object; got {type(kind).__name__}")
    if kind in _PLAIN:
        if order not in (None, 0):
            raise ValueError(f'order must be None or 0 for the kind "{kind}"; got {order}')
        return _PLAIN[kind](weight, chunk_size, memory=memory)
    if kind not in _DERIVATIVES:
        raise ValueError(f"kind must be {names}; got {kind!r}")
    if order is None:
        raise ValueError(f'order must be given for the kind "{kind}"; got None')
    return _DERIVATIVES[kind](order, weight, chunk_size, memory=memory)
