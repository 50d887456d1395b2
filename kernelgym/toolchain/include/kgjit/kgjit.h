// The host's half of a CUDA source whose device code NVRTC has compiled: kernels by name out of a
// cubin that lies beside the library, launched through CUDA's runtime.
//
// `kernelgym/toolchain/split.py` writes code against this: each kernel's body becomes a launch of the
// kernel of that name, each `k<<<grid, block>>>(args)` a call of `on`.
#pragma once
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stddef.h>

#include <string>
#include <typeinfo>

// Names that device code uses at namespace scope, and the host never looks into.
namespace cooperative_groups {
namespace experimental {}
}  // namespace cooperative_groups
namespace nvcuda {
namespace wmma {}
namespace experimental {}
}  // namespace nvcuda

namespace kgjit {

// The cubin of one translation unit: a file beside this library. Each unit has a `kg_library`.
class Library {
 public:
  explicit Library(const char* file) : file_(file) {}
  cudaError_t kernel(const char* name, cudaKernel_t* found) {
    const cudaError_t error = load();
    return error != cudaSuccess ? error : cudaLibraryGetKernel(found, library_, name);
  }
  cudaError_t variable(const char* name, void** address, size_t* bytes) {
    const cudaError_t error = load();
    return error != cudaSuccess ? error : cudaLibraryGetGlobal(address, bytes, library_, name);
  }

 private:
  cudaError_t load() {
    if (library_) return cudaSuccess;
    Dl_info info{};
    static const char here = 0;
    if (!dladdr(&here, &info) || !info.dli_fname) return cudaErrorFileNotFound;
    const std::string self = info.dli_fname;
    const std::string path = self.substr(0, self.rfind('/') + 1) + file_;
    return cudaLibraryLoadFromFile(&library_, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                   0);
  }
  const char* file_;
  cudaLibrary_t library_ = nullptr;
};

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared;
  cudaStream_t stream;
};

inline thread_local Configuration configuration;
// Not null while the address of a kernel is asked for its handle instead of being launched.
inline thread_local const void** wanted = nullptr;

// One kernel (of a template: one instantiation), by the name of a class that is local to its stub:
// "Z" <the function's mangled name> "E" <the class's name>.
class Kernel {
 public:
  Kernel(const char* local, Library& library) : local_(local), library_(library) {}
  cudaError_t handle(const void** found) {
    if (!kernel_) {
      static const std::string suffix = "E7kg_here";
      const std::string name = "_" + local_.substr(0, local_.size() - suffix.size());
      cudaError_t error = library_.kernel(name.c_str(), &kernel_);
      if (error == cudaErrorSymbolNotFound) {
        // extern "C": nothing but its length and its name.
        const size_t digits = name.find_first_not_of("0123456789", 2);
        error = library_.kernel(name.c_str() + (digits == std::string::npos ? 0 : digits), &kernel_);
      }
      if (error != cudaSuccess) return error;
    }
    *found = reinterpret_cast<const void*>(kernel_);
    return cudaSuccess;
  }

 private:
  std::string local_;
  Library& library_;
  cudaKernel_t kernel_ = nullptr;
};

// What a kernel's stub does. An error becomes the runtime's last one, as after any launch.
inline void launch(Kernel& kernel, void** arguments) {
  const void* found = nullptr;
  const cudaError_t error = kernel.handle(&found);
  if (wanted) {
    *wanted = found;
    return;
  }
  const Configuration& asked = configuration;
  // Without a kernel the runtime refuses and remembers.
  cudaLaunchKernel(error == cudaSuccess ? found : nullptr, asked.grid, asked.block, arguments,
                   asked.shared, asked.stream);
}

template <class Call>
class Launcher {
 public:
  Launcher(Call call, Configuration asked) : call_(call), asked_(asked) {}
  template <class... Args>
  void operator()(Args&&... args) const {
    configuration = asked_;
    call_(static_cast<Args&&>(args)...);
  }

 private:
  Call call_;
  Configuration asked_;
};

template <class Call>
Launcher<Call> on(Call call, dim3 grid, dim3 block, size_t shared = 0,
                  cudaStream_t stream = nullptr) {
  return Launcher<Call>(call, Configuration{grid, block, shared, stream});
}

// The handle that the runtime takes in the place of a kernel's address. A stub that is asked for its
// handle reads none of its arguments, so that it may be called without any.
inline const void* handle(const void* stub) {
  const void* found = nullptr;
  wanted = &found;
  reinterpret_cast<void (*)()>(const_cast<void*>(stub))();
  wanted = nullptr;
  return found;
}
template <class R, class... P>
const void* handle(R (*stub)(P...)) {
  return handle(reinterpret_cast<const void*>(stub));
}

template <class F, class... Rest>
cudaError_t launch_kernel(F f, Rest... rest) {
  return cudaLaunchKernel(handle(f), rest...);
}
template <class F, class... Rest>
cudaError_t launch_cooperative_kernel(F f, Rest... rest) {
  return cudaLaunchCooperativeKernel(handle(f), rest...);
}
template <class F>
cudaError_t func_set_attribute(F f, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(handle(f), attribute, value);
}
template <class F>
cudaError_t func_set_cache_config(F f, cudaFuncCache config) {
  return cudaFuncSetCacheConfig(handle(f), config);
}
template <class F>
cudaError_t func_get_attributes(cudaFuncAttributes* attributes, F f) {
  return cudaFuncGetAttributes(attributes, handle(f));
}
template <class F>
cudaError_t max_active_blocks(int* blocks, F f, int size, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle(f), size, shared);
}
template <class F, class... Rest>
cudaError_t max_potential_block_size(int* grid, int* block, F f, Rest... rest) {
  return cudaOccupancyMaxPotentialBlockSize(grid, block, handle(f), rest...);
}

// Variables of the device, by their spelling; one of a namespace is not found and ends in an error.
inline cudaError_t symbol(Library& library, const char* name, void** address, size_t* bytes) {
  while (*name == '&' || *name == '(' || *name == ' ') ++name;
  return library.variable(name, address, bytes);
}
inline cudaError_t to_symbol(Library& library, const char* name, const void* source, size_t count,
                             size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  void* address = nullptr;
  const cudaError_t error = symbol(library, name, &address, nullptr);
  if (error != cudaSuccess) return error;
  return cudaMemcpy(static_cast<char*>(address) + offset, source, count, kind);
}
inline cudaError_t to_symbol_async(Library& library, const char* name, const void* source,
                                   size_t count, size_t offset = 0,
                                   cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                   cudaStream_t stream = nullptr) {
  void* address = nullptr;
  const cudaError_t error = symbol(library, name, &address, nullptr);
  if (error != cudaSuccess) return error;
  return cudaMemcpyAsync(static_cast<char*>(address) + offset, source, count, kind, stream);
}
inline cudaError_t from_symbol(Library& library, void* target, const char* name, size_t count,
                               size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  void* address = nullptr;
  const cudaError_t error = symbol(library, name, &address, nullptr);
  if (error != cudaSuccess) return error;
  return cudaMemcpy(target, static_cast<char*>(address) + offset, count, kind);
}
template <class T>
cudaError_t symbol_address(Library& library, T** address, const char* name) {
  return symbol(library, name, reinterpret_cast<void**>(address), nullptr);
}

}  // namespace kgjit

// Functions of the runtime that take a kernel's address, or a variable's.
#define cudaLaunchKernel(...) ::kgjit::launch_kernel(__VA_ARGS__)
#define cudaLaunchCooperativeKernel(...) ::kgjit::launch_cooperative_kernel(__VA_ARGS__)
#define cudaFuncSetAttribute(...) ::kgjit::func_set_attribute(__VA_ARGS__)
#define cudaFuncSetCacheConfig(...) ::kgjit::func_set_cache_config(__VA_ARGS__)
#define cudaFuncGetAttributes(...) ::kgjit::func_get_attributes(__VA_ARGS__)
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor(...) ::kgjit::max_active_blocks(__VA_ARGS__)
#define cudaOccupancyMaxPotentialBlockSize(...) ::kgjit::max_potential_block_size(__VA_ARGS__)
#define cudaMemcpyToSymbol(SYMBOL, ...) ::kgjit::to_symbol(kg_library, #SYMBOL, __VA_ARGS__)
#define cudaMemcpyToSymbolAsync(SYMBOL, ...) \
  ::kgjit::to_symbol_async(kg_library, #SYMBOL, __VA_ARGS__)
#define cudaMemcpyFromSymbol(TARGET, SYMBOL, ...) \
  ::kgjit::from_symbol(kg_library, TARGET, #SYMBOL, __VA_ARGS__)
#define cudaGetSymbolAddress(ADDRESS, SYMBOL) \
  ::kgjit::symbol_address(kg_library, ADDRESS, #SYMBOL)
