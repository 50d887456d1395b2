"""Builds extensions against the stand-in headers and a CUDA runtime of a few lines."""

import ctypes
import importlib.machinery
import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

import kernelgym.toolchain

HERE = pathlib.Path(__file__).parent
INCLUDE = pathlib.Path(kernelgym.toolchain.__file__).parent / "include"
FLAGS = [
    "-std=c++17",
    "-O0",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wno-implicit-fallthrough",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    f"-I{HERE / 'cuda'}",
    f"-I{INCLUDE / 'torch'}",
]
# The emulator's own runtime may be in this process too: its names must not be found instead.
FLAGS += [
    f"-Dkgemu_{name}=fake_{name}"
    for name in ("alloc", "free", "register", "unregister", "mark_initialised", "is_device_pointer")
]
_LAUNCH = re.compile(r"([\w:]+(?:<[\w:, ]+>)?)<<<([^;]+?)>>>\(")


def _launch(match):
    depth, parts = 0, [""]
    for c in match[2]:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return f"launch({parts[0]}, {parts[1]}, [](auto... a) {{ {match[1]}(a...); }}, "


class Builder:
    """Compiles texts into one extension module; CUDA launches become loops."""

    def __init__(self, folder):
        self.folder = folder
        self.runtime = folder / "libruntime.so"
        # Of the emulator's headers this one alone: the others would be found before ours.
        shutil.copy(INCLUDE / "cuda" / "kgemu_api.h", folder)
        self.flags = [*FLAGS, f"-I{folder}"]
        subprocess.run(
            [
                "g++",
                *self.flags,
                "-DKGEMU",
                "-shared",
                HERE / "cuda" / "runtime.cpp",
                "-o",
                self.runtime,
            ],
            check=True,
        )

    def compile(self, name, *texts, flags=("-DKGEMU",)):
        """Returns the path of the library; `flags` choose the emulator's side of the headers."""
        jobs, objects = [], []
        for index, text in enumerate(texts):
            source = self.folder / f"{name}_{index}.cpp"
            source.write_text(_LAUNCH.sub(_launch, text))
            objects.append(source.with_suffix(".o"))
            command = [
                "g++",
                *self.flags,
                f"-DTORCH_EXTENSION_NAME={name}",
                "-c",
                *flags,
                source,
                "-o",
                objects[-1],
            ]
            jobs.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        errors = "".join(job.communicate()[1] for job in jobs)
        if any(job.returncode for job in jobs):
            raise RuntimeError(errors)
        assert not errors, f"expected no warnings, got {errors}"
        library = self.folder / f"{name}.so"
        subprocess.run(["g++", "-shared", *objects, "-o", library, self.runtime], check=True)
        return str(library)

    def __call__(self, name, *texts, **options):
        """Returns the imported module."""
        path = self.compile(name, *texts, **options)
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    return Builder(tmp_path_factory.mktemp("standin"))


@pytest.fixture
def runtime(build):
    library = ctypes.CDLL(str(build.runtime))
    library.fake_last_label.restype = ctypes.c_char_p
    library.fake_marked_bytes()
    return library
