"""Contracts speak in letters: what they accept, what they refuse, and what the refusal says."""

from typing import Any

import jax
import numpy as np
import pytest

from t3k.kernels import checks
from t3k.kernels.types import Frame
from tests.trains import draw_frame, draw_variations, normal


def array(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.float32)


def test_letters_are_bound_to_sizes_and_kept():
    dims = checks.bind({"k": 3}, "U", array(3, 5), "ko")
    assert dims == {"k": 3, "o": 5}
    assert checks.bind(dims, "z", array(2, 5), "to") == {"k": 3, "o": 5, "t": 2}


def test_a_wrong_size_is_named_with_its_letters():
    with pytest.raises(AssertionError, match=r"U has axes 'ko', of sizes \{'k': 4"):
        checks.bind({"k": 4}, "U", array(3, 5), "ko")


def test_a_wrong_number_of_axes_is_named():
    with pytest.raises(AssertionError, match=r"U has axes 'ko', got shape \(3,\)"):
        checks.bind({}, "U", array(3), "ko")


@pytest.mark.parametrize("probes", [(), (7,), (7, 2)])
def test_w_stands_for_any_number_of_probe_axes(probes):
    dims = checks.bind({}, "mu", array(3, *probes, 2), "tWa")
    assert dims["W"] == len(probes)
    checks.bind(dims, "ww", array(*probes, 5), "Wo")


@pytest.mark.parametrize("wrong", [(), (7,), (2, 7), (7, 2, 1)])
def test_probe_axes_are_the_same_everywhere(wrong):
    dims = checks.bind({}, "mu", array(3, 7, 2, 4), "tWa")
    with pytest.raises(AssertionError, match="nu has axes 'tWb'"):
        checks.bind(dims, "nu", array(3, *wrong, 5), "tWb")


def test_orders_and_probes_are_shared_by_all_modes_and_ranks_are_not():
    jets = (array(2, 7, 3), array(2, 7, 4))
    assert checks.check_trains({"t": 2}, jets=(jets, "tWa")) == 2
    with pytest.raises(AssertionError, match=r"jets\[1\] has axes 'tWa'"):
        checks.check_trains({}, jets=((array(2, 7, 3), array(3, 7, 4)), "tWa"))


def test_trains_are_of_one_length_and_never_empty():
    with pytest.raises(AssertionError, match="b has 1 modes, expected 2"):
        checks.check_same_length(a=(array(), array()), b=(array(),))
    with pytest.raises(AssertionError, match="a has 0 modes"):
        checks.check_same_length(a=())


def test_bonds_match_their_neighbours():
    with pytest.raises(
        AssertionError, match=r"right bond of left\[0\] \(1, 2, 3\) and left bond of left\[1\] \(2, 2, 1\)"
    ):
        checks.check_bonds(left=(array(1, 2, 3), array(2, 2, 1)))


def test_stacked_trains_are_checked_without_slicing_them():
    program = jax.make_jaxpr(lambda U, G: checks.check_t3(U, G))(array(4, 3, 5), array(4, 2, 3, 2))
    assert not program.jaxpr.eqns


def test_a_t3_has_matching_tucker_indices():
    assert checks.check_t3((array(2, 5), array(3, 5)), (array(1, 2, 4), array(4, 3, 1))) == 2
    with pytest.raises(AssertionError, match=r"tt_cores\[1\] has axes 'akb'"):
        checks.check_t3((array(2, 5), array(2, 5)), (array(1, 2, 4), array(4, 3, 1)))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_frame_with_all_ranks_different_is_accepted(d):
    frame = draw_frame(normal(0), d, end=(2, 3))
    assert checks.check_frame(*frame) == d
    assert checks.check_variations(*draw_variations(normal(0), frame), frame) == d


@pytest.mark.parametrize("train", ["up", "down", "left", "right"])
def test_a_frame_with_one_wrong_core_is_refused(train):
    frame: Any = draw_frame(normal(0), 3)
    cores = getattr(frame, train)
    wrong: Any = np.ones([size + 1 for size in cores[1].shape])
    with pytest.raises(AssertionError):
        checks.check_frame(*frame._replace(**{train: (cores[0], wrong, cores[2])}))


@pytest.mark.parametrize("train", ["tucker", "tt"])
def test_variations_that_do_not_fit_the_frame_are_named(train):
    frame = draw_frame(normal(0), 2)
    variations: Any = draw_variations(normal(0), frame)
    cores = getattr(variations, train)
    wrong = variations._replace(**{train: (np.ones([size + 1 for size in cores[0].shape]), cores[1])})
    with pytest.raises(AssertionError, match=rf"variations\.{train}\[0\]"):
        checks.check_variations(wrong.tucker, wrong.tt, frame)


def probes_of(frame: Frame, n_probes: int = 4) -> Any:
    return tuple(np.ones((n_probes, U.shape[1])) for U in frame.up)


def test_directions_may_only_be_left_out_at_order_zero():
    frame = draw_frame(normal(0), 2)
    ww = probes_of(frame)
    assert checks.check_probes(0, ww, None, frame.up) == 2
    with pytest.raises(AssertionError, match="pp must be given at order 1"):
        checks.check_probes(1, ww, None, frame.up)
    with pytest.raises(AssertionError, match="order is the highest derivative, got -1"):
        checks.check_probes(-1, ww, None, frame.up)


def test_probes_directions_and_residuals_agree():
    frame = draw_frame(normal(0), 2)
    ww = probes_of(frame)
    zz: Any = tuple(np.ones((3, *w.shape)) for w in ww)
    assert checks.check_probes(2, ww, ww, frame.up, zz=zz) == 2
    with pytest.raises(AssertionError, match=r"pp\[0\] has axes 'wo'"):
        checks.check_probes(2, ww, probes_of(frame, 5), frame.up)
    with pytest.raises(AssertionError, match=r"zz\[0\] has axes 'two'"):
        checks.check_probes(1, ww, ww, frame.up, zz=zz)


def test_there_is_a_weight_for_every_mode_and_order_and_one_for_every_probe():
    ww = probes_of(draw_frame(normal(0), 2))
    checks.check_weights(1, ww, np.ones((2, 2)), np.ones(4))
    with pytest.raises(AssertionError, match="weights has axes 'it'"):
        checks.check_weights(1, ww, np.ones((3, 2)))
    with pytest.raises(AssertionError, match="rows has axes 'w'"):
        checks.check_weights(1, ww, None, np.ones(3))
