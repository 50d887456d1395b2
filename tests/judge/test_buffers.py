"""Shared memory: layout, sealing, and that both sides see one another's writes."""

import os

import pytest
import torch

from kernelgym.judge.buffers import SharedBuffer, dtype_name, layout, named_dtype


def test_a_write_on_one_side_is_seen_on_the_other():
    slots, size = layout([("a", (3, 4), torch.float32), ("b", (5,), torch.int64)])
    ours = SharedBuffer(size)
    theirs = SharedBuffer(fd=os.dup(ours.fd))
    ours.tensor(slots[0]).fill_(7)
    theirs.tensor(slots[1]).copy_(torch.arange(5))
    assert torch.equal(theirs.tensor(slots[0]), torch.full((3, 4), 7.0))
    assert torch.equal(ours.tensor(slots[1]), torch.arange(5))


def test_there_is_a_page_between_tensors_and_around_them():
    slots, size = layout([("a", (1,), torch.float32), ("b", (1025,), torch.float32)])
    assert slots[0].offset >= 4096
    assert slots[1].offset - (slots[0].offset + slots[0].nbytes) >= 4096
    assert size - (slots[1].offset + slots[1].nbytes) >= 4096


def test_the_other_side_cannot_shrink_it():
    buffer = SharedBuffer(8192)
    with pytest.raises(PermissionError):
        os.ftruncate(buffer.fd, 0)


def test_poison_is_nan():
    slots, size = layout([("a", (4,), torch.float32)])
    buffer = SharedBuffer(size)
    buffer.fill(slots[0], 0xFF)
    assert bool(torch.isnan(buffer.tensor(slots[0])).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.bool, torch.float64])
def test_dtype_names_go_both_ways(dtype):
    assert named_dtype(dtype_name(dtype)) is dtype


def test_an_unknown_dtype_is_named():
    with pytest.raises(ValueError, match="nonsense"):
        named_dtype("nonsense")


def test_empty_tensors_are_fine():
    slots, size = layout([("a", (0, 3), torch.float32)])
    assert SharedBuffer(size).tensor(slots[0]).shape == (0, 3)
