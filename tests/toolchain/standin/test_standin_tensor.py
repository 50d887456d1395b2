import gc
import pathlib
import random

import pytest
import torch

SOURCE = pathlib.Path(__file__).with_name("tensors.cpp")


@pytest.fixture(scope="module")
def ext(build):
    return build("standin_tensors", SOURCE.read_text())


def test_metadata_is_that_of_the_python_tensor(ext):
    x = torch.zeros(2, 3, 4).transpose(0, 2)
    text = ext.metadata(x)
    assert text == "[4, 3, 2] [1, 4, 12] 3 24 96 Float Float cuda:0 0 4 Float"
    assert ext.indexing(x) == [4, 2, 12]


def test_more_dimensions_than_are_held_inline(ext):
    x = torch.zeros(1, 2, 1, 2, 1, 2, 1, 2)
    assert ext.metadata(x).startswith("[1, 2, 1, 2, 1, 2, 1, 2] [16, 8, 8, 4, 4, 2, 2, 1] 8 16")
    assert ext.contiguous(x) is x


@pytest.mark.parametrize(
    ("shape", "strides", "contiguous"),
    [
        ((2, 3), (3, 1), 1),
        ((2, 3), (1, 2), 0),
        ((1, 3), (77, 1), 1),
        ((0, 3), (1, 9), 1),
        ((), (), 1),
    ],
)
def test_contiguity_ignores_dimensions_of_size_one_and_empty_tensors(
    ext, shape, strides, contiguous
):
    x = torch.zeros(200).as_strided(shape, strides)
    assert int(ext.metadata(x).split()[-3]) == contiguous == x.is_contiguous()


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.bool,
    ],
)
def test_data_pointers_of_every_element_type(ext, dtype):
    x = torch.zeros(10, dtype=dtype)[3:]
    assert ext.address(x) == ext.typed_address(x) == x.data_ptr()


def test_parameters_and_tensors_that_require_grad_are_read_too(ext):
    p = torch.nn.Parameter(torch.zeros(3, 2))
    assert ext.address(p) == p.data_ptr()
    assert ext.contiguous(p) is p


def test_views(ext):
    x = torch.arange(24.0).view(2, 3, 4)
    expected = [
        x.view(6, 4),
        x.view(-1),
        x.reshape(4, 6),
        x.flatten(),
        x.flatten(1),
        x.transpose(0, 2),
        x.permute(2, 0, 1),
        x[:, 0].t(),
        x[1],
        x[None],
        x,
        x.narrow(2, 1, 2),
        x[:, :, ::2],
        x[:, 1:],
        x.expand(5, 2, 3, 4),
        x.view(2, 12),
    ]
    for got, want in zip(ext.views(x), expected, strict=True):
        assert got.shape == want.shape
        assert got.stride() == want.stride()
        assert got.data_ptr() == want.data_ptr()


def test_factories(ext):
    like = torch.zeros(2, 3, dtype=torch.float64)
    expected = [
        torch.zeros(2, 3),
        torch.ones(2, dtype=torch.int32),
        torch.full((2, 2), 7.5),
        torch.full_like(like, 3),
        torch.zeros_like(like),
        torch.ones_like(like, dtype=torch.half),
        torch.arange(5.0),
        torch.tensor([1.5, 2.5]),
        torch.tensor(4),
        like.new_full((2,), 9),
        like.new_zeros(1, 2),
    ]
    for got, want in zip(ext.made(like), expected, strict=True):
        assert got.dtype == want.dtype
        assert torch.equal(got, want)


def test_empty_tensors_hold_poison_and_are_labelled_as_not_written(ext, runtime):
    x = torch.zeros(4, 3)
    y = ext.make_empty(x, False)
    assert y.shape == (4, 5)
    assert y.isnan().all()
    assert (runtime.fake_last_label(), runtime.fake_last_initialised()) == (b"torch::empty", 0)
    assert ext.make_empty(x, True).stride() == (1, 2)
    ext.made(x)
    assert runtime.fake_last_initialised() == 1


def test_empty_like_keeps_strides_that_leave_no_gaps(ext):
    x = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert ext.empty_like(x).stride() == x.stride()
    assert ext.empty_like(x[:, :2]).is_contiguous()
    assert ext.channels_last(torch.zeros(2, 3, 4, 5)).stride() == x.stride()


def test_memory_is_given_back(ext, runtime):
    gc.collect()
    before = runtime.fake_blocks(), runtime.fake_registrations()
    for _ in range(5):
        ext.made(torch.ones(3))
        ext.views(ext.copies(torch.ones(2, 3, 4))[0])
        with pytest.raises(RuntimeError):
            ext.fail(9)
    gc.collect()
    assert (runtime.fake_blocks(), runtime.fake_registrations()) == before


def test_an_allocation_that_cannot_be_had(ext):
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        ext.huge()
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        ext.negative()


def test_copies(ext, runtime):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    got = ext.copies(x)
    want = [x, x.double(), x.half(), x, x.int(), x.long()]
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        assert torch.equal(g, w)
    assert got[0].data_ptr() != x.data_ptr()
    assert got[3] is x
    y = ext.contiguous(x)
    assert y.is_contiguous()
    assert torch.equal(x, y)
    assert runtime.fake_last_label() == b"contiguous()"


def test_in_place_changes_are_marked_as_written(ext, runtime):
    x, y, z = torch.ones(3), torch.zeros(4), torch.zeros(4)
    runtime.fake_marked_bytes()
    ext.change(x, y, z)
    assert (x.tolist(), y.tolist(), z.tolist()) == ([0, 0, 0], [2.5] * 4, [2.5] * 4)
    assert runtime.fake_marked_bytes() == 4 * (3 + 4 + 4)
    m = torch.ones(5, 7)
    ext.zero_column(m)
    assert m.sum() == 30
    assert runtime.fake_marked_bytes() == 4 * 5


def test_accessors(ext):
    x = torch.arange(6.0).view(3, 2).t()
    ext.accessors(x)
    assert x.tolist() == [[100, 3, 5], [2, 101, 6]]


def test_items(ext):
    assert ext.items(torch.tensor(1.5), torch.tensor([2**40]), torch.tensor(True)) == [
        1.5,
        2**40,
        1,
        1.5,
    ]


def test_types_and_devices(ext):
    assert ext.types(torch.zeros(2)) == "Float 4 BFloat16"


def test_half_precision_rounds_like_torch(ext):
    rng = random.Random(0)
    values = [0.0, -0.0, 1.0, 65504.0, 65519.9, 65520.0, 1e9, -1e9, 2**-24, 2**-25, 3 * 2**-25]
    values += [1 + 2**-11, 1 + 3 * 2**-11, 2**-14, 6.1e-5, 3e38, float("inf"), -float("inf")]
    values += [rng.gauss(0, 1) * 10 ** rng.uniform(-8, 6) for _ in range(2000)]
    x = torch.tensor(values, dtype=torch.float64).float()
    got = torch.tensor(ext.halves(x.tolist()), dtype=torch.float64).view(-1, 2)
    assert torch.equal(got[:, 0], x.half().double())
    assert torch.equal(got[:, 1], x.bfloat16().double())
    assert torch.tensor(ext.halves([float("nan")])).isnan().all()


def test_half_arithmetic(ext):
    a = (1.5 + 2) * 2 - 0.5
    assert ext.half_arithmetic() == a + 2 * a + 1 + 65504


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        (0, RuntimeError, "kind is 0, wanted 1.5 and x"),
        (1, RuntimeError, "Expected kind != 1 to be true"),
        (2, RuntimeError, r"Check failed: kind == 3 \(2 vs. 3\). more"),
        (3, RuntimeError, "asserted"),
        (4, RuntimeError, "kind < 0 INTERNAL ASSERT FAILED at .*inside"),
        (5, RuntimeError, "undefined"),
        (6, IndexError, r"Dimension out of range .* \[-1, 0\], but got 2"),
        (7, RuntimeError, "plain"),
        (8, RuntimeError, "expected scalar type Int but found Float"),
        (9, RuntimeError, "invalid for input of size 6"),
        (10, RuntimeError, "at error 10"),
        (11, ValueError, "value"),
        (12, RuntimeError, "unknown exception"),
        (13, RuntimeError, "CUDA error: invalid argument"),
        (14, NotImplementedError, "not yet"),
        (15, RuntimeError, "expected 3 dims but tensor has 2"),
        (16, NotImplementedError, "\"my_kernel\" not implemented for 'Int'"),
        (17, UserWarning, "careful with 17"),
    ],
)
def test_errors_become_pythons(ext, kind, error, text):
    with pytest.raises(error, match=text):
        ext.fail(kind)
