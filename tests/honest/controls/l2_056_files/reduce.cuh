#pragma once
// The sum of a value over the block, in thread 0.
template <int Threads>
__device__ float block_reduce(float value) {
  __shared__ float slots[Threads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < Threads / 32; ++w) value += slots[w];
  return value;
}
