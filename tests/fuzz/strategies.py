"""Texts that hypothesis draws for the fuzz tests, and the settings of all of them."""

from __future__ import annotations

import datetime

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

__all__ = ["CPP", "FUZZ", "LINES", "TEXT", "lines_of"]

# A text of a few hundred characters takes milliseconds; the deadline is there to notice a hang on a
# machine that others use too.
FUZZ = settings(
    max_examples=120,
    deadline=datetime.timedelta(seconds=5),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
    database=None,
)

TEXT = st.text(max_size=300)
_PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


def lines_of(pieces: st.SearchStrategy[str], most: int = 14) -> st.SearchStrategy[str]:
    """Texts whose lines are drawn from `pieces`."""
    return st.lists(pieces, max_size=most).map("\n".join)


LINES = lines_of(_PRINTABLE)

_CPP_PIECES = st.sampled_from(
    [
        "__global__ void k(float* x)",
        "__device__ float f(float v)",
        "__shared__ float s[32];",
        "extern __shared__ float d[];",
        "extern __shared__ __align__(16) unsigned char raw[];",
        "k<<<1, 32>>>(x);",
        "k<<<",
        ">>>(x);",
        "k<float, 4><<<dim3(1, 2), (a > b), n * sizeof(float), s>>>(x, y);",
        "a < b > c;",
        "x >> 3 >>> 1",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        '"',
        "'",
        'R"(text)"',
        'R"x(',
        "/*",
        "*/",
        "// k<<<1, 1>>>()",
        "#define LAUNCH(k) k<<<1, 1>>>(x)",
        "#include <torch/extension.h>",
        '#include "k.cuh"',
        "#if 0",
        "#endif",
        "#define A \\",
        "\\",
        "template <typename T>",
        "namespace a {",
        "torch::Tensor run(torch::Tensor x) {",
        "at::relu(x)",
        "torch::",
        'asm volatile("mov.u32 %0, %laneid;" : "=r"(x));',
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }',
        "0x1'000p-3f",
        "1e",
        "$a_b",
        "\u00e4\u4e2d",
        "\f\v\r",
        "\0",
        "??/",
    ]
)
CPP = st.lists(
    st.one_of(_CPP_PIECES, _CPP_PIECES, _PRINTABLE, st.text(max_size=8)), max_size=20
).flatmap(
    lambda pieces: st.sampled_from(["\n", " ", "", "\r\n"]).map(lambda glue: glue.join(pieces))
)
