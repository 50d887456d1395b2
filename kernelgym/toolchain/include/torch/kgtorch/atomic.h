// gpuAtomicAdd and its kin, for the types that CUDA itself knows.
#pragma once
#include "half.h"

#define KGTORCH_ATOMIC(NAME, CUDA_NAME)                        \
  template <class T>                                           \
  __device__ inline T NAME(T* address, T value) {              \
    return CUDA_NAME(address, value);                          \
  }
KGTORCH_ATOMIC(gpuAtomicAdd, atomicAdd)
KGTORCH_ATOMIC(gpuAtomicMax, atomicMax)
KGTORCH_ATOMIC(gpuAtomicMin, atomicMin)
#undef KGTORCH_ATOMIC

template <class T>
__device__ inline void gpuAtomicAddNoReturn(T* address, T value) {
  atomicAdd(address, value);
}
