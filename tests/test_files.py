import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest

import t3k
from tests.api_problems import assert_trees_close, stacked, tensor


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_what_is_saved_is_loaded_to_the_bit(tmp_path, dtype):
    x = tensor(dtype=np.dtype(dtype) if dtype != "bfloat16" else "bfloat16")
    x.save(tmp_path / "x.npz")
    same = t3k.TuckerTensorTrain.load(tmp_path / "x.npz")
    assert same.dtype == x.dtype
    assert all(np.array_equal(a, b) for a, b in zip(same.tt_cores, x.tt_cores, strict=True))


def test_a_stack_is_saved_as_one(tmp_path):
    stacked(2).save(tmp_path / "x.npz")
    assert_trees_close(t3k.TuckerTensorTrain.load(tmp_path / "x.npz"), stacked(2), 0)


def test_frames_variations_and_tangents_are_saved_as_tensors_are(tmp_path):
    v = t3k.MANIFOLD.randn(jax.random.key(0), tensor().frame(), (2,))
    for value in (v, v.frame, v.variations):
        value.save(tmp_path / "x.npz")
        same = type(value).load(tmp_path / "x.npz")
        assert type(same) is type(value)
        assert_trees_close(same, value, 0)
    with pytest.raises(ValueError, match="expected format 't3k.T3Tangent'; got 't3k.T3Variations'"):
        t3k.T3Tangent.load(tmp_path / "x.npz")


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    tensor(0).save(path)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        tensor(1).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]
    assert_trees_close(t3k.TuckerTensorTrain.load(path), tensor(0), 0)


def _rewritten(path, **changes):
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays.update({name: value for name, value in changes.items() if value is not None})
    for name in [name for name, value in changes.items() if value is None]:
        del arrays[name]
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": np.asarray("something else")},
        {"version": np.asarray(99)},
        {"tt_1": None},
        {"tt_1": np.ones((3, 3, 2))},
        {"tt_1": np.ones((2, 3, 2), np.float32)},
        {"extra": np.ones(3)},
        {"d": np.asarray(2)},
        {"dtype": np.asarray("int64")},
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, changes):
    tensor().save(tmp_path / "x.npz")
    _rewritten(tmp_path / "x.npz", **changes)
    with pytest.raises(ValueError, match="is no t3k.TuckerTensorTrain that this version of t3k can read"):
        t3k.TuckerTensorTrain.load(tmp_path / "x.npz")


def test_pickles_and_torn_files_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, format=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(ValueError, match="damaged or no npz archive without pickle"):
        t3k.TuckerTensorTrain.load(path)
    tensor().save(path)
    whole = path.read_bytes()
    for end in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="damaged or no npz"):
            t3k.TuckerTensorTrain.load(path)
    with pytest.raises(FileNotFoundError):
        t3k.TuckerTensorTrain.load(tmp_path / "nothing.npz")


def test_a_file_of_each_earlier_version_loads():
    x = t3k.TuckerTensorTrain.load(Path(__file__).parent / "fixtures" / "t3_version_1.npz")
    assert (x.dtype, x.tucker_ranks, x.tt_ranks) == (np.float32, (2, 2), (1, 2, 1))
    assert x.to_dense().tolist() == [[-38.0, -22.0], [-19.0, -11.0], [9.0, 9.0]]


def test_others_may_read_what_is_saved(tmp_path):
    tensor().save(tmp_path / "x.npz")
    (tmp_path / "plain").touch()
    assert (tmp_path / "x.npz").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_shape_that_no_memory_holds_is_refused(tmp_path):
    tensor().save(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        names = archive.files
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        for name in names:
            header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ValueError, match="damaged or no npz"):
        t3k.TuckerTensorTrain.load(tmp_path / "y.npz")
