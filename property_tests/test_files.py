"""Whatever happens to the bytes of a file, it loads as a T3 or is refused with a ValueError."""

import contextlib
import functools
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import t3k

CORES = [np.ones((2, 3)), np.ones((2, 2))], [np.ones((1, 2, 2)), np.ones((2, 2, 1))]


@functools.cache
def whole() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        t3k.TuckerTensorTrain(*CORES).save(Path(folder) / "x.npz")
        return (Path(folder) / "x.npz").read_bytes()


def loads_or_is_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        path.write_bytes(content)
        with contextlib.suppress(ValueError):
            x = t3k.TuckerTensorTrain.load(path)
            assert (x.shape, x.tucker_ranks, x.tt_ranks) == ((3, 2), (2, 2), (1, 2, 1))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_never_do_worse(changes):
    content = bytearray(whole())
    for place, value in changes:
        content[int(place * len(content))] = value
    loads_or_is_refused(bytes(content))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(0, 1), st.floats(0, 1), st.binary(max_size=20))
def test_missing_and_additional_bytes_never_do_worse(start, stop, filling):
    content = whole()
    first, last = sorted((int(start * len(content)), int(stop * len(content))))
    loads_or_is_refused(content[:first] + filling + content[last:])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.floats(0, 1))
def test_a_torn_file_never_does_worse(stop):
    loads_or_is_refused(whole()[: int(stop * len(whole()))])
