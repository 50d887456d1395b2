import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="deep_mlp",
    cpp_sources="torch::Tensor mlp(torch::Tensor x, std::vector<torch::Tensor> weights, std::vector<torch::Tensor> biases);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <vector>

template <bool Relu>
__global__ void layer(const float* in, const float* w, const float* b, float* out, int N, int K) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int n = blockIdx.x * (blockDim.x / 32) + warp;
  if (n >= N) return;
  float acc = 0.f;
  for (int k = lane; k < K; k += 32) acc += in[blockIdx.y * K + k] * w[n * K + k];
  for (int d = 16; d > 0; d >>= 1) acc += __shfl_xor_sync(0xffffffff, acc, d);
  if (lane == 0) {
    acc += b[n];
    out[blockIdx.y * N + n] = Relu ? fmaxf(acc, 0.f) : acc;
  }
}

torch::Tensor mlp(torch::Tensor x, std::vector<torch::Tensor> weights, std::vector<torch::Tensor> biases) {
  TORCH_CHECK(weights.size() == biases.size());
  const int M = x.size(0);
  for (size_t l = 0; l < weights.size(); ++l) {
    const int N = weights[l].size(0), K = weights[l].size(1);
    auto y = torch::empty({M, N}, x.options());
    dim3 grid((N + 3) / 4, M);
    if (l + 1 < weights.size())
      layer<true><<<grid, 128>>>(x.data_ptr<float>(), weights[l].data_ptr<float>(), biases[l].data_ptr<float>(), y.data_ptr<float>(), N, K);
    else
      layer<false><<<grid, 128>>>(x.data_ptr<float>(), weights[l].data_ptr<float>(), biases[l].data_ptr<float>(), y.data_ptr<float>(), N, K);
    x = y;
  }
  return x;
}
""",
    functions=["mlp"],
)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_layer_sizes, output_size):
        super().__init__()
        sizes = [input_size, *hidden_layer_sizes, output_size]
        modules = []
        for a, b in zip(sizes[:-1], sizes[1:]):
            modules += [nn.Linear(a, b), nn.ReLU()]
        self.network = nn.Sequential(*modules[:-1])

    def forward(self, x):
        layers = [m for m in self.network if hasattr(m, "weight")]
        return ext.mlp(x, [m.weight for m in layers], [m.bias for m in layers])
