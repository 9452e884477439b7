"""The memory that the maps promise, as XLA plans it: compiled on abstract shapes, nothing is run."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.probe_maps import Probes, gauss_newton_product, misfit, probe_jacobian, probe_transpose
from t3k.kernels.reducers import add
from t3k.kernels.types import Frame, Variations

FEW, MANY = 1_000, 100_000
ORDER, CHUNK = 2, 48  # 48 divides neither, so that both programs mask a tail

# The machine code is not the point; buffers are assigned before it is made.
OPTIONS: Any = {"xla_backend_optimization_level": 0}


def scratch(fun: Any, *args: Any) -> int:
    plan: Any = jax.jit(fun).lower(*args).compile(compiler_options=OPTIONS).memory_analysis()
    return plan.temp_size_in_bytes


def abstract(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.float32)


def problem(n_probes: int, d: int = 3, order: int = ORDER, r: int = 8, n: int = 8, N: int = 16) -> tuple[Any, ...]:
    """(ww, zz, variations, frame) on shapes alone, float32, end bonds 1."""
    bonds = (1, *(r,) * (d - 1), 1)
    tucker = (abstract(n, N),) * d
    tt = tuple(abstract(bonds[i], n, bonds[i + 1]) for i in range(d))
    ww, zz = (abstract(n_probes, N),) * d, (abstract(order + 1, n_probes, N),) * d
    return ww, zz, Variations(tucker, tt), Frame(tucker, tt, tt, tt)


def jacobian(ww, zz, v, frame):
    return probe_jacobian(ww, ww, v, frame, ORDER, chunk_size=CHUNK)


def transpose(ww, zz, v, frame):
    return probe_transpose(zz, ww, ww, frame, ORDER, sum_over_probes=True, chunk_size=CHUNK)


def kept_transpose(ww, zz, v, frame):
    return probe_transpose(zz, ww, ww, frame, ORDER, sum_over_probes=False, chunk_size=CHUNK)


def gauss_newton(ww, zz, v, frame):
    return gauss_newton_product(Probes(ww, ww), v, frame, ORDER, chunk_size=CHUNK)


def misfit_and_gradient(ww, zz, v, frame):
    return misfit(Probes(ww, ww), zz, frame.up, frame, ORDER, chunk_size=CHUNK)


def derivative_of_the_misfit(ww, zz, v, frame):
    def value(point):
        return misfit(Probes(ww, ww), zz, point, frame, ORDER, chunk_size=CHUNK, gradient=False)[0]

    return jax.grad(value)(frame.up)


def pullback_of_the_jacobian(ww, zz, v, frame):
    return jax.vjp(lambda v: jacobian(ww, zz, v, frame), v)[1](zz)


@pytest.mark.parametrize("fun", [jacobian, transpose, kept_transpose, gauss_newton, misfit_and_gradient])
def test_scratch_does_not_grow_with_the_probes(fun):
    few, many = scratch(fun, *problem(FEW)), scratch(fun, *problem(MANY))
    assert many == pytest.approx(few, rel=0.05)


def test_reverse_mode_keeps_a_few_bytes_for_each_chunk_and_no_rows():
    few, many = (scratch(derivative_of_the_misfit, *problem(n)) for n in (FEW, MANY))
    assert many - few <= 32 * (MANY - FEW) / CHUNK


def test_reverse_mode_of_the_jacobian_takes_the_memory_of_one_chunk():
    few, many = (scratch(pullback_of_the_jacobian, *problem(n)) for n in (FEW, MANY))
    assert many - few <= 32 * (MANY - FEW) / CHUNK


def test_scratch_is_that_of_one_chunk():
    dense = scratch(
        lambda ww, zz, v, frame: probe_transpose(zz, ww, ww, frame, ORDER, sum_over_probes=True, chunk_size=None),
        *problem(FEW),
    )
    assert scratch(transpose, *problem(FEW)) < 2 * dense * CHUNK / FEW


@pytest.mark.slow
def test_the_headline_problem_takes_less_than_a_fifth_of_a_gibibyte():
    # The transpose of t3toolbox takes 221 GiB here.
    ww, zz, _, frame = problem(32_000, d=6, order=5, r=128, n=128, N=128)
    used = scratch(
        lambda zz, ww, frame: probe_transpose(zz, ww, ww, frame, 5, sum_over_probes=True, chunk_size=128), zz, ww, frame
    )
    assert used <= 0.2 * 2**30


def test_reverse_mode_through_a_reduction_keeps_no_rows():
    def loss(matrix, rows):
        def block(x, valid):
            y = jnp.sin(jnp.sin(x @ matrix) @ matrix)
            return jnp.sum(y if valid is None else jnp.where(valid[:, None], y, 0))

        return chunk_reduce(block, rows, add, chunk_size=CHUNK, n_rows=rows.shape[0])

    few, many = (scratch(jax.grad(loss), abstract(16, 16), abstract(n, 16)) for n in (FEW, MANY))
    assert many - few <= 32 * (MANY - FEW) / CHUNK
