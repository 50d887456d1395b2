import cupy
import torch

kernel = cupy.RawKernel(
    r"""
extern "C" __global__ void sigmoid(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-x[i]));
}
""",
    "sigmoid",
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        with stream:
            kernel(((n + 255) // 256,), (256,), (cupy.from_dlpack(x), cupy.from_dlpack(y), n))
        return y
