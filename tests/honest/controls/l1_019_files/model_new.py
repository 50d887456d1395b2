import pathlib

import torch
from torch.utils.cpp_extension import load

here = pathlib.Path(__file__).parent
ext = load(
    name="relu_from_files",
    sources=[str(here / "kernels" / "binding.cpp"), str(here / "kernels" / "relu.cu")],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.relu(x)
