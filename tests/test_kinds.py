"""Kinds of measurement: values that hash, names, samples and data in every layout, and a user's own."""

import copy
import pickle
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.api.kinds import as_kind
from t3k.kernels.measurements import take_rows
from tests.fit_problems import DERIVATIVES, KINDS, data_of, error, near, order_of, sample_of, truth


def kind_of(name, **settings):
    make = getattr(t3k, f"{name}_kind")
    return make(1, **settings) if name in DERIVATIVES else make(**settings)


@pytest.mark.parametrize("name", [*KINDS, *DERIVATIVES])
def test_kinds_are_values(name):
    kind = kind_of(name, chunk_size=7)
    for other in (kind_of(name, chunk_size=7), copy.deepcopy(kind), pickle.loads(pickle.dumps(kind))):
        assert kind == other
        assert hash(kind) == hash(other)
    assert kind != kind_of(name, chunk_size=8)
    kernels = [kind_of(name).prepare(truth(), sample_of(name), data_of(name)).kind for _ in range(2)]
    assert kernels[0] == kernels[1]
    assert hash(kernels[0]) == hash(kernels[1])


@pytest.mark.parametrize("name", [*KINDS, *DERIVATIVES])
def test_names_stand_for_kinds_and_settings_go_into_either(name):
    assert as_kind(name, order_of(name), None, "auto") == kind_of(name)
    assert (
        as_kind(kind_of(name), None, None, 5) == kind_of(name, chunk_size=5) == as_kind(name, order_of(name), None, 5)
    )
    bounded = kind_of(name, memory="1GB")
    assert as_kind(name, order_of(name), None, "auto", "1GB") == bounded == as_kind(bounded, None, None, "auto")
    assert as_kind(bounded, None, None, 5) == kind_of(name, chunk_size=5)
    weight = [2.0, 1.0] if name.startswith("probe") else 2.0
    assert as_kind(kind_of(name), None, weight, "auto") == kind_of(name, weight=weight)


@pytest.mark.parametrize("name", [*KINDS, *DERIVATIVES])
def test_a_kind_measures_what_the_tensor_gives(name):
    found = kind_of(name).measure(truth(), sample_of(name))
    assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, data_of(name))
    assert all(
        bool((a == b).all()) for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(data_of(name)), strict=True)
    )


@pytest.mark.parametrize("name", [*KINDS, *DERIVATIVES])
def test_several_sample_axes_are_one(name):
    """W = (3, 20) is W = (60,)."""
    order = 0 if name in KINDS else 1

    def grid(x, lead=0):
        x = np.asarray(x)
        return x.reshape(*x.shape[:lead], 3, 20, *x.shape[lead + 1 :])

    flat = kind_of(name).prepare(truth(), sample_of(name), data_of(name), np.ones(60))
    sample = jax.tree.map(grid, sample_of(name))
    data = jax.tree.map(lambda x: grid(x, order), data_of(name))
    gridded = kind_of(name).prepare(truth(), sample, data, np.ones((3, 20)))
    assert flat.kind == gridded.kind
    for a, b in zip(jax.tree.leaves(flat[1:]), jax.tree.leaves(gridded[1:]), strict=True):
        assert a.shape == b.shape
        assert bool((a == b).all())


@pytest.mark.parametrize("name", DERIVATIVES)
def test_rows_of_a_sample_are_the_sample_of_rows(name):
    rows = jnp.asarray([3, 50, 3], jnp.int32)
    at, pp = sample_of(name)
    few = tuple(x[np.asarray(rows)] for x in at), tuple(x[np.asarray(rows)] for x in pp)
    kind, sample, data = kind_of(name).prepare(truth(), sample_of(name), data_of(name), np.arange(60.0))
    taken = take_rows(kind, sample, data, rows)
    measured = getattr(truth(), name)(*few, 1)
    expected = kind_of(name).prepare(truth(), few, measured, np.asarray(rows, float))
    for a, b in zip(jax.tree.leaves(taken), jax.tree.leaves(expected[1:]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@dataclass(frozen=True)
class Products(t3k.Kind):
    """A user's own kind: products of two entries; the data are a pytree."""

    factor: float = 1.0

    def measure(self, x, sample):
        left, right = (x.entries(index) for index in sample)
        return {"product": self.factor * left * right, "left": left}


def own_sample():
    return sample_of("entries"), sample_of("entries", 60, 1)


def test_a_users_own_kind_fits_on_both_geometries():
    kind, sample = Products(2.0, chunk_size=25), own_sample()
    for geometry in (t3k.MANIFOLD, t3k.COREWISE):
        x, stats = t3k.newton_cg(geometry, kind, sample, kind.measure(truth(), sample), near())
        assert error(x) < 1e-8, str(stats)


def test_a_users_own_kind_is_a_value_and_is_checked():
    kind, sample = Products(2.0), own_sample()
    assert kind == Products(2.0) != Products(3.0)
    data = kind.measure(truth(), sample)
    assert kind.prepare(truth(), sample, data).kind == Products(2.0).prepare(truth(), sample, data).kind
    with pytest.raises(ValueError, match="data must be as Products.measure gives them"):
        kind.prepare(truth(), sample, data["left"])
    with pytest.raises(ValueError, match="sample and data must have as many rows"):
        kind.prepare(truth(), sample, {**data, "left": data["left"][1:]})
    with pytest.raises(ValueError, match="weight must be None for Products"):
        as_kind(kind, None, [1.0], "auto")
    with pytest.raises(ValueError, match="order must be that of the kind, None"):
        as_kind(kind, 1, None, "auto")
    with pytest.raises(NotImplementedError, match="must define measure"):
        t3k.Kind().measure(truth(), sample)


REFUSALS = [
    (lambda: t3k.apply_kind(chunk_size=0), ValueError, "chunk_size must be an int >= 1"),
    (lambda: t3k.entries_derivatives_kind(-1), ValueError, "order must be an int >= 0"),
    (lambda: t3k.apply_derivatives_kind(1, weight=[1, 2, 3]), ValueError, "a finite number for each of the 2 orders"),
    (lambda: t3k.probe_kind(weight=[np.nan, 1]), ValueError, "weight must hold finite numbers"),
    (lambda: t3k.entries_kind().prepare(truth(), ([0.5], [1]), [1.0]), TypeError, "must hold integers"),
    (lambda: t3k.entries_kind().prepare(truth(), ([4], [1]), [1.0]), IndexError, r"index\[0\] must be in"),
    (lambda: t3k.entries_kind().prepare(truth(), ([], []), []), (TypeError, ValueError), "must hold"),
    (lambda: t3k.apply_derivatives_kind(1).prepare(truth(), 3, 3), TypeError, r"sample must be \(ww, pp\)"),
    (lambda: as_kind("aplly", None, None, "auto"), ValueError, 'kind must be "probe", "apply", "entries"'),
    (lambda: as_kind(3, None, None, "auto"), TypeError, "or a kind object; got int"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSALS)
def test_what_does_not_fit_is_refused_in_words(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
