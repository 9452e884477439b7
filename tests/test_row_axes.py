import numpy as np
import pytest

from t3k.kernels.row_axes import leaf_axes


def test_a_prefix_counts_for_all_leaves_below_it_and_axes_count_from_either_end():
    xs = {"a": (np.ones((2, 3)), np.ones((2, 3, 4))), "b": np.ones(2), "c": None}
    assert leaf_axes({"a": -2, "b": 0, "c": 5}, xs) == [0, 1, 0]
    assert leaf_axes({"a": (1, None), "b": None, "c": 0}, xs) == [1, None, None]


def test_a_tree_that_is_no_prefix_is_refused():
    with pytest.raises(ValueError, match="dict"):
        leaf_axes({"a": 0}, {"b": np.ones(2)})
