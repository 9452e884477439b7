"""A fit that is killed and resumed is the fit that was not killed, bit for bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import t3k
from t3k.api.checkpoints import fingerprint, load_fit, save_fit
from t3k.api.fit_stats import FitStats
from tests.fit_problems import data_of, near, sample_of

KIND = "apply"

KILLED = """
import os, signal, sys
import jax
jax.config.update("jax_enable_x64", True)
from tests.test_checkpoints import fit

def kill(info):
    if info.iteration == 6:
        os.kill(os.getpid(), signal.SIGKILL)

fit(sys.argv[1], callback=kill)
"""


def fit(path, **settings):
    settings = {"max_iterations": 12, "check_every": 2, "batch_size": 20, "key": jax.random.key(3), **settings}
    return t3k.mc_sgd(t3k.MANIFOLD, KIND, sample_of(KIND), data_of(KIND), near(), checkpoint=path, **settings)


def assert_same(found, expected):
    (x, stats), (y, others) = found, expected
    for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("losses", "steps", "gradient_norms", "step_sizes", "status", "message", "iterations"):
        assert getattr(stats, name) == getattr(others, name), name


def test_a_fit_that_was_killed_and_resumed_is_the_one_that_was_not(tmp_path):
    path = tmp_path / "fit.npz"
    program = [sys.executable, "-c", KILLED, str(path)]
    done = subprocess.run(
        program,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    resumed = fit(path, resume=True)
    assert_same(resumed, fit(tmp_path / "other.npz"))
    assert resumed[1].steps == [0, 2, 4, 6, 8, 10, 12]


def test_a_resumed_fit_keeps_its_validation_and_its_best_point(tmp_path):
    settings = {"validation": (sample_of(KIND), data_of(KIND)), "patience": 50}
    path = tmp_path / "fit.npz"
    fit(path, callback=lambda info: info.iteration == 4, **settings)
    assert_same(fit(path, resume=True, **settings), fit(None, **settings))


def test_without_a_file_to_resume_from_the_fit_starts(tmp_path):
    assert_same(fit(tmp_path / "none.npz", resume=True), fit(None))
    with pytest.raises(ValueError, match="checkpoint must name the file"):
        fit(None, resume=True)


def test_the_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    fit(path)
    for settings in ({"batch_size": 21}, {"regularizer": t3k.Tikhonov(0.1)}):
        with pytest.raises(ValueError, match="other data, another start or other settings"):
            fit(path, resume=True, **settings)


TREE = {
    "key": jax.random.key,
    "low": lambda _: jax.numpy.ones(3, jax.numpy.bfloat16),
    "x": lambda _: jax.numpy.arange(4.0),
}


def test_files_hold_keys_and_every_dtype_and_damaged_ones_are_refused(tmp_path):
    path, tree = tmp_path / "tree.npz", {name: make(7) for name, make in TREE.items()}
    save_fit(path, "mark", tree, FitStats(losses=[1.0, float("inf")]))
    found, stats = load_fit(path, "mark", tree)
    assert stats.losses == [1.0, float("inf")]
    assert jax.random.key_data(found["key"]).tolist() == jax.random.key_data(tree["key"]).tolist()
    assert found["low"].dtype == jax.numpy.bfloat16
    whole = path.read_bytes()
    for damaged in (whole[:-40], whole[: len(whole) // 2], b"", b"nonsense", whole.replace(b"leaf_1", b"leaf_9")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is no checkpoint that this fit can go on from"):
            load_fit(path, "mark", tree)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="expected an array"):
        load_fit(path, "mark", {**tree, "x": jax.numpy.arange(5.0)})
    with pytest.raises(FileNotFoundError):
        load_fit(tmp_path / "none.npz", "mark", tree)
    assert [file.name for file in tmp_path.iterdir()] == ["tree.npz"]


def test_fingerprints_tell_values_arrays_and_dtypes_apart():
    marks = {
        fingerprint("a", np.ones(2)),
        fingerprint("b", np.ones(2)),
        fingerprint("a", np.ones(2, np.float32)),
        fingerprint("a", np.ones((2, 1))),
    }
    assert len(marks) == 4
