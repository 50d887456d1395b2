// torch's own cuBLAS handle, set to torch's current stream.
#pragma once
#include <cublas_v2.h>

#include "cuda.h"

namespace at::cuda {

inline cublasHandle_t getCurrentCUDABlasHandle() {
#ifdef KGEMU
  static cublasHandle_t handle = nullptr;
  if (!handle) TORCH_CUDABLAS_CHECK(cublasCreate(&handle));
  return handle;
#else
  const kgtorch::Ref cuda = kgtorch::Torch::get().module.attr("cuda");
  const kgtorch::Ref handle = kgtorch::call_method(cuda.get(), "current_blas_handle");
  return static_cast<cublasHandle_t>(PyLong_AsVoidPtr(handle.get()));
#endif
}

}  // namespace at::cuda
