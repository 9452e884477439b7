"""Laws of the algebra on random tensors of a few structures, against dense arrays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t3k.kernels.dense import dense_t3
from t3k.kernels.modes import concatenate, contract_modes, pad_ranks, reverse, select_modes
from t3k.kernels.orthogonalize import centre_at
from t3k.kernels.permutation import permute
from t3k.kernels.products import hadamard, inner
from t3k.kernels.ranks import minimal_ranks
from t3k.kernels.sketched_rounding import round_products
from t3k.kernels.spectra import discarded_norm
from t3k.kernels.t3 import add, add_scalar, random_cores
from t3k.kernels.truncation import truncate
from t3k.kernels.types import T3Cores

#: Sizes, Tucker ranks, bonds of x and of y; sizes of one, end bonds, over-large ranks, a run of equal cores.
STRUCTURES: list[Any] = [
    ((4,), ((3,), (2, 2)), ((1,), (1, 1))),
    ((3, 1, 4), ((4, 2, 2), (2, 2, 5, 1)), ((2, 1, 3), (1, 2, 2, 2))),
    ((2, 2, 2, 2), ((2, 2, 2, 2), (1, 2, 2, 2, 1)), ((1, 2, 2, 1), (1, 1, 2, 1, 1))),
]
CASES = {"structure": st.sampled_from(STRUCTURES), "seed": st.integers(0, 2**31 - 1)}
SETTINGS = settings(max_examples=12, deadline=None, derandomize=True)


def draw(structure: Any, seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    shape, x, y = structure
    return (*(random_cores(k, shape, of[0], of[1], jnp.float64) for k, of in zip(keys, (x, y), strict=False)), keys[2])


def dense(x):
    return dense_t3(*x) if isinstance(x, T3Cores) else x


def lead(x):
    return jax.tree.map(lambda core: core[None], x)


def entry_laws(structure, seed):
    x, y, key = draw(structure, seed)
    X, Y, d = dense(x), dense(y), len(structure[0])
    index = tuple(jax.random.randint(key, (), 0, N) for N in structure[0])
    last = (*(None,) * (d - 1), index[-1])
    w = jax.random.normal(key, structure[0][:1], X.dtype)
    larger = [n + 1 for n in structure[1][0]], [r + 1 for r in structure[1][1]]
    return {
        "sum": (dense(add(x, y)), X + Y),
        "scalar": (dense(add_scalar(x, 2.5)), X + 2.5),
        "product": (dense(hadamard(x, y)), X * Y),
        "inner product": (inner(x, y), jnp.sum(X * Y)),
        "an entry": (dense(select_modes(x, index)), X[index]),
        "a slice": (dense(select_modes(x, last)), X[..., index[-1]]),
        "a contraction": (dense(contract_modes(x, (w, *(None,) * (d - 1)))), jnp.tensordot(w, X, 1)),
        "joining": (dense(concatenate([x, y], d - 1)), jnp.concatenate([X, Y], d - 1)),
        "reversal": (dense(reverse(x)), X.T),
        "padding": (dense(pad_ranks(x, *larger)), jnp.sum(X[None], 0)),
    }


def decomposition_laws(structure, seed):
    x, y, key = draw(structure, seed)
    X, Y, d = dense(x), dense(y), len(structure[0])
    cyclic = (*range(1, d), 0)
    n, r = minimal_ranks(structure[0], structure[0], (99,) * (d + 1))
    few = truncate(x, (2,) * d, (1, *(2,) * (d - 1), 1))
    bound = discarded_norm(x, (2,) * d, (1, *(2,) * (d - 1), 1))
    lost = jnp.linalg.norm((dense(few) - X).ravel())
    centred = centre_at(x, d // 2)
    return {
        "permutation": (dense(permute(x, cyclic)), X.transpose(cyclic)),
        "orthogonal cores": (dense(centred), X),
        "the centre has the norm": (jnp.linalg.norm(centred.tt[d // 2].ravel()), jnp.linalg.norm(X.ravel())),
        "sums of products in one pass": (dense(round_products([[lead(x), lead(y)], [lead(x)]], n, r, key)), X * Y + X),
        "rounding is within its bound": (jnp.maximum(lost, bound), bound),
    }


ENTRY_LAWS, DECOMPOSITION_LAWS = (
    jax.jit(laws, static_argnums=0, compiler_options={"xla_backend_optimization_level": 0})
    for laws in (entry_laws, decomposition_laws)
)


def assert_laws(laws, tolerance):
    for name, (got, expected) in laws.items():
        size = max(1.0, float(np.abs(expected).max()))
        assert np.shape(got) == np.shape(expected), name
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * size, err_msg=name)


@SETTINGS
@given(**CASES)
def test_entries_are_those_of_dense_arithmetic(structure, seed):
    assert_laws(ENTRY_LAWS(structure, seed), 1e-12)


@SETTINGS
@given(structure=st.sampled_from(STRUCTURES[1:]), seed=CASES["seed"])
def test_other_cores_hold_the_same_tensor(structure, seed):
    assert_laws(DECOMPOSITION_LAWS(structure, seed), 1e-9)
