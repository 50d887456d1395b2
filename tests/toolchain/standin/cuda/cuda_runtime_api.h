// A CUDA runtime of a few lines, in which a launch is a loop: the stand-in's tests want no more.
#pragma once
#include <stddef.h>

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
typedef struct CUstream_st* cudaStream_t;
struct cudaDeviceProp {
  int multiProcessorCount;
  int maxThreadsPerBlock;
};
inline cudaError_t cuda_last_error = cudaSuccess;
inline cudaError_t cudaGetLastError() {
  const cudaError_t error = cuda_last_error;
  cuda_last_error = cudaSuccess;
  return error;
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "invalid argument";
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {132, 1024};
  return cudaSuccess;
}
template <class T>
T atomicAdd(T* address, T value) {
  const T old = *address;
  *address = old + value;
  return old;
}

// What the tests write for kernel<<<grid, block, ...>>>(args...); the kernel comes wrapped in a lambda.
template <class Kernel, class... A>
void launch(dim3 grid, dim3 block, Kernel kernel, A... args) {
  if (block.x * block.y * block.z > 1024) {
    cuda_last_error = cudaErrorInvalidValue;
    return;
  }
  gridDim = grid;
  blockDim = block;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
        for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
          for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) kernel(args...);
}
