// torch::TensorOptions.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "scalar_type.h"

namespace c10 {

// What a new tensor is to be: each property may be left open. Layout, pinning and gradients are
// accepted, and have no effect: outputs of a custom kernel are plain strided tensors.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(TypeMeta type) : dtype_(type.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}
  TensorOptions(Layout) {}
  TensorOptions(MemoryFormat format) : memory_format_(format) {}

  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> type) const {
    TensorOptions result = *this;
    result.dtype_ = type;
    return result;
  }
  [[nodiscard]] TensorOptions dtype(ScalarType type) const {
    return dtype(std::optional<ScalarType>(type));
  }
  [[nodiscard]] TensorOptions dtype(TypeMeta type) const { return dtype(type.toScalarType()); }
  template <class T>
  [[nodiscard]] TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> device) const {
    TensorOptions result = *this;
    result.device_ = device;
    return result;
  }
  [[nodiscard]] TensorOptions device(Device device) const {
    return this->device(std::optional<Device>(device));
  }
  [[nodiscard]] TensorOptions device(DeviceType type) const { return device(Device(type)); }
  [[nodiscard]] TensorOptions device(const std::string& name) const { return device(Device(name)); }
  [[nodiscard]] TensorOptions device(const char* name) const { return device(Device(name)); }
  [[nodiscard]] TensorOptions device(DeviceType type, int index) const {
    return device(Device(type, static_cast<DeviceIndex>(index)));
  }
  [[nodiscard]] TensorOptions device_index(int index) const {
    return device(Device(kCUDA, static_cast<DeviceIndex>(index)));
  }
  [[nodiscard]] TensorOptions layout(Layout) const { return *this; }
  [[nodiscard]] TensorOptions requires_grad(bool) const { return *this; }
  [[nodiscard]] TensorOptions pinned_memory(bool) const { return *this; }
  [[nodiscard]] TensorOptions memory_format(MemoryFormat format) const {
    TensorOptions result = *this;
    result.memory_format_ = format;
    return result;
  }

  TypeMeta dtype() const { return dtype_.value_or(kFloat); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool requires_grad() const { return false; }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  Layout layout() const { return kStrided; }
  // These options where `other` leaves something open.
  TensorOptions merge_in(const TensorOptions& other) const {
    TensorOptions result = other;
    if (!result.dtype_) result.dtype_ = dtype_;
    if (!result.device_) result.device_ = device_;
    if (!result.memory_format_) result.memory_format_ = memory_format_;
    return result;
  }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<MemoryFormat> memory_format_;
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(TypeMeta type) { return TensorOptions(type); }
template <class T>
TensorOptions dtype() {
  return TensorOptions().dtype<T>();
}
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions layout(Layout) { return {}; }
inline TensorOptions requires_grad(bool = true) { return {}; }

}  // namespace c10
