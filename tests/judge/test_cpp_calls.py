"""Which calls in C++ are seen to compute with torch before anything is compiled."""

import pathlib
import re

import pytest

from kernelgym.judge.cpp_calls import cpp_calls
from kernelgym.toolchain.lexer import code_tokens, tokenize


def found(text):
    return [(line, what.split(",")[0]) for line, what in cpp_calls(code_tokens(tokenize(text))[0])]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("at::relu(x)", "calls at::relu"),
        ("torch::matmul(x, x)", "calls torch::matmul"),
        ("at::native::softmax(x, 1)", "calls at::native::softmax"),
        ("at::_ops::relu::call(x)", "calls at::_ops::relu::call"),
        ("torch::nn::functional::conv2d(x, x)", "calls torch::nn::functional::conv2d"),
        ("torch::nn::Linear(3, 4)", "calls torch::nn::Linear"),
        ("x.sum(1)", "calls x.sum"),
        ("x.add_(y)", "calls x.add_"),
        ("y.exp()", "calls y.exp"),
        ("z.matmul(x)", "calls z.matmul"),
    ],
)
def test_a_call_that_computes_is_found_at_its_line(call, what):
    text = f"""
namespace mine {{
torch::Tensor f(const torch::Tensor& x, at::Tensor y) {{
  auto z = torch::empty({{3, 4}}, x.options());
  return {call};
}}
}}
"""
    assert found(text) == [(5, what)]


@pytest.mark.parametrize(
    "call",
    [
        "torch::empty_like(x)",
        "torch::zeros({x.size(0), x.numel() / x.stride(0)}, x.options())",
        "x.contiguous().view({-1}).data_ptr<float>()",
        "x.reshape({4}).transpose(0, 1).to(torch::kHalf).clone()",
        "at::cuda::getCurrentCUDAStream()",
        "x.is_contiguous() && x.dim() == 2 && x.is_floating_point()",
        "x.type_as(y).expand({2, 2})",
        "n.sum(1)",
        "mine::relu(x)",
        "p->sum(x)",
        "torch::nn::Module()",
    ],
)
def test_other_calls_are_left_alone(call):
    text = (
        "torch::Tensor f(torch::Tensor x, at::Tensor y, Own n) { auto r = " + call + "; return x; }"
    )
    assert found(text) == []


def test_a_name_is_a_tensors_in_its_own_function_alone():
    text = """
torch::Tensor declared(torch::Tensor acc);
torch::Tensor f(torch::Tensor acc) { return acc; }
float g(Own acc) { return acc.sum(1); }
extern "C" float h(Own acc) { return acc.max(1); }
"""
    assert found(text) == []


def test_no_honest_candidate_of_these_tests_is_found():
    folder = pathlib.Path(__file__).parent
    sources = [(folder / name).read_text() for name in ("styles.py", "test_gpu.py")]
    texts = [m for text in sources for m in re.findall(r'r"""(.*?)"""', text, re.DOTALL)]
    assert len(texts) > 3
    assert [hit for text in texts for hit in found(text)] == []


def test_a_function_of_ones_own_may_bear_a_namespaces_name():
    assert found("int at(int i); int f() { return at(3) + at<float>(1); }") == []
