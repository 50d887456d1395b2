import torch
from torch.utils.cpp_extension import load_inline

bmm = load_inline(
    name="bmm_blas",
    cpp_sources="torch::Tensor bmm(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>
torch::Tensor bmm(torch::Tensor a, torch::Tensor b) {
    int batches = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
    auto c = torch::empty({batches, m, n}, a.options());
    float alpha = 1, beta = 0;
    cublasSgemmStridedBatched(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N,
        n, m, k, &alpha, b.data_ptr<float>(), n, (long long)k * n,
        a.data_ptr<float>(), k, (long long)m * k, &beta, c.data_ptr<float>(), n, (long long)m * n, batches);
    return c;
}
""",
    functions=["bmm"],
)


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return bmm.bmm(A, B)
