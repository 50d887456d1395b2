import torch
from torch.utils.cpp_extension import load_inline

ce = load_inline(
    name="cross_entropy",
    cpp_sources="torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor targets);",
    cuda_sources="""
#include <torch/extension.h>
__global__ void row_losses(const float* logits, const int64_t* targets, float* losses, int rows, int classes) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* x = logits + (size_t)row * classes;
    float top = -1e38f;
    for (int c = lane; c < classes; c += 32) top = fmaxf(top, x[c]);
    for (int m = 16; m; m >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, m));
    float sum = 0.f;
    for (int c = lane; c < classes; c += 32) sum += expf(x[c] - top);
    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, m);
    if (lane == 0) losses[row] = top + logf(sum) - x[targets[row]];
}
__global__ void average(const float* losses, float* out, int rows) {
    if (threadIdx.x || blockIdx.x) return;
    double sum = 0;
    for (int r = 0; r < rows; ++r) sum += losses[r];
    *out = float(sum / rows);
}
torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor targets) {
    int rows = logits.size(0), classes = logits.size(1);
    auto losses = torch::empty({rows}, logits.options());
    auto out = torch::empty({1}, logits.options());
    row_losses<<<(rows + 3) / 4, 128>>>(logits.data_ptr<float>(), targets.data_ptr<int64_t>(), losses.data_ptr<float>(), rows, classes);
    average<<<1, 1>>>(losses.data_ptr<float>(), out.data_ptr<float>(), rows);
    return out.reshape(at::IntArrayRef{});
}
""",
    functions=["cross_entropy"],
)


class ModelNew(torch.nn.Module):
    def forward(self, predictions, targets):
        return ce.cross_entropy(predictions, targets)
