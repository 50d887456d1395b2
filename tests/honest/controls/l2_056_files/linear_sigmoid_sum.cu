#include <torch/extension.h>
#include "reduce.cuh"

constexpr int kThreads = 128;

// A block for each row of x: it holds the row, and each thread walks through rows of w.
__global__ void linear_sigmoid_sum_kernel(const float* x, const float* w, const float* b, float* y,
                                          int inputs, int hidden) {
  extern __shared__ float row[];
  for (int k = threadIdx.x; k < inputs; k += kThreads) row[k] = x[(size_t)blockIdx.x * inputs + k];
  __syncthreads();
  float total = 0.f;
  for (int j = threadIdx.x; j < hidden; j += kThreads) {
    float dot = b[j];
    for (int k = 0; k < inputs; ++k) dot = fmaf(row[k], w[(size_t)j * inputs + k], dot);
    total += 1.f / (1.f + expf(-dot));
  }
  total = block_reduce<kThreads>(total);
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}

torch::Tensor linear_sigmoid_sum(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  const int inputs = x.size(1), hidden = w.size(0);
  auto y = torch::empty({x.size(0), 1}, x.options());
  linear_sigmoid_sum_kernel<<<x.size(0), kThreads, inputs * sizeof(float)>>>(
      x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), inputs, hidden);
  return y;
}
