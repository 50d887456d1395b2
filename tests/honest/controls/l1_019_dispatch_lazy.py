"""Builds on first use, so that importing this file is cheap."""

import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=None)
def _extension():
    from torch.utils.cpp_extension import load_inline

    return load_inline(
        name="relu_dispatch",
        cpp_sources="at::Tensor relu_forward(at::Tensor input);",
        cuda_sources=r"""
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

template <typename scalar_t>
__global__ void relu_fwd(const scalar_t* x, scalar_t* y, size_t count) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const scalar_t v = x[i];
  y[i] = v > scalar_t(0) ? v : scalar_t(0);
}

at::Tensor relu_forward(at::Tensor input) {
  auto x = input.contiguous();
  auto y = at::empty_like(x);
  const size_t count = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "relu_fwd", [&] {
    relu_fwd<scalar_t><<<(count + 511) / 512, 512, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), count);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
""",
        functions=["relu_forward"],
    )


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._impl = _extension()

    def forward(self, x):
        return self._impl.relu_forward(x)
