import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

log_softmax = load_inline(
    name="log_softmax_cg",
    cpp_sources="torch::Tensor log_softmax(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void log_softmax_kernel(const float* x, float* y, int rows, int cols) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= rows) return;
    const float* in = x + row * cols;
    float top = -INFINITY;
    for (int c = warp.thread_rank(); c < cols; c += warp.size()) top = max(top, in[c]);
    top = cg::reduce(warp, top, cg::greater<float>());
    float sum = 0;
    for (int c = warp.thread_rank(); c < cols; c += warp.size()) sum += expf(in[c] - top);
    sum = cg::reduce(warp, sum, cg::plus<float>());
    float log_sum = logf(sum);
    for (int c = warp.thread_rank(); c < cols; c += warp.size()) y[row * cols + c] = in[c] - top - log_sum;
}

torch::Tensor log_softmax(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), cols = x.size(1);
    log_softmax_kernel<<<(rows + 7) / 8, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, cols);
    return y;
}
""",
    functions=["log_softmax"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int = 1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        assert self.dim == 1
        return log_softmax.log_softmax(x)
