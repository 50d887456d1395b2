#pragma once
typedef struct cublasContext* cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0 };
inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  static int object;
  *handle = reinterpret_cast<cublasHandle_t>(&object);
  return CUBLAS_STATUS_SUCCESS;
}
