import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgym.toolchain.lexer import tokenize
from kernelgym.toolchain.rewrite import rewrite


def launch(name: str, call: str, configuration: str, arguments: str) -> str:
    shown = f'"{name}"'
    if not name.endswith(">"):  # perhaps a pointer to a kernel
        shown = (
            f"::kgemu::name_of({shown}, [=](auto kgemu_take) -> decltype(kgemu_take({name})) "
            f"{{ return kgemu_take({name}); }}, 0)"
        )
    return (
        f"::kgemu::prepare({shown}, __FILE__, __LINE__, [=](auto... kgemu_arguments) "
        f"{{ {call}(kgemu_arguments...); }}).on({configuration})({arguments})"
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("k<<<1, 2>>>(x);", launch("k", "k", "1, 2", "x") + ";"),
        ("k<<<g,b,s,st>>>();", launch("k", "k", "g,b,s,st", "") + ";"),
        (
            "k<float, 4><<<dim3(a, b), 256>>>(x, y);",
            launch("k<float, 4>", "k<float, 4>", "dim3(a, b), 256", "x, y") + ";",
        ),
        (
            "ns::k<vec<T>><<<1, 2>>>(x);",
            launch("ns::k<vec<T>>", "ns::k<vec<T>>", "1, 2", "x") + ";",
        ),
        ("return ::k<<<1, 2>>>(x);", "return " + launch("::k", "::k", "1, 2", "x") + ";"),
        ("if (n) k<<<1, 2>>>(x);", "if (n) " + launch("k", "k", "1, 2", "x") + ";"),
        ("if (n) (*f)<<<1, 2>>>(x);", "if (n) " + launch("(*f)", "(*f)", "1, 2", "x") + ";"),
        ("table[i]<<<1, 2>>>(x);", launch("table[i]", "table[i]", "1, 2", "x") + ";"),
        ("pick(n)<<<1, 2>>>(x);", launch("pick(n)", "pick(n)", "1, 2", "x") + ";"),
        ("s->k<<<1, 2>>>(x);", launch("s->k", "s->k", "1, 2", "x") + ";"),
        (
            "K<T>::template k<4><<<1, 2>>>(x);",
            launch("K<T>::template k<4>", "K<T>::template k<4>", "1, 2", "x") + ";",
        ),
        ("k<<<f<T>(n), b<T>>>>(x);", launch("k", "k", "f<T>(n), b<T>", "x") + ";"),
        ("k<(a > b)><<<1, 2>>>(x);", launch("k<(a>b)>", "k<(a > b)>", "1, 2", "x") + ";"),
        ("k<<<1, 2>>>(x, NULL, f(NULL));", launch("k", "k", "1, 2", "x, nullptr, f(NULL)") + ";"),
        ("memcpy(a, b, n); x.memcpy(a);", "kgemu_device_memcpy(a, b, n); x.memcpy(a);"),
        ("std::memset(a, 0, n);", "std::kgemu_device_memset(a, 0, n);"),
        ("mine::memcpy(a, b, n);", "mine::memcpy(a, b, n);"),
        (
            "__noinline__ void f(); __attribute__((__noinline__)) void g();",
            "__attribute__((noinline)) void f(); __attribute__((__noinline__)) void g();",
        ),
        (
            "cudaLaunchKernel((void*)k<T>, g, b, a);",
            "cudaLaunchKernel(k<T>, g, b, a);",
        ),
        (
            "cudaFuncSetAttribute(reinterpret_cast<const void*>(&k), c, 1);",
            "cudaFuncSetAttribute( (&k), c, 1);",
        ),
    ],
)
def test_spellings(source: str, expected: str) -> None:
    result = rewrite(source)
    assert result.text == expected
    assert result.unsupported == ()


@pytest.mark.parametrize(
    "source",
    [
        "// k<<<1, 2>>>(x);",
        "/* k<<<1, 2>>>(x);\n __shared__ T s[4]; */",
        'const char* s = "k<<<1, 2>>>(x); memcpy(a, b, c) \\" asm(";',
        'auto s = R"x(k<<<1, 2>>>(x); asm("no"))x";',
        "a << b; c >> d; x <<= 2; p->q<r>(1);",
        "std::ostream& operator<<<T>(std::ostream&, T);",
        "__shared__ float s[32];",
        "char c = '<'; char d = '\\'';",
        "#error don't\nint x;",
        "int tex2D = 1, cute = 2, cuda = 3, wmma = 4;",
    ],
)
def test_leaves_alone(source: str) -> None:
    result = rewrite(source)
    assert result.text == source
    assert result.unsupported == ()


def test_a_launch_in_a_macro_is_named_where_the_macro_is_used() -> None:
    source = "#define GO(k, ...) \\\n  k<<<1, 2>>>(__VA_ARGS__)\nGO(f, x);\n"
    result = rewrite(source)
    assert "KGEMU_NAME(k)" in result.text
    assert result.text.endswith(".on(1, 2)(__VA_ARGS__)\nGO(f, x);\n")


def test_a_kernel_of_the_same_text_needs_no_probe() -> None:
    text = rewrite("__global__ void __launch_bounds__(128) k(int x);\nk<<<1, 2>>>(x);").text
    assert '::kgemu::prepare("k", __FILE__' in text


def test_lines_stay() -> None:
    source = "a;\nk<T,\n  4>\n  <<<dim3(1,\n 2), /* >>> */ 3\n>>>(x,\n  y);\nb;\n"
    result = rewrite(source)
    assert result.text.count("\n") == source.count("\n")
    assert result.text.splitlines()[-1] == "b;"


def test_a_preprocessor_line_may_stand_inside_a_launch() -> None:
    result = rewrite("k<<<1, 2>>>(x,\n#ifdef A\n y\n#else\n z\n#endif\n);")
    assert result.text.endswith(".on(1, 2)(x,\n#ifdef A\n y\n#else\n z\n#endif\n);")


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (
            "extern __shared__ float s[];",
            "float * const s = static_cast<decltype(s)>(::kgemu::dynamic_shared());",
        ),
        (
            "extern __shared__ __align__(16) unsigned char s[];",
            "unsigned char * const s = static_cast<decltype(s)>(::kgemu::dynamic_shared());",
        ),
        (
            "extern volatile __shared__ float s[][8];",
            "volatile float (* const s)[8] = static_cast<decltype(s)>(::kgemu::dynamic_shared());",
        ),
    ],
)
def test_dynamic_shared_memory(declaration: str, expected: str) -> None:
    text = rewrite(f"void k() {{ {declaration} }}").text
    assert re.sub(r"\s+", " ", text) == f"void k() {{ {expected} }}"


def test_shared_variables_of_class_type_become_storage_and_a_reference() -> None:
    text = rewrite("void k() { __shared__ alignas(16) half2 s[4][5], t; }").text
    assert "half2 kgemu_type_s[4][5], kgemu_type_t;" in text
    assert "kgemu_type_s& s = kgemu_shared_s.get();" in text
    assert "kgemu_type_t& t = kgemu_shared_t.get();" in text
    assert "alignas" not in text


@pytest.mark.parametrize(
    "source",
    [
        "void k() { Pair<int, 4> __shared__ s[4]; }",
        "struct F { void operator()(int i) const { __shared__ Pair<int, 4> s[4]; } };",
        "void k() { if (x) { f(); } else { __shared__ Pair<int, 4> s[4]; } }",
    ],
)
def test_shared_variables_are_found_in_every_body(source: str) -> None:
    text = rewrite(source).text
    assert re.search(r"typedef +Pair<int, 4> +kgemu_type_s\[4\];", text)


def test_shared_variables_in_macros_and_outside_of_functions_are_left_to_the_macro() -> None:
    for source in (
        "#define S __shared__ T s[4]; T u\n",
        "struct A { int x; };\n__shared__ T s[4];",
    ):
        assert rewrite(source).text == source
    text = rewrite("extern __shared__ float4 s[];\nvoid k() { s[0].x = 1; }").text
    assert re.sub(" +", " ", text).startswith("static ::kgemu::DynamicShared< float4 > s;\n")


def test_columns_lead_back_to_the_source() -> None:
    source = "int a;\n  kern<int><<<g, bad>>>(x);\n"
    result = rewrite(source)
    line = result.text.splitlines()[1]
    for word in ("kern<", "g, ", "bad", "x)"):
        column = line.rindex(word) + 1 if word != "kern<" else line.rindex("{ kern<") + 3
        assert result.original_column(2, column) == source.splitlines()[1].index(word) + 1


@pytest.mark.parametrize(
    ("source", "construct", "line"),
    [
        ('\n__global__ void k() { asm volatile("bar.sync 0;"); }', "inline PTX", 2),
        ('#define PTX(x) asm("x")\n', "inline PTX", 1),
        ("#include <mma.h>\nint x;", "tensor core", 1),
        ("\n\nusing namespace nvcuda;", "tensor core", 3),
        ("\nwmma::fragment<int> f;", "tensor core", 2),
        ("\nvoid f() {\n cuda::barrier<S> b;\n}", "libcu++", 3),
        ("#include <cuda/barrier>", "libcu++", 1),
        ("\n__pipeline_commit();", "cp.async", 2),
        ("#include <cudnn.h>", "cuDNN", 1),
        ("\ncudnnCreate(&h);", "cuDNN", 2),
        ("#include <cutlass/gemm/gemm.h>", "CUTLASS", 1),
        ("#include <thrust/sort.h>", "Thrust", 1),
        ("\ncub::BlockReduce<float, 128> r;", "CUB", 2),
        ("#include <cub/cub.cuh>", "CUB", 1),
        ("\ncudaTextureObject_t t;", "textures", 2),
        ("\nfloat x = tex2D<float>(t, 1, 2);", "textures", 2),
        ("\ncudaStreamBeginCapture(s, m);", "CUDA graphs", 2),
        ("__global__ void k() {\n  j<<<1, 1>>>();\n}", "dynamic parallelism", 2),
        ("\nCUtensorMap m;", "TMA", 2),
        ("#define CFG <<<1, 2>>>\n", "put together by macros", 1),
    ],
)
def test_unsupported_constructs_are_named_with_their_line(
    source: str, construct: str, line: int
) -> None:
    found = rewrite(source).unsupported
    assert [(construct in item.construct, item.line) for item in found] == [(True, line)], found


@pytest.mark.parametrize(
    "source",
    [
        '// asm("x")\nconst char* s = "asm(wmma::x)";',
        'asm volatile("" ::: "memory");',
        '#if 0\nasm("x");\n#endif\n',
        '#if __CUDA_ARCH__ < 800\nasm("x");\n#else\nint y;\n#endif\n',
        '#ifndef __CUDA_ARCH__\nint y;\nasm("x");\n#endif\n',
        '#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700\nasm("x");\n#endif\n',
        "__host__ __device__ void f() { }\nvoid g() { k<<<1, 1>>>(); }",
        "__device__ float x = 1;\nvoid g() { k<<<1, 1>>>(); }",
        "__global__ void k();\nvoid g() { k<<<1, 1>>>(); }",
        "auto f = [] __device__ (int i) { return i; };\nvoid g() { k<<<1, 1>>>(f); }",
    ],
)
def test_supported(source: str) -> None:
    assert rewrite(source).unsupported == ()


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="k<>(){}[];,\"'#\n\\/* __shared__extern asm R:", max_size=60))
def test_any_text_is_rewritten_line_by_line(text: str) -> None:
    assert "".join(token.text for token in tokenize(text)) == text
    assert rewrite(text).text.count("\n") == text.count("\n")
