"""Agreement with t3toolbox on its own arrays, wherever it has the operation. The peer runs in numpy here."""

from typing import Any

import jax
import numpy as np
import pytest

import t3k
from t3k.kernels.types import Variations
from tests.api_problems import assert_trees_close, tensor

linalg: Any = pytest.importorskip("t3toolbox.backend.t3_linalg")
tangents: Any = pytest.importorskip("t3toolbox.backend.tv_operations")
peer: Any = pytest.importorskip("t3toolbox.tucker_tensor_train")
pytestmark = pytest.mark.peers


def theirs(x: Any) -> Any:
    """The same arrays as the peer takes them."""
    return jax.tree.map(np.asarray, tuple(map(tuple, x)))


def dense(x: Any) -> Any:
    return np.asarray(peer.TuckerTensorTrain(*theirs(x)).to_dense())


@pytest.fixture(scope="module")
def pair() -> Any:
    return tensor(0), tensor(1)


def test_sums_products_inner_products_and_norms(pair):
    x, y = pair
    a, b = theirs(x.cores), theirs(y.cores)
    assert_trees_close((x + y).to_dense(), dense(linalg.t3_add(a, b)), 1e-12)
    assert_trees_close((x * y).to_dense(), dense(linalg.t3_mult(a, b)), 1e-12)
    assert_trees_close(x.inner(y), np.asarray(linalg.t3_inner_product(a, b)), 1e-12)
    assert_trees_close(x.norm(), np.asarray(linalg.t3_norm(a)), 1e-12)


def test_singular_values_and_truncation(pair):
    x, _ = pair
    rounded, tucker, tt = peer.TuckerTensorTrain(*theirs(x.cores)).t3svd(max_tucker_ranks=(2, 2, 2), rtol=1e-14)
    ours = x.singular_values()
    # The peer cuts as it goes, so that only what comes before the first cut is the tensor's own.
    assert_trees_close(ours[0][0], np.asarray(tucker[0]), 1e-12)
    bound = 1.0001 * float(x.truncation_error((2, 2, 2), x.tt_ranks))
    assert np.linalg.norm(np.asarray(rounded.to_dense()) - np.asarray(x.to_dense())) <= bound
    assert float(x.round((2, 2, 2)).distance(x)) <= bound


def test_reversal_sums_and_conversions(pair):
    x, _ = pair
    same = peer.TuckerTensorTrain(*theirs(x.cores))
    assert_trees_close(x.reverse().to_dense(), np.asarray(same.reverse().to_dense()), 1e-12)
    assert_trees_close(x.sum(), np.asarray(same.sum()), 1e-12)
    again = peer.TuckerTensorTrain.from_tensor_train(tuple(map(np.asarray, x.to_tt())))
    assert_trees_close(np.asarray(again.to_dense()), x.to_dense(), 1e-12)


def test_tangents_projections_and_retractions(pair):
    x, y = pair
    frame = x.frame()
    v = t3k.MANIFOLD.project_tensor(y, frame)
    expected = tangents.tv_project_t3_onto_tangent_space(theirs(frame), theirs(y.cores))
    assert_trees_close(tuple(v.variations), tuple(Variations(*map(tuple, expected))), 1e-11)
    # Two retractions of second order differ in the third.
    small = v * (1e-3 * float(x.norm() / v.to_t3().norm()))
    moved = tangents.tv_retract(theirs(frame), theirs(small.variations))
    assert_trees_close(t3k.MANIFOLD.retract(small).to_dense(), dense(moved), 1e-7)
