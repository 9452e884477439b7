"""Laws of reading rows: what is asked for, whole, with the next block on its way."""

import threading

import numpy as np
import pytest

from t3k.kernels.row_reader import RowReader

ROWS = np.arange(20.0).reshape(10, 2)
FLOAT32 = np.dtype(np.float32)


class Dataset:
    """What h5py and zarr offer: a shape, a dtype and slices, each read noted down."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.reads: list[int] = []
        self.threads: set[int] = set()
        self.read = threading.Condition()

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        with self.read:
            self.reads.append(index[-1].start)
            self.threads.add(threading.get_ident())
            self.read.notify_all()
        return self.array[index]


def mapped(path, array, mode="r"):
    array.tofile(path)
    return np.memmap(path, array.dtype, mode, shape=array.shape)


@pytest.mark.parametrize("size", [1, 4, 10])
def test_blocks_come_in_any_order_along_any_axis_in_the_dtype_asked_for(size):
    for axis, array in ((0, ROWS), (1, ROWS.T)):
        reader = RowReader(array, FLOAT32)
        for start in (0, 10 - size, 3 * (size < 10), 0):
            block = reader.read(axis, start, size)
            assert block.dtype == np.float32
            assert block.flags.c_contiguous
            np.testing.assert_array_equal(block, array.take(range(start, start + size), axis))


def test_the_next_block_is_read_while_this_one_is_used_and_after_the_last_the_first():
    dataset = Dataset(ROWS)
    reader = RowReader(dataset, FLOAT32)
    for n, start in enumerate((0, 4, 6, 0, 4)):  # as a loop in blocks of 4 goes: the last overlaps
        reader.read(0, start, 4)
        with dataset.read:
            assert dataset.read.wait_for(lambda n=n: len(dataset.reads) == n + 2, timeout=60)
    assert dataset.reads == [0, 4, 6, 0, 4, 6]
    assert threading.get_ident() not in dataset.threads


def test_an_array_of_one_block_is_not_read_ahead():
    dataset = Dataset(ROWS)
    reader = RowReader(dataset, FLOAT32)
    reader.read(0, 0, 10)
    reader.read(0, 0, 10)
    assert dataset.reads == [0, 0]


def test_a_short_read_raises():
    class Short(Dataset):
        def __getitem__(self, index):
            return super().__getitem__(index)[:3]

    reader = RowReader(Short(ROWS), FLOAT32)
    with pytest.raises(OSError, match=r"rows 2 to 6 must have shape \(4, 2\); reading gave \(3, 2\)") as caught:
        reader.read(0, 2, 4)
    assert reader.error is caught.value


def test_a_file_that_was_cut_off_raises_and_the_process_lives(tmp_path):
    array = np.zeros((4096, 4))
    file = mapped(tmp_path / "rows", array)
    reader = RowReader(file[:, 1:], FLOAT32)
    reader.read(0, 0, 8)
    with (tmp_path / "rows").open("r+b") as raw:
        raw.truncate(8192)
    with pytest.raises(OSError, match=f"the file must have {array.nbytes} bytes, as when it was mapped; got 8192"):
        reader.read(0, 2048, 8)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_what_was_written_to_a_map_is_there_after_its_pages_are_let_go(tmp_path, mode):
    file = mapped(tmp_path / "rows", ROWS, mode)
    if mode != "r":
        file[3] = -1
    expected = np.array(file)
    reader = RowReader(file, file.dtype)
    for _ in range(2):
        np.testing.assert_array_equal(reader.read(0, 0, 10), expected)
