"""Singular values are those of the dense unfoldings; tolerances choose the least ranks that honour them."""

import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.spectra import rank_within, require_concrete, singular_values, split_tolerance
from tests.structures import NAMES, assert_close, dense_t3, example, quick_jit, unfolding

SPECTRA = quick_jit(singular_values)


@pytest.mark.parametrize("name", NAMES)
def test_singular_values_are_those_of_the_dense_unfoldings(name):
    x = example(name)
    array, (tucker, tt) = dense_t3(*x), SPECTRA(x)
    for i, values in enumerate(tucker):
        assert_close(values, np.linalg.svd(unfolding(array, [i]), compute_uv=False)[: len(values)])
    for i, values in list(enumerate(tt))[1:-1]:
        assert_close(values, np.linalg.svd(unfolding(array, list(range(i))), compute_uv=False)[: len(values)])
    assert_close((tt[0][0], tt[-1][0]), 2 * (np.linalg.norm(array.reshape(-1)),))


@pytest.mark.parametrize(("allowed", "rank"), [(0.0, 3), (0.5, 2), (4.0, 2), (5.0, 1), (100.0, 1)])
def test_rank_is_the_least_whose_discarded_part_is_allowed(allowed, rank):
    assert rank_within(jnp.array([12.0, 4.9, 0.5]), allowed) == rank


def test_rank_is_at_least_1_at_zero():
    assert rank_within(jnp.zeros(3), 0.0) == 1


def test_split_tolerances_add_up_in_squares():
    assert_close(5 * split_tolerance(jnp.array(2.0), 0.1, 0.3, 3) ** 2, 0.5**2)


def test_tracing_is_refused_by_name():
    with pytest.raises(TypeError, match="sought chooses ranks by the values"):
        quick_jit(lambda x: require_concrete("sought", x))(1.0)
