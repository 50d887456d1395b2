"""What the stand-in relies on in the torch at hand: DLPack's exchange API, and its layout."""

import pathlib
import subprocess

import pytest
import torch

from kernelgym.toolchain.units import TORCH_HEADERS

PAIRS = {
    "DLVersion": ("DLPackVersion", {"major": "major", "minor": "minor"}),
    "DLDev": ("DLDevice", {"type": "device_type", "index": "device_id"}),
    "DLType": ("DLDataType", {"code": "code", "bits": "bits", "lanes": "lanes"}),
    "DLView": (
        "DLTensor",
        {name: name for name in ("data", "device", "ndim", "dtype", "shape", "strides", "byte_offset")},
    ),
    "DLManaged": (
        "DLManagedTensorVersioned",
        {"version": "version", "manager": "manager_ctx", "deleter": "deleter", "flags": "flags",
         "tensor": "dl_tensor"},
    ),
    "DLExchange": (
        "DLPackExchangeAPI",
        {"version": "header", "allocate": "managed_tensor_allocator",
         "export_object": "managed_tensor_from_py_object_no_sync",
         "import_object": "managed_tensor_to_py_object_no_sync",
         "view_object": "dltensor_from_py_object_no_sync",
         "current_stream": "current_work_stream"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def header():
    path = pathlib.Path(torch.__file__).parent / "include" / "ATen" / "dlpack.h"
    if "DLPackExchangeAPI" not in path.read_text():
        pytest.skip(f"torch {torch.__version__} is from before the exchange API")
    return path


def test_torch_has_the_exchange_api(header):
    capsule = torch.Tensor.__dlpack_c_exchange_api__
    assert type(capsule).__name__ == "PyCapsule"


def test_the_layouts_are_torchs(header, tmp_path):
    lines = ["#include <cstddef>", f'#include "{header}"', '#include "kgtorch/dlpack.h"']
    for ours, (theirs, members) in PAIRS.items():
        lines.append(f"static_assert(sizeof(kgtorch::{ours}) == sizeof({theirs}));")
        lines += [
            f"static_assert(offsetof(kgtorch::{ours}, {mine}) == offsetof({theirs}, {other}));"
            for mine, other in members.items()
        ]
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join(lines) + "\n")
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{TORCH_HEADERS}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
