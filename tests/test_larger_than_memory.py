"""Samples and data in files: fits and maps of the api stream them, whatever their size."""

import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import t3k
from t3k.api import compiled
from t3k.kernels import newton, stored_arrays
from t3k.kernels.stored_arrays import reading
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, residuals, tensor, vectors
from tests.test_row_reader import Dataset
from tests.trains import quick_jit

N_PROBES, ORDER, CHUNK = 60, 1, 8
EXAMPLE = Path(__file__).parent.parent / "examples" / "larger_than_memory.py"


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    row = 8 * sum(SHAPE) * (2 + ORDER + 1)
    monkeypatch.setattr(stored_arrays, "BLOCK_BYTES", 25 * row)


@functools.cache
def measured() -> tuple[Any, Any, Any]:
    x, sample = tensor(), (vectors((N_PROBES,)), vectors((N_PROBES,), 10))
    return x, sample, tuple(map(np.asarray, x.probe_derivatives(*sample, ORDER)))


def zeros() -> t3k.TuckerTensorTrain:
    return t3k.TuckerTensorTrain.zeros(SHAPE, TUCKER_RANKS, TT_RANKS)


def in_files(folder: Path, train: Any) -> Any:
    """Some of them as maps, some as datasets."""
    arrays = []
    for i, x in enumerate(train):
        path = folder / f"{len(list(folder.iterdir()))}.npy"
        np.save(path, x)
        arrays.append(np.load(path, mmap_mode="r") if i % 2 == 0 else Dataset(np.asarray(x)))
    return tuple(arrays)


def fit(sample: Any, data: Any, **options: Any) -> Any:
    options = {"order": ORDER, "chunk_size": CHUNK, **options}
    return t3k.newton_cg(t3k.MANIFOLD, "probe_derivatives", sample, data, zeros(), **options)


@pytest.mark.parametrize("sum_over_probes", [True, False])
def test_the_transpose_reads_from_files_what_it_takes_from_memory(tmp_path, sum_over_probes):
    x, (ww, pp), data = measured()
    how: Any = {"sum_over_probes": sum_over_probes, "chunk_size": CHUNK}
    zz, *sample = (in_files(tmp_path, train) for train in (data, ww, pp))
    found = t3k.tv_probe_derivatives_transpose(zz, sample[0], sample[1], x.frame(), ORDER, **how)
    assert_trees_close(found, t3k.tv_probe_derivatives_transpose(data, ww, pp, x.frame(), ORDER, **how))


def test_forward_maps_read_probes_from_files(tmp_path):
    x, (ww, pp), data = measured()
    stored = [in_files(tmp_path, train) for train in (ww, pp)]
    assert_trees_close(x.probe_derivatives(*stored, ORDER, CHUNK), data)


def test_a_fit_to_files_recovers_the_tensor_and_a_second_one_compiles_nothing(tmp_path):
    x, sample, data = measured()
    programs = []
    for _ in range(2):
        ww, pp, zz = (in_files(tmp_path, train) for train in (*sample, data))
        found, stats = fit((ww, pp), zz)
        assert stats.status == "converged", str(stats)
        assert_trees_close(found.to_dense(), x.to_dense(), 1e-8)
        programs.append(compiled.optimizer_step(newton.update, True)._cache_size())
    assert programs[0] == programs[1]


def test_plain_probes_and_a_sample_in_memory_with_data_in_files(tmp_path):
    x, (ww, _), data = measured()
    _, _, zz = t3k.probe_kind(chunk_size=CHUNK).prepare(zeros(), ww, in_files(tmp_path, [z[0] for z in data]))
    assert [z.shape for z in zz] == [(1, N_PROBES, size) for size in SHAPE]
    found = t3k.tv_probe_derivatives_transpose(zz, ww, None, x.frame(), 0, sum_over_probes=True, chunk_size=CHUNK)
    expected = t3k.tv_probe_derivatives_transpose(
        [z[:1] for z in data], ww, None, x.frame(), 0, sum_over_probes=True, chunk_size=CHUNK
    )
    assert_trees_close(found, expected)


def test_applies_and_entries_are_measured_from_files(tmp_path):
    x, (ww, pp), _ = measured()
    frame, point = t3k.MANIFOLD.kernel.frame(x.cores)
    data = np.ones((ORDER + 1, N_PROBES))

    def gradient(sample: Any) -> Any:
        kind = t3k.apply_derivatives_kind(ORDER, chunk_size=CHUNK)
        kernel, *prepared = kind.prepare(x, sample, data)
        with reading(prepared) as wait:
            return wait(quick_jit(lambda s, z: kernel.misfit(s, z, point, frame, gradient=True))(*prepared))

    assert_trees_close(gradient((in_files(tmp_path, ww), in_files(tmp_path, pp))), gradient((ww, pp)))
    index = tuple(np.arange(N_PROBES) % N for N in SHAPE)

    def back(pp: Any) -> Any:
        return t3k.tv_entries_derivatives_transpose(data, index, pp, x.frame(), ORDER, True, CHUNK)

    assert_trees_close(back(in_files(tmp_path, pp)), back(pp))


def test_minibatches_from_files_are_refused(tmp_path):
    _, (ww, _), data = measured()
    with pytest.raises(ValueError, match="batch_size must be None where sample or data are in files"):
        t3k.mc_sgd(
            t3k.MANIFOLD,
            "probe",
            in_files(tmp_path, ww),
            [z[0] for z in data],
            zeros(),
            batch_size=8,
            key=jax.random.key(0),
        )


def test_one_map_of_all_modes_is_as_good_as_one_a_mode(tmp_path):
    x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 5, 5), TUCKER_RANKS, TT_RANKS)
    ww = np.stack(vectors((N_PROBES,), shape=x.shape))
    np.save(tmp_path / "ww.npy", ww)
    found = x.probe(np.load(tmp_path / "ww.npy", mmap_mode="r"), CHUNK)
    assert_trees_close(found, x.probe(tuple(ww), CHUNK))
    with pytest.raises(ValueError, match="ww must have one array per mode where it is in files"):
        x.probe(Dataset(ww))


def test_an_interrupted_read_ends_the_fit_with_its_own_error():
    class Interrupted(Dataset):
        def __getitem__(self, index: Any) -> Any:
            if len(self.reads) == 7:
                raise InterruptedError("no more of this file")
            return super().__getitem__(index)

    _, sample, data = measured()
    with pytest.raises(InterruptedError, match="no more of this file"):
        fit(sample, (*data[:2], Interrupted(data[2])))


def test_files_that_do_not_fit_are_refused_before_anything_is_read(tmp_path):
    x, (ww, pp), data = measured()

    def transpose(data: Any, ww: Any = ww) -> Any:
        return t3k.tv_probe_derivatives_transpose(data, ww, pp, x.frame(), ORDER, sum_over_probes=True)

    short = Dataset(data[1][:, :-1])
    with pytest.raises(ValueError, match=r"ztildes\[1\] must have shape \(2, 60, 6\) .*; got \(2, 59, 6\)"):
        transpose((data[0], short, data[2]))
    words = Dataset(data[1].astype("U8"))
    with pytest.raises(TypeError, match=r"ztildes\[1\] must be an array of real numbers; got dtype <U8"):
        transpose((data[0], words, data[2]))
    with pytest.raises(TypeError, match="real numbers; got dtype complex128"):
        transpose((data[0], Dataset(data[1].astype(complex)), data[2]))
    with pytest.raises(ValueError, match="data must have one array for each of the 3 modes"):
        fit((ww, pp), in_files(tmp_path, data[:2]))
    several = tuple(Dataset(w.reshape(6, 10, -1)) for w in ww)
    with pytest.raises(ValueError, match="arrays in files must have one axis for the probes"):
        x.probe(several)
    with pytest.raises(ValueError, match="ztildes must have no axes for stacks where it is in files"):
        transpose(tuple(map(Dataset, residuals((N_PROBES,), ORDER, (2,)))))
    assert short.reads == words.reads == several[0].reads == []


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_files():
    """Three times the files, and the same peak within two blocks of the reader."""

    def peak(mib: int) -> int:
        command = [sys.executable, str(EXAMPLE), "--mib", str(mib), "--iterations", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        return int(re.search(r"peak memory: (\d+) MiB", done.stdout)[1])  # type: ignore[index]

    small, large = peak(96), peak(288)
    assert large - small < 64
