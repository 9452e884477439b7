"""What a T3 tells people about itself."""

import sys

import jax
import numpy as np
import pytest

from tests.api_problems import stacked, tensor


def test_the_summary_has_shape_ranks_compression_and_singular_values():
    x = tensor()
    text = x.summary()
    assert "5 x 6 x 7" in text
    assert "(2, 3, 2), minimal (2, 3, 2)" in text
    assert f"62 of 210 entries, compression {210 / 62:.3g}" in text
    assert f"dimension {x.manifold_dimension}" in text
    tucker, _ = x.singular_values()
    assert ", ".join(f"{float(s):.2e}" for s in tucker[0]) in text
    assert len(text.split("\n")) == 7 + 3 + 2
    assert "stack (2,)" in stacked(2).summary()


def test_notebooks_show_the_summary_as_a_table():
    page = tensor()._repr_html_()
    assert page.startswith("<table>")
    assert page.count("<tr>") == 12
    jax.jit(lambda x: x._repr_html_() and x.norm())(tensor())


def test_the_figure_shows_ranks_and_spectra():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    x = tensor()
    ranks, spectra = x.plot()
    assert ranks.lines[0].get_ydata().tolist() == list(x.tucker_ranks)
    assert ranks.lines[1].get_ydata().tolist() == list(x.tt_ranks)
    assert len(spectra.lines) == 3 + 2
    np.testing.assert_allclose(spectra.lines[0].get_ydata(), x.singular_values()[0][0] / x.norm())
    assert x.plot((ranks, spectra)) == (ranks, spectra)
    plt.close("all")


def test_a_figure_of_a_stack_or_without_matplotlib_is_refused_in_words(monkeypatch):
    with pytest.raises(ValueError, match="plot needs a single tensor"):
        stacked(2).plot()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match='pip install "t3k\\[plot\\]"'):
        tensor().plot()
