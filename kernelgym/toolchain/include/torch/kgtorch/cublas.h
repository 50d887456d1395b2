// torch's own cuBLAS handle, set to torch's current stream.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "cuda.h"
#if defined(KGEMU) && __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#else
// As cublas_v2.h has it, which is large.
typedef struct cublasContext* cublasHandle_t;
#endif

namespace at::cuda {

inline cublasHandle_t getCurrentCUDABlasHandle() {
#if defined(KGEMU) && __has_include(<cublas_v2.h>)
  static cublasHandle_t handle = nullptr;
  if (!handle) TORCH_CUDABLAS_CHECK(cublasCreate(&handle));
  return handle;
#elif defined(KGEMU)
  throw c10::NotImplementedError("cuBLAS is not there on the emulator");
#else
  const kgtorch::Ref cuda = kgtorch::Torch::get().module.attr("cuda");
  const kgtorch::Ref handle = kgtorch::call_method(cuda.get(), "current_blas_handle");
  return static_cast<cublasHandle_t>(PyLong_AsVoidPtr(handle.get()));
#endif
}

}  // namespace at::cuda
