import inspect

import pytest
from torch.utils import cpp_extension

from kernelgym.errors import UsageError
from kernelgym.toolchain.build import BuildRequest, BuildResult, SourceFile
from kernelgym.toolchain.inline import BuildFailed, Installed


class Service:
    """Refuses every request, and keeps the last."""

    def __call__(self, request):
        self.request = request
        return BuildResult("0" * 64, "unsupported", "emulator", why="inline PTX in line 3")


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def installed(service):
    return Installed(service, "sm_90", "fast", (SourceFile("a/b.cu", "text"),))


def ask(installed, service, *args, **named):
    with pytest.raises(BuildFailed):
        installed.load_inline(*args, **named)
    return service.request


@pytest.mark.parametrize("name", ["load", "load_inline"])
def test_signatures_are_torchs(name):
    ours = list(inspect.signature(getattr(Installed, name)).parameters.values())[1:]
    theirs = inspect.signature(getattr(cpp_extension, name)).parameters.values()
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]


def test_a_failed_build_says_why(installed):
    with pytest.raises(BuildFailed, match=r"(?s)'ext': unsupported.*inline PTX in line 3") as error:
        installed.load_inline("ext", "")
    assert installed.results == [error.value.result]


def test_single_texts_and_lists_mean_the_same(installed, service):
    one = ask(installed, service, "e", "c", "g", functions="f")
    many = ask(installed, service, "e", ["c"], ["g"], functions=["f"])
    assert one == many
    assert one == BuildRequest(
        "e",
        "sm_90",
        cpp_sources=("c",),
        cuda_sources=("g",),
        functions=(("f", "f"),),
        files=(SourceFile("a/b.cu", "text"),),
    )


def test_the_callers_lists_stay_as_they_are(installed, service):
    sources = ["int x;"]
    ask(installed, service, "e", sources, functions=["f"])
    assert sources == ["int x;"]


def test_flags(installed, service):
    request = ask(
        installed,
        service,
        "e",
        "",
        extra_cflags=["-O3"],
        extra_cuda_cflags=["--use_fast_math"],
        extra_ldflags=["-lcublas"],
        extra_include_paths=["own", *cpp_extension.include_paths()],
        no_implicit_headers=True,
    )
    assert request.extra_cflags == ("-O3", "-Iown")
    assert request.extra_cuda_cflags == ("--use_fast_math", "-Iown")
    assert request.extra_ldflags == ("-lcublas",)
    assert request.no_implicit_headers


def test_no_functions_and_an_empty_list_of_functions(installed, service):
    assert ask(installed, service, "e", "c").cpp_sources == ("c",)
    assert ask(installed, service, "e", "c", functions=[]).cpp_sources[1].startswith("PYBIND11_MOD")


@pytest.mark.parametrize(
    ("named", "error", "text"),
    [
        ({"functions": 3}, ValueError, "Expected 'functions' to be a list or dict"),
        ({"sycl_sources": "x"}, UsageError, "sycl_sources"),
        ({"unknown": 1}, TypeError, "unexpected keyword argument 'unknown'"),
    ],
)
def test_wrong_arguments(installed, named, error, text):
    with pytest.raises(error, match=text):
        installed.load_inline("e", "", **named)


def test_load_of_something_that_is_no_module(installed):
    with pytest.raises(UsageError, match="is_standalone"):
        installed.load("e", "a/b.cu", is_standalone=True)


def test_load_finds_workspace_files_by_the_end_of_their_path(installed, service):
    with pytest.raises(BuildFailed):
        installed.load("e", ["/somewhere/a/b.cu", "b.cu"][:1])
    assert service.request.sources == ("a/b.cu",)
    with pytest.raises(FileNotFoundError, match=r"a/b\.cu"):
        installed.load("e", "b.cu")
