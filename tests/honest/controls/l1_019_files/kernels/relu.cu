#include <cuda_runtime.h>
#include "relu.h"

// Grid-stride: the grid is sized for the card, not for the tensor.
__global__ void relu_grid_stride(const float* in, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = fmaxf(in[i], 0.0f);
}

void launch_relu(const float* in, float* out, int n, cudaStream_t stream) {
  relu_grid_stride<<<16, 128, 0, stream>>>(in, out, n);
}
