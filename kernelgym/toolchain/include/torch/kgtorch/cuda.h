// Streams, device guards, handles and checks of at::cuda and c10::cuda.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include <cuda_runtime_api.h>

#include "factories.h"

#define C10_CUDA_CHECK(EXPR)                                                              \
  do {                                                                                    \
    const cudaError_t kgtorch_error = (EXPR);                                             \
    if (C10_UNLIKELY(kgtorch_error != cudaSuccess)) {                                     \
      (void)cudaGetLastError();                                                           \
      ::c10::detail::fail<::c10::Error>("", "CUDA error: ",                               \
                                        cudaGetErrorString(kgtorch_error));               \
    }                                                                                     \
  } while (false)
#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
#define C10_CUDA_CHECK_WARN(EXPR)                                                         \
  do {                                                                                    \
    const cudaError_t kgtorch_error = (EXPR);                                             \
    if (kgtorch_error != cudaSuccess)                                                     \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(kgtorch_error));                    \
  } while (false)
#define C10_CUDA_IGNORE_ERROR(EXPR) static_cast<void>(EXPR)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
#define TORCH_CUDABLAS_CHECK(EXPR)                                                        \
  do {                                                                                    \
    const auto kgtorch_status = (EXPR);                                                   \
    TORCH_CHECK(static_cast<int>(kgtorch_status) == 0, "CUDA error: cuBLAS status ",      \
                static_cast<int>(kgtorch_status), " when calling `" #EXPR "`");           \
  } while (false)
#define AT_CUDNN_CHECK(EXPR)                                                              \
  do {                                                                                    \
    const auto kgtorch_status = (EXPR);                                                   \
    TORCH_CHECK(static_cast<int>(kgtorch_status) == 0, "cuDNN error: status ",            \
                static_cast<int>(kgtorch_status), " when calling `" #EXPR "`");           \
  } while (false)

#define CUDA_KERNEL_LOOP_TYPE(I, N, INDEX)                                                  \
  int64_t _i_n_d_e_x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;         \
  for (INDEX I = static_cast<INDEX>(_i_n_d_e_x); _i_n_d_e_x < (N);                          \
       _i_n_d_e_x += static_cast<int64_t>(blockDim.x) * gridDim.x,                          \
             I = static_cast<INDEX>(_i_n_d_e_x))
#define CUDA_KERNEL_LOOP(I, N) CUDA_KERNEL_LOOP_TYPE(I, N, int)

namespace c10::cuda {

inline DeviceIndex current_device() {
  int device = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  return static_cast<DeviceIndex>(device);
}
inline void set_device(DeviceIndex device) { C10_CUDA_CHECK(cudaSetDevice(device)); }
inline DeviceIndex device_count() {
  int count = 0;
  C10_CUDA_CHECK(cudaGetDeviceCount(&count));
  return static_cast<DeviceIndex>(count);
}
inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

// A stream of torch's; converts to cudaStream_t.
class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream, DeviceIndex device) : stream_(stream), device_(device) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  DeviceIndex device_index() const { return device_; }
  Device device() const { return {kCUDA, device_}; }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream_)); }
  bool operator==(const CUDAStream& other) const { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const { return stream_ != other.stream_; }

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
};

inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) {
  return {nullptr, device < 0 ? current_device() : device};
}

// The stream on which torch itself works now.
inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
#ifdef KGEMU
  return getDefaultCUDAStream(device);
#else
  if (device < 0) device = current_device();
  kgtorch::DLExchange* exchange = kgtorch::Torch::get().exchange;
  void* stream = nullptr;
  if (exchange) {
    if (exchange->current_stream(2, device, &stream) != 0) throw kgtorch::PythonError();
  } else {
    const kgtorch::Ref cuda = kgtorch::Torch::get().module.attr("cuda");
    const kgtorch::Ref current = kgtorch::call_method(cuda.get(), "current_stream", int{device});
    stream = PyLong_AsVoidPtr(current.attr("cuda_stream").get());
  }
  return {static_cast<cudaStream_t>(stream), device};
#endif
}
inline CUDAStream getStreamFromPool(bool = false, DeviceIndex device = -1) {
  cudaStream_t stream;
  C10_CUDA_CHECK(cudaStreamCreate(&stream));
  return {stream, device < 0 ? current_device() : device};
}

// Makes a device current until the end of the scope.
class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex device) { set_index(device); }
  explicit CUDAGuard(Device device) : CUDAGuard(device.index()) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() {
    if (changed_) (void)cudaSetDevice(original_);
  }
  void set_device(Device device) { set_index(device.index()); }
  void set_index(DeviceIndex device) {
    if (!changed_) original_ = current_device();
    if (device < 0 || device == current_device()) return;
    c10::cuda::set_device(device);
    changed_ = true;
  }
  Device current_device_object() const { return {kCUDA, current_device()}; }

 private:
  DeviceIndex original_ = 0;
  bool changed_ = false;
};

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(DeviceIndex device) { guard_.emplace(device); }
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  void set_device(Device device) { guard_.emplace(device); }
  void set_index(DeviceIndex device) { guard_.emplace(device); }

 private:
  std::optional<CUDAGuard> guard_;
};

inline cudaDeviceProp* getDeviceProperties(DeviceIndex device) {
  static cudaDeviceProp properties[16];
  static bool known[16];
  TORCH_CHECK(device >= 0 && device < 16, "Expected a device index below 16, got ", int{device});
  if (!known[device]) {
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties[device], device));
    known[device] = true;
  }
  return &properties[device];
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(current_device()); }
inline int warp_size() { return 32; }
inline bool is_available() { return device_count() > 0; }

// Scratch memory, as a tensor of bytes.
namespace CUDACachingAllocator {
class DataPtr {
 public:
  explicit DataPtr(at::Tensor bytes) : bytes_(static_cast<at::Tensor&&>(bytes)) {}
  void* get() const { return bytes_.data_ptr(); }

 private:
  at::Tensor bytes_;
};
struct CUDAAllocator {
  DataPtr allocate(size_t bytes) const {
    return DataPtr(at::empty(static_cast<int64_t>(bytes), TensorOptions(kByte).device(kCUDA)));
  }
};
inline CUDAAllocator* get() {
  static CUDAAllocator allocator;
  return &allocator;
}
}  // namespace CUDACachingAllocator

}  // namespace c10::cuda

namespace c10 {
using DeviceGuard = cuda::CUDAGuard;
using OptionalDeviceGuard = cuda::OptionalCUDAGuard;
}  // namespace c10

namespace at {
inline std::optional<Device> device_of(const Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.device();
}
template <class T>
C10_HOST_DEVICE constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
namespace cuda {
template <class T>
C10_HOST_DEVICE constexpr T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
}  // namespace cuda
}  // namespace at

namespace torch::cuda {
inline size_t device_count() { return static_cast<size_t>(c10::cuda::device_count()); }
inline bool is_available() { return c10::cuda::is_available(); }
inline void synchronize(int64_t = -1) { c10::cuda::device_synchronize(); }
}  // namespace torch::cuda
