// cuBLAS: handles, and the products of matrices and vectors in the types of float, double, half and
// bfloat16. Column-major, as there. The work is done by libkgemu.so when the call is made.
#pragma once

#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "library_types.h"

typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;

typedef struct cublasContext {
  cudaStream_t stream;
  cublasMath_t math;
  cublasPointerMode_t pointers;
} * cublasHandle_t;

extern "C" {
// C[i] = alpha op(A[i]) op(B[i]) + beta C[i] for each member of a batch: at a stride, or through
// arrays of pointers where those are given. `compute` is a cublasComputeType_t.
typedef struct kgemu_gemm {
  const char* name;
  int transpose_a, transpose_b, m, n, k;
  const void *alpha, *beta;
  cudaDataType_t scale_type;
  const void *a, *b;
  void* c;
  cudaDataType_t a_type, b_type, c_type;
  long long lda, ldb, ldc, stride_a, stride_b, stride_c;
  const void* const *a_array, *const *b_array;
  void* const* c_array;
  int batch;
  int compute;
} kgemu_gemm;
// Returns a cublasStatus_t.
int kgemu_cublas_gemm(const kgemu_gemm* product);
// y = alpha x + y, or y = alpha y where x is null, on vectors of float or double.
int kgemu_cublas_axpy(const char* name, int n, const void* alpha, const void* x, int incx, void* y,
                      int incy, int is_double);
}

// --- handles ------------------------------------------------------------------------------------------

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = static_cast<cublasHandle_t>(calloc(1, sizeof(cublasContext)));
  return *handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t math) {
  handle->math = math;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* math) {
  *math = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  *mode = handle->pointers;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 120800;
  return CUBLAS_STATUS_SUCCESS;
}
inline const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
inline const char* cublasGetStatusString(cublasStatus_t status) {
  return cublasGetStatusName(status);
}

// --- products of matrices -----------------------------------------------------------------------------

namespace kgemu {
inline cublasStatus_t gemm(cublasHandle_t handle, kgemu_gemm product) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (product.compute == CUBLAS_COMPUTE_32F && handle->math == CUBLAS_TF32_TENSOR_OP_MATH)
    product.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  return static_cast<cublasStatus_t>(kgemu_cublas_gemm(&product));
}
}  // namespace kgemu

#define KGEMU_GEMM(name, T, type, compute_type)                                                    \
  inline cublasStatus_t name(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,    \
                             int m, int n, int k, const T* alpha, const T* a, int lda, const T* b, \
                             int ldb, const T* beta, T* c, int ldc) {                              \
    return kgemu::gemm(handle, {#name, ta, tb, m, n, k, alpha, beta, type, a, b, c, type, type,    \
                                type, lda, ldb, ldc, 0, 0, 0, nullptr, nullptr, nullptr, 1,        \
                                compute_type});                                                    \
  }                                                                                                \
  inline cublasStatus_t name##StridedBatched(                                                      \
      cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,      \
      const T* alpha, const T* a, int lda, long long stride_a, const T* b, int ldb,                \
      long long stride_b, const T* beta, T* c, int ldc, long long stride_c, int batch) {           \
    return kgemu::gemm(handle, {#name "StridedBatched", ta, tb, m, n, k, alpha, beta, type, a, b,  \
                                c, type, type, type, lda, ldb, ldc, stride_a, stride_b, stride_c,  \
                                nullptr, nullptr, nullptr, batch, compute_type});                  \
  }                                                                                                \
  inline cublasStatus_t name##Batched(cublasHandle_t handle, cublasOperation_t ta,                 \
                                      cublasOperation_t tb, int m, int n, int k, const T* alpha,   \
                                      const T* const a[], int lda, const T* const b[], int ldb,    \
                                      const T* beta, T* const c[], int ldc, int batch) {           \
    return kgemu::gemm(handle, {#name "Batched", ta, tb, m, n, k, alpha, beta, type, nullptr,      \
                                nullptr, nullptr, type, type, type, lda, ldb, ldc, 0, 0, 0,        \
                                reinterpret_cast<const void* const*>(a),                           \
                                reinterpret_cast<const void* const*>(b),                           \
                                reinterpret_cast<void* const*>(c), batch, compute_type});          \
  }
KGEMU_GEMM(cublasSgemm, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
KGEMU_GEMM(cublasDgemm, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
KGEMU_GEMM(cublasHgemm, __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)
#undef KGEMU_GEMM

namespace kgemu {
inline cudaDataType_t scale_type(cublasComputeType_t compute) {
  if (compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC) return CUDA_R_16F;
  if (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC) return CUDA_R_64F;
  return CUDA_R_32F;
}
}  // namespace kgemu

inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType_t a_type, int lda, long long stride_a,
    const void* b, cudaDataType_t b_type, int ldb, long long stride_b, const void* beta, void* c,
    cudaDataType_t c_type, int ldc, long long stride_c, int batch, cublasComputeType_t compute,
    cublasGemmAlgo_t = CUBLAS_GEMM_DEFAULT) {
  return kgemu::gemm(handle, {"cublasGemmStridedBatchedEx", ta, tb, m, n, k, alpha, beta,
                              kgemu::scale_type(compute), a, b, c, a_type, b_type, c_type, lda, ldb,
                              ldc, stride_a, stride_b, stride_c, nullptr, nullptr, nullptr, batch,
                              compute});
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta,
                                   cublasOperation_t tb, int m, int n, int k, const void* alpha,
                                   const void* a, cudaDataType_t a_type, int lda, const void* b,
                                   cudaDataType_t b_type, int ldb, const void* beta, void* c,
                                   cudaDataType_t c_type, int ldc, cublasComputeType_t compute,
                                   cublasGemmAlgo_t = CUBLAS_GEMM_DEFAULT) {
  return kgemu::gemm(handle, {"cublasGemmEx", ta, tb, m, n, k, alpha, beta,
                              kgemu::scale_type(compute), a, b, c, a_type, b_type, c_type, lda, ldb,
                              ldc, 0, 0, 0, nullptr, nullptr, nullptr, 1, compute});
}
// The older form names the type of the computation like an element type.
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta,
                                   cublasOperation_t tb, int m, int n, int k, const void* alpha,
                                   const void* a, cudaDataType_t a_type, int lda, const void* b,
                                   cudaDataType_t b_type, int ldb, const void* beta, void* c,
                                   cudaDataType_t c_type, int ldc, cudaDataType_t compute,
                                   cublasGemmAlgo_t = CUBLAS_GEMM_DEFAULT) {
  return cublasGemmEx(handle, ta, tb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                      c_type, ldc,
                      compute == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
                      : compute == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                              : CUBLAS_COMPUTE_32F);
}

// --- vectors ------------------------------------------------------------------------------------------

#define KGEMU_VECTOR_FUNCTIONS(letter, T, type, compute_type, is_double)                           \
  /* A vector with a stride is a matrix of one row. */                                             \
  inline cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t trans, int m, \
                                             int n, const T* alpha, const T* a, int lda,           \
                                             const T* x, int incx, const T* beta, T* y,            \
                                             int incy) {                                           \
    if (incx < 1 || incy < 1) return CUBLAS_STATUS_NOT_SUPPORTED;                                  \
    const bool plain = trans == CUBLAS_OP_N;                                                       \
    return kgemu::gemm(handle, {"cublas" #letter "gemv", CUBLAS_OP_N,                              \
                                plain ? CUBLAS_OP_T : CUBLAS_OP_N, 1, plain ? m : n,               \
                                plain ? n : m, alpha, beta, type, x, a, y, type, type, type, incx, \
                                lda, incy, 0, 0, 0, nullptr, nullptr, nullptr, 1, compute_type});  \
  }                                                                                                \
  inline cublasStatus_t cublas##letter##axpy(cublasHandle_t handle, int n, const T* alpha,         \
                                             const T* x, int incx, T* y, int incy) {               \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;                                   \
    return static_cast<cublasStatus_t>(kgemu_cublas_axpy("cublas" #letter "axpy", n, alpha, x,     \
                                                         incx, y, incy, is_double));               \
  }                                                                                                \
  inline cublasStatus_t cublas##letter##scal(cublasHandle_t handle, int n, const T* alpha, T* x,   \
                                             int incx) {                                           \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;                                   \
    return static_cast<cublasStatus_t>(                                                            \
        kgemu_cublas_axpy("cublas" #letter "scal", n, alpha, nullptr, 1, x, incx, is_double));     \
  }
KGEMU_VECTOR_FUNCTIONS(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0)
KGEMU_VECTOR_FUNCTIONS(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F, 1)
#undef KGEMU_VECTOR_FUNCTIONS
