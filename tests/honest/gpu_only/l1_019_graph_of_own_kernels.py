import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="graphed",
    cpp_sources="void relu_out(torch::Tensor x, torch::Tensor y);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.f);
}
void relu_out(torch::Tensor x, torch::Tensor y) {
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
""",
    functions=["relu_out"],
)


class ModelNew(torch.nn.Module):
    """Captures a graph for a shape once; every call copies its input in and its output out."""

    def __init__(self):
        super().__init__()
        self._graphs = {}

    def _captured(self, shape, x):
        if shape not in self._graphs:
            given, result = torch.empty_like(x), torch.empty_like(x)
            ext.relu_out(given, result)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                ext.relu_out(given, result)
            self._graphs[shape] = graph, given, result
        return self._graphs[shape]

    def forward(self, x):
        graph, given, result = self._captured(tuple(x.shape), x)
        given.copy_(x)
        graph.replay()
        return result.clone()
