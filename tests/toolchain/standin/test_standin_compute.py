import pathlib

import pytest
import torch
import torch.nn.functional as F

SOURCE = pathlib.Path(__file__).with_name("compute.cpp")


@pytest.fixture(scope="module")
def ext(build):
    return build("standin_compute", SOURCE.read_text())


def test_operators_compute_what_torchs_compute(ext):
    torch.manual_seed(0)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    image, weight, bias = torch.randn(2, 3, 8, 8), torch.randn(5, 3, 3, 3), torch.randn(5)
    z = (x + y) * 2 - 1
    expected = [
        x + y,
        x - y * 2,
        1 - x,
        2 / y,
        -x,
        x @ y.t(),
        x.relu(),
        x.sum(),
        x.sum(1),
        x.sum((0, 1), keepdim=True),
        x.mean(-1, True),
        x.softmax(1),
        x.softmax(1),
        x.sum(1),
        F.conv2d(image, weight, bias, 2, 1),
        F.conv2d(image, weight),
        F.max_pool2d(image, 2),
        F.linear(x, y),
        F.layer_norm(x, (4,)),
        x.max(1).values,
        x.topk(2).indices,
        x.max(),
        torch.max(x, y),
        torch.cat([x, y]),
        torch.stack([x, y]),
        torch.where(x > 0, x, y),
        x.clamp(-0.5, 0.5),
        x.abs() + 1,
        x @ y.t(),
        F.gelu(x),
        torch.addmm(x.sum(0), x, y.t() @ y),
        x @ y.t(),
        x.sum(1, dtype=torch.float64),
        x == y,
        x >= y,
        x.norm(),
        x.t(),
        z,
    ]
    for got, want in zip(ext.all(x, y, image, weight, bias), expected, strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)


def test_random_numbers_come_from_torchs_generator(ext):
    torch.manual_seed(3)
    got = ext.random(torch.zeros(1))
    torch.manual_seed(3)
    assert torch.equal(got, torch.rand(3, 4))


def test_an_operators_error_is_pythons(ext):
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        ext.fails(torch.zeros(2, 3))
