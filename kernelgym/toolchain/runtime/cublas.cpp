// cuBLAS for the emulated device: plain loops, whose operands are checked as a kernel's accesses are,
// and whose work is recorded as a library's.
#include "../include/cuda/cublas_v2.h"

#include <algorithm>
#include <vector>

#include "internal.h"

namespace kgemu {
namespace {

size_t element_size(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_32F: return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    default: return 0;
  }
}

double load(const void* base, cudaDataType_t type, long long index) {
  switch (type) {
    case CUDA_R_64F: return static_cast<const double*>(base)[index];
    case CUDA_R_32F: return static_cast<const float*>(base)[index];
    case CUDA_R_16F: return Binary16::widen(static_cast<const unsigned short*>(base)[index]);
    default: return Brain16::widen(static_cast<const unsigned short*>(base)[index]);
  }
}

void store(void* base, cudaDataType_t type, long long index, double value) {
  switch (type) {
    case CUDA_R_64F: static_cast<double*>(base)[index] = value; break;
    case CUDA_R_32F: static_cast<float*>(base)[index] = static_cast<float>(value); break;
    case CUDA_R_16F:
      static_cast<unsigned short*>(base)[index] = Binary16::nearest(to_odd(value));
      break;
    default: static_cast<unsigned short*>(base)[index] = Brain16::nearest(to_odd(value)); break;
  }
}

// A matrix (or vector, of one row) in device memory.
struct Matrix {
  const void* data;
  cudaDataType_t type;
  long long rows, columns, leading;
  const char* role;

  uintptr_t column(long long j) const {
    return reinterpret_cast<uintptr_t>(data) + static_cast<size_t>(j * leading) * element_size(type);
  }
  size_t column_bytes() const { return static_cast<size_t>(rows) * element_size(type); }
};

// Whether the device owns the whole matrix, and, where it is read, has written it.
bool accessible(const char* name, const Matrix& matrix, bool read) {
  for (long long j = 0; j < matrix.columns && matrix.rows > 0; ++j) {
    const uintptr_t address = matrix.column(j);
    const Region* region = find_region(address, matrix.column_bytes());
    const std::string what = std::string(name) + ": column " + std::to_string(j) + " of " +
                             matrix.role + " (" + std::to_string(matrix.rows) + " x " +
                             std::to_string(matrix.columns) + ", leading dimension " +
                             std::to_string(matrix.leading) + ")";
    if (region == nullptr) {
      add_finding("memory.out_of_bounds", what + " reaches outside of device memory: it starts " +
                                              describe_address(address), 0);
      set_error(kIllegalAddress);
      return false;
    }
    if (read && !region->initialised && !region->is_written(address, matrix.column_bytes())) {
      add_finding("memory.uninitialised", what + " was never written", 0);
      return true;
    }
  }
  return true;
}

void record(const char* name, uint64_t flops, uint64_t read, uint64_t written) {
  LaunchRecord call;
  call.kernel = name;
  call.grid = call.block = dim3(1, 1, 1);
  call.library = call.checked = call.completed = true;
  call.library_flops = flops;
  call.counts.dram_read_bytes = read;
  call.counts.dram_write_bytes = written;
  launch_records.push_back(call);
}

// TF32 keeps 10 bits of a float's fraction.
float to_tf32(float value) { return bits_as<float>((bits_as<unsigned>(value) + 0x1000u) & ~0x1fffu); }

// op(X) as a dense column-major matrix of `rows` x `columns`.
template <class T>
std::vector<T> packed(const Matrix& matrix, bool transposed, long long rows, long long columns,
                      int compute) {
  std::vector<T> result(static_cast<size_t>(rows * columns));
  for (long long j = 0; j < columns; ++j) {
    for (long long i = 0; i < rows; ++i) {
      const long long index = transposed ? i * matrix.leading + j : j * matrix.leading + i;
      T value = static_cast<T>(load(matrix.data, matrix.type, index));
      if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) value = to_tf32(static_cast<float>(value));
      result[static_cast<size_t>(j * rows + i)] = value;
    }
  }
  return result;
}

template <class T>
void multiply_matrices(const kgemu_gemm& p, const Matrix& a, const Matrix& b, const Matrix& c) {
  const std::vector<T> left = packed<T>(a, p.transpose_a != CUBLAS_OP_N, p.m, p.k, p.compute);
  const std::vector<T> right = packed<T>(b, p.transpose_b != CUBLAS_OP_N, p.k, p.n, p.compute);
  const double alpha = load(p.alpha, p.scale_type, 0);
  const double beta = load(p.beta, p.scale_type, 0);
  std::vector<T> column(static_cast<size_t>(p.m));
  for (long long j = 0; j < p.n; ++j) {
    std::fill(column.begin(), column.end(), T(0));
    for (long long step = 0; step < p.k; ++step) {
      const T factor = right[static_cast<size_t>(j * p.k + step)];
      const T* source = &left[static_cast<size_t>(step * p.m)];
      for (size_t i = 0; i < column.size(); ++i) column[i] += source[i] * factor;
    }
    void* target = reinterpret_cast<void*>(c.column(j));
    for (long long i = 0; i < p.m; ++i) {
      // With beta = 0 the old values are not read: they may be NaN.
      const double old = beta == 0.0 ? 0.0 : beta * load(target, c.type, i);
      store(target, c.type, i, alpha * static_cast<double>(column[static_cast<size_t>(i)]) + old);
    }
    kgemu_mark_initialised(target, c.column_bytes());
  }
}

}  // namespace
}  // namespace kgemu

using namespace kgemu;

int kgemu_cublas_gemm(const kgemu_gemm* product) {
  if (kernels_do_nothing()) return CUBLAS_STATUS_SUCCESS;
  DeviceWork work;
  const kgemu_gemm& p = *product;
  const bool ta = p.transpose_a != CUBLAS_OP_N, tb = p.transpose_b != CUBLAS_OP_N;
  if (element_size(p.a_type) == 0 || element_size(p.b_type) == 0 || element_size(p.c_type) == 0) {
    kgemu_unsupported("integer products in cuBLAS");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const long long rows_a = ta ? p.k : p.m, rows_b = tb ? p.n : p.k;
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0 || p.lda < std::max(1ll, rows_a) ||
      p.ldb < std::max(1ll, rows_b) || p.ldc < std::max(1, p.m) || !p.alpha || !p.beta) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (p.m == 0 || p.n == 0 || p.batch == 0) return CUBLAS_STATUS_SUCCESS;
  const bool keeps = load(p.beta, p.scale_type, 0) != 0.0;
  for (int i = 0; i < p.batch; ++i) {
    auto member = [i](const void* base, const void* const* array, long long stride, size_t size) {
      return array ? array[i] : static_cast<const char*>(base) + i * stride * static_cast<long long>(size);
    };
    const Matrix a{member(p.a, p.a_array, p.stride_a, element_size(p.a_type)), p.a_type, rows_a,
                   ta ? p.m : p.k, p.lda, "A"};
    const Matrix b{member(p.b, p.b_array, p.stride_b, element_size(p.b_type)), p.b_type, rows_b,
                   tb ? p.k : p.n, p.ldb, "B"};
    const Matrix c{member(p.c, p.c_array, p.stride_c, element_size(p.c_type)), p.c_type, p.m, p.n,
                   p.ldc, "C"};
    if (!accessible(p.name, a, true) || !accessible(p.name, b, true) ||
        !accessible(p.name, c, keeps)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (p.compute == CUBLAS_COMPUTE_64F || p.compute == CUBLAS_COMPUTE_64F_PEDANTIC) {
      multiply_matrices<double>(p, a, b, c);
    } else {
      multiply_matrices<float>(p, a, b, c);
    }
  }
  const uint64_t m = static_cast<uint64_t>(p.m), n = static_cast<uint64_t>(p.n);
  const uint64_t k = static_cast<uint64_t>(p.k), batch = static_cast<uint64_t>(p.batch);
  // An operand of stride 0 is shared by the batch.
  const uint64_t a_count = p.a_array || p.stride_a ? batch : 1;
  const uint64_t b_count = p.b_array || p.stride_b ? batch : 1;
  const uint64_t output = batch * m * n * element_size(p.c_type);
  record(p.name, 2 * m * n * k * batch,
         a_count * m * k * element_size(p.a_type) + b_count * k * n * element_size(p.b_type) +
             (keeps ? output : 0),
         output);
  return CUBLAS_STATUS_SUCCESS;
}

int kgemu_cublas_axpy(const char* name, int n, const void* alpha, const void* x, int incx, void* y,
                      int incy, int is_double) {
  if (kernels_do_nothing()) return CUBLAS_STATUS_SUCCESS;
  DeviceWork work;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (incx < 1 || incy < 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cudaDataType_t type = is_double ? CUDA_R_64F : CUDA_R_32F;
  const Matrix vector_x{x, type, 1, x ? n : 0, incx, "x"}, vector_y{y, type, 1, n, incy, "y"};
  if (!accessible(name, vector_x, true) || !accessible(name, vector_y, true)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const double factor = load(alpha, type, 0);
  for (long long i = 0; i < n; ++i) {
    const double old = load(y, type, i * incy);
    store(y, type, i * incy, x ? factor * load(x, type, i * incx) + old : factor * old);
  }
  const uint64_t bytes = static_cast<uint64_t>(n) * element_size(type);
  record(name, static_cast<uint64_t>(n) * (x ? 2 : 1), x ? 2 * bytes : bytes, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
