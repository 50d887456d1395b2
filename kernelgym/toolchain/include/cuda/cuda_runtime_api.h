// Functions of the CUDA runtime. Everything is synchronous; the device is libkgemu.so.
#pragma once

#include <stdlib.h>
#include <time.h>

#include "driver_types.h"

namespace kgemu {

inline cudaError_t result(int error) {
  if (error != 0) kgemu_set_error(error);
  return static_cast<cudaError_t>(error);
}

// What the emulated device says of itself: an H100's limits, which launches are held to as well.
struct Device {
  static constexpr int multiprocessors = 132;
  static constexpr int threads_per_multiprocessor = 2048;
  static constexpr int blocks_per_multiprocessor = 32;
  static constexpr int registers = 65536;
  static constexpr int clock_khz = 1980000;
  static constexpr int memory_clock_khz = 2619000;
  static constexpr int memory_bus_bits = 5120;
  static constexpr int l2_bytes = 50 << 20;
  static constexpr size_t memory_bytes = 80ull << 30;
  static constexpr int shared_per_block = 48 << 10;
  static constexpr int shared_per_block_optin = 227 << 10;
  static constexpr int shared_per_multiprocessor = 228 << 10;
  static constexpr int shared_reserved = 1 << 10;
};

// Blocks of that size which one multiprocessor holds, as far as threads and shared memory decide.
inline int resident_blocks(int block_size, size_t shared) {
  const int warps = (block_size + 31) / 32;
  if (warps == 0 || block_size > 1024) return 0;
  int blocks = Device::threads_per_multiprocessor / (32 * warps);
  const int by_shared = static_cast<int>(Device::shared_per_multiprocessor /
                                         (shared + Device::shared_reserved));
  if (by_shared < blocks) blocks = by_shared;
  return blocks < Device::blocks_per_multiprocessor ? blocks : Device::blocks_per_multiprocessor;
}

inline double host_seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class F>
inline const void* address_of(F* function) {
  return reinterpret_cast<const void*>(function);
}

// Calls a kernel with the arguments that `arguments` points to.
template <class... P, size_t... I>
inline void launch_pointers(Launch& launch, void (*kernel)(P...), void** arguments,
                            std::index_sequence<I...>) {
  launch([kernel](auto... a) { kernel(a...); }, *static_cast<std::decay_t<P>*>(arguments[I])...);
}

}  // namespace kgemu

// --- errors -------------------------------------------------------------------------------------------

inline cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(kgemu_get_error(1)); }
inline cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(kgemu_get_error(0)); }

#define KGEMU_ERRORS(X)                                                                 \
  X(cudaSuccess, "no error")                                                            \
  X(cudaErrorInvalidValue, "invalid argument")                                          \
  X(cudaErrorMemoryAllocation, "out of memory")                                         \
  X(cudaErrorInitializationError, "initialization error")                               \
  X(cudaErrorInvalidConfiguration, "invalid configuration argument")                    \
  X(cudaErrorInvalidPitchValue, "invalid pitch argument")                               \
  X(cudaErrorInvalidSymbol, "invalid device symbol")                                    \
  X(cudaErrorInvalidDevicePointer, "invalid device pointer")                            \
  X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")               \
  X(cudaErrorInvalidDeviceFunction, "invalid device function")                          \
  X(cudaErrorNoDevice, "no CUDA-capable device is detected")                            \
  X(cudaErrorInvalidDevice, "invalid device ordinal")                                   \
  X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
  X(cudaErrorInvalidResourceHandle, "invalid resource handle")                          \
  X(cudaErrorNotReady, "device not ready")                                              \
  X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                \
  X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")           \
  X(cudaErrorLaunchTimeout, "the launch timed out and was terminated")                  \
  X(cudaErrorAssert, "device-side assert triggered")                                    \
  X(cudaErrorHardwareStackError, "hardware stack error")                                \
  X(cudaErrorIllegalInstruction, "an illegal instruction was encountered")              \
  X(cudaErrorMisalignedAddress, "misaligned address")                                   \
  X(cudaErrorLaunchFailure, "unspecified launch failure")                               \
  X(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch")        \
  X(cudaErrorNotSupported, "operation not supported")
inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define KGEMU_TEXT(name, text) \
  case name:                   \
    return text;
    KGEMU_ERRORS(KGEMU_TEXT)
#undef KGEMU_TEXT
    default:
      return "unknown error";
  }
}
inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define KGEMU_TEXT(name, text) \
  case name:                   \
    return #name;
    KGEMU_ERRORS(KGEMU_TEXT)
#undef KGEMU_TEXT
    default:
      return "cudaErrorUnknown";
  }
}
#undef KGEMU_ERRORS

// --- device -------------------------------------------------------------------------------------------

inline cudaError_t cudaDeviceSynchronize() { return cudaPeekAtLastError(); }
inline cudaError_t cudaThreadSynchronize() { return cudaPeekAtLastError(); }
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  return kgemu::result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  using D = kgemu::Device;
  if (device != 0) return kgemu::result(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = D::shared_per_block; break;
    case cudaDevAttrTotalConstantMemory: *value = 64 << 10; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = D::registers; break;
    case cudaDevAttrClockRate: *value = D::clock_khz; break;
    case cudaDevAttrMultiProcessorCount: *value = D::multiprocessors; break;
    case cudaDevAttrMemoryClockRate: *value = D::memory_clock_khz; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = D::memory_bus_bits; break;
    case cudaDevAttrL2CacheSize: *value = D::l2_bytes; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = D::threads_per_multiprocessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = D::shared_per_multiprocessor; break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = D::shared_per_block_optin; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = D::blocks_per_multiprocessor; break;
    default: return kgemu::result(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  using D = kgemu::Device;
  if (device != 0) return kgemu::result(cudaErrorInvalidDevice);
  cudaDeviceProp p = {};
  __builtin_strcpy(p.name, "kernelgym emulator (sm_90)");
  p.totalGlobalMem = D::memory_bytes;
  p.sharedMemPerBlock = D::shared_per_block;
  p.regsPerBlock = p.regsPerMultiprocessor = D::registers;
  p.warpSize = 32;
  p.memPitch = 2147483647;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = D::clock_khz;
  p.totalConstMem = 64 << 10;
  p.major = 9;
  p.multiProcessorCount = D::multiprocessors;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.ECCEnabled = p.managedMemory = p.cooperativeLaunch = 1;
  p.asyncEngineCount = 3;
  p.memoryClockRate = D::memory_clock_khz;
  p.memoryBusWidth = D::memory_bus_bits;
  p.l2CacheSize = D::l2_bytes;
  p.persistingL2CacheMaxSize = D::l2_bytes * 5 / 8;
  p.maxThreadsPerMultiProcessor = D::threads_per_multiprocessor;
  p.sharedMemPerMultiprocessor = D::shared_per_multiprocessor;
  p.sharedMemPerBlockOptin = D::shared_per_block_optin;
  p.maxBlocksPerMultiProcessor = D::blocks_per_multiprocessor;
  p.reservedSharedMemPerBlock = D::shared_reserved;
  *properties = p;
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kgemu::Device::memory_bytes;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }

// --- memory -------------------------------------------------------------------------------------------

template <class T>
inline cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  *pointer = static_cast<T*>(bytes == 0 ? nullptr : kgemu_alloc(bytes, 0, "cudaMalloc"));
  return kgemu::result(*pointer != nullptr || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal) {
  *pointer = static_cast<T*>(bytes == 0 ? nullptr : kgemu_alloc(bytes, 0, "cudaMallocManaged"));
  return kgemu::result(*pointer != nullptr || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation);
}
template <class T>
inline cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}
inline cudaError_t cudaFree(void* pointer) {
  if (pointer != nullptr) kgemu_free(pointer);
  return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
template <class T>
inline cudaError_t cudaMallocHost(T** pointer, size_t bytes) {
  *pointer = static_cast<T*>(malloc(bytes));
  return kgemu::result(*pointer != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}
inline cudaError_t cudaFreeHost(void* pointer) {
  free(pointer);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    to_device = kgemu_is_device_pointer(target) != 0;
    from_device = kgemu_is_device_pointer(source) != 0;
  }
  return static_cast<cudaError_t>(kgemu_host_copy(target, to_device, source, from_device, bytes));
}
inline cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy(target, source, bytes, kind);
}
inline cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source,
                                size_t source_pitch, size_t width, size_t height,
                                cudaMemcpyKind kind) {
  cudaError_t error = cudaSuccess;
  for (size_t row = 0; row < height && error == cudaSuccess; ++row)
    error = cudaMemcpy(static_cast<char*>(target) + row * target_pitch,
                       static_cast<const char*>(source) + row * source_pitch, width, kind);
  return error;
}
inline cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                                     size_t source_pitch, size_t width, size_t height,
                                     cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2D(target, target_pitch, source, source_pitch, width, height, kind);
}
inline cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  return static_cast<cudaError_t>(kgemu_host_set(target, value, bytes));
}
inline cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(target, value, bytes);
}

// __device__ and __constant__ variables are variables of the module: plain copies.
template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes,
                                      size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset + bytes > sizeof(T)) return kgemu::result(cudaErrorInvalidValue);
  auto* target = reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol));
  __builtin_memcpy(target + offset, source, bytes);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t bytes,
                                        size_t offset = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset + bytes > sizeof(T)) return kgemu::result(cudaErrorInvalidValue);
  __builtin_memcpy(target, reinterpret_cast<const char*>(&symbol) + offset, bytes);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind,
                                             cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(target, symbol, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
  *pointer = const_cast<std::remove_cv_t<T>*>(&symbol);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}

// --- streams and events: all work is done when a call returns -----------------------------------------

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = reinterpret_cast<cudaStream_t>(malloc(1));
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  free(stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaPeekAtLastError(); }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaPeekAtLastError(); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
  return cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = static_cast<cudaEvent_t>(calloc(1, sizeof(CUevent_st)));
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  event->seconds = kgemu::host_seconds();
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaPeekAtLastError(); }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaPeekAtLastError(); }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = static_cast<float>(1e3 * (end->seconds - start->seconds));
  return cudaSuccess;
}

// --- kernels ------------------------------------------------------------------------------------------

template <class F>
inline cudaError_t cudaFuncSetAttribute(F* function, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return static_cast<cudaError_t>(
      kgemu_set_max_dynamic_shared(kgemu::address_of(function), value));
}
template <class F>
inline cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* function) {
  *attributes = {};
  attributes->sharedSizeBytes = kgemu_static_shared(kgemu::address_of(function));
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = kgemu::Device::shared_per_block;
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F* function,
                                                                 int block_size, size_t dynamic) {
  *blocks = kgemu::resident_blocks(block_size,
                                   dynamic + kgemu_static_shared(kgemu::address_of(function)));
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F* function,
                                                                          int block_size,
                                                                          size_t dynamic, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic);
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F* function,
                                                      size_t dynamic = 0, int limit = 0) {
  const size_t shared = dynamic + kgemu_static_shared(kgemu::address_of(function));
  int best = 0;
  const int largest = limit > 0 && limit < 1024 ? limit : 1024;
  for (int size = largest / 32 * 32; size >= 32; size -= 32) {
    const int resident = size * kgemu::resident_blocks(size, shared);
    if (resident > best) {
      best = resident;
      *block = size;
    }
  }
  *grid = best == 0 ? 0 : kgemu::Device::multiprocessors * (best / *block);
  return cudaSuccess;
}

template <class... P>
inline cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                    size_t shared = 0, cudaStream_t stream = nullptr,
                                    const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  kgemu::Launch launch(kgemu_function_name(kgemu::address_of(kernel)), file, line, grid, block, shared, stream);
  kgemu::launch_pointers(launch, kernel, arguments, std::index_sequence_for<P...>{});
  return cudaPeekAtLastError();
}
template <class... P>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                                               void** arguments, size_t shared = 0,
                                               cudaStream_t stream = nullptr,
                                               const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) {
  kgemu::Launch launch(kgemu_function_name(kgemu::address_of(kernel)), file, line, grid, block, shared, stream);
  launch.cooperative();
  kgemu::launch_pointers(launch, kernel, arguments, std::index_sequence_for<P...>{});
  return cudaPeekAtLastError();
}
// A kernel whose type is lost cannot be called here.
inline cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t = 0,
                                    cudaStream_t = nullptr) {
  kgemu_unsupported("cudaLaunchKernel of an address without its type");
  return kgemu::result(cudaErrorInvalidDeviceFunction);
}
template <class... P, class... A>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                                      A&&... arguments) {
  kgemu::Launch launch(kgemu_function_name(kgemu::address_of(kernel)), "", 0, config->gridDim, config->blockDim,
                       config->dynamicSmemBytes, config->stream);
  launch([kernel](auto... a) { kernel(a...); },
         static_cast<std::decay_t<P>>(static_cast<A&&>(arguments))...);
  return cudaPeekAtLastError();
}
