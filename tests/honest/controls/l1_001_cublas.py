import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

// Row-major C = A B is column-major C^T = B^T A^T: hand the operands over in the other order.
torch::Tensor sgemm(torch::Tensor a, torch::Tensor b) {
    const int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    const float one = 1.0f, zero = 0.0f;
    cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
    cublasStatus_t status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one,
        b.data_ptr<float>(), n, a.data_ptr<float>(), k, &zero, c.data_ptr<float>(), n);
    TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed with ", (int)status);
    return c;
}
"""
blas = load_inline(
    name="blas_gemm",
    cpp_sources="torch::Tensor sgemm(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["sgemm"],
    extra_ldflags=["-lcublas"],
)


class ModelNew(nn.Module):
    def forward(self, A, B):
        return blas.sgemm(A, B)
