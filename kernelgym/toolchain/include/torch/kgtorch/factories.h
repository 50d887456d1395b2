// torch::empty and its kin, and the copies of a tensor.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "tensor.h"

namespace kgtorch {

inline std::vector<int64_t> row_major(c10::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    if (sizes[i] > 1) step *= sizes[i];
  }
  return strides;
}

// Strides of (N, C, H, W) or (N, C, D, H, W) with channels innermost.
inline std::vector<int64_t> channels_last(c10::IntArrayRef sizes) {
  TORCH_CHECK(sizes.size() == 4 || sizes.size() == 5,
              "Expected 4 or 5 dimensions for channels last, got ", sizes.size());
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const size_t d = k == 0 ? 1 : k == sizes.size() - 1 ? 0 : sizes.size() - k;
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return strides;
}

inline at::Tensor allocate(c10::IntArrayRef sizes, const c10::TensorOptions& options,
                           bool initialised, const char* label,
                           const std::vector<int64_t>* strides = nullptr) {
  const c10::ScalarType dtype = options.dtype().toScalarType();
  std::vector<int64_t> own;
  if (!strides && options.memory_format_opt() >= c10::MemoryFormat::ChannelsLast) {
    own = channels_last(sizes);
    strides = &own;
  }
  int64_t span = 1;
  int64_t numel = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    TORCH_CHECK(sizes[i] >= 0, "Trying to create tensor with negative dimension ", sizes[i], ": ",
                sizes);
    numel *= sizes[i];
    if (strides) span += (sizes[i] - 1) * (*strides)[i];
  }
  if (!strides || numel == 0) span = numel;
#ifdef KGEMU
  if (!strides) own = row_major(sizes);
  return at::Tensor::own_python(
      emulator_tensor(sizes, strides ? *strides : own, static_cast<size_t>(span) * c10::elementSize(dtype),
                      dtype, initialised, label));
#else
  (void)initialised;
  (void)label;
  if (!strides) return at::Tensor::own_python(torch_tensor(sizes, dtype, options.device()));
  const at::Tensor flat = at::Tensor::own_python(torch_tensor(span, dtype, options.device()));
  return flat.as_strided(sizes, *strides);
#endif
}

inline c10::TensorOptions with_format(c10::TensorOptions options,
                                      std::optional<c10::MemoryFormat> format) {
  return format ? options.memory_format(*format) : options;
}

// Like `self`: its strides too, when it fills its memory without gaps.
inline at::Tensor allocate_like(const at::Tensor& self, const c10::TensorOptions& options,
                                bool initialised, const char* label) {
  const c10::TensorOptions merged = self.options().merge_in(options);
  const bool preserve =
      merged.memory_format_opt().value_or(c10::MemoryFormat::Preserve) == c10::MemoryFormat::Preserve;
  if (!preserve || self.is_contiguous() || !self.is_non_overlapping_and_dense())
    return allocate(self.sizes(), merged, initialised, label);
  const std::vector<int64_t> strides = self.strides().vec();
  return allocate(self.sizes(), merged, initialised, label, &strides);
}

inline at::Tensor copied(const at::Tensor& self, const c10::TensorOptions& options,
                         const char* label) {
  at::Tensor copy = allocate_like(self, options, true, label);
  copy.copy_(self);
  return copy;
}

}  // namespace kgtorch

namespace at {

using FormatOption = std::optional<c10::MemoryFormat>;

inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}, FormatOption format = {}) {
  return kgtorch::allocate(sizes, kgtorch::with_format(options, format), false, "torch::empty");
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) {
  const Tensor tensor = kgtorch::allocate(sizes, options, true, "torch::zeros");
  return tensor.zero_();
}
inline Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {}) {
  const auto guess = value.isFloatingPoint() ? kFloat : value.isBoolean() ? kBool : kLong;
  const Tensor tensor =
      kgtorch::allocate(sizes, TensorOptions(guess).merge_in(options), true, "torch::full");
  return tensor.fill_(value);
}
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) {
  const Tensor tensor = kgtorch::allocate(sizes, options, true, "torch::ones");
  return tensor.fill_(1);
}
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides,
                            const TensorOptions& options = {}) {
  TORCH_CHECK(sizes.size() == strides.size(), "Expected as many strides as sizes, got ", strides,
              " for ", sizes);
  const std::vector<int64_t> steps = strides.vec();
  return kgtorch::allocate(sizes, options, false, "torch::empty_strided", &steps);
}
inline Tensor empty_like(const Tensor& self, const TensorOptions& options = {},
                         FormatOption format = {}) {
  return kgtorch::allocate_like(self, kgtorch::with_format(options, format), false,
                                "torch::empty_like");
}
inline Tensor zeros_like(const Tensor& self, const TensorOptions& options = {},
                         FormatOption format = {}) {
  return kgtorch::allocate_like(self, kgtorch::with_format(options, format), true,
                                "torch::zeros_like")
      .zero_();
}
inline Tensor full_like(const Tensor& self, const Scalar& value,
                        const TensorOptions& options = {}) {
  return kgtorch::allocate_like(self, options, true, "torch::full_like").fill_(value);
}
inline Tensor ones_like(const Tensor& self, const TensorOptions& options = {},
                        FormatOption format = {}) {
  return kgtorch::allocate_like(self, kgtorch::with_format(options, format), true,
                                "torch::ones_like")
      .fill_(1);
}
inline Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {}) {
  return full(IntArrayRef(), value, options);
}

// torch::tensor({1, 2, 3}, options): a one-dimensional tensor of these values.
template <class T, std::enable_if_t<!std::is_class_v<T>, int> = 0>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  const auto type = std::is_same_v<T, double> ? kFloat : std::is_integral_v<T> && !std::is_same_v<T, bool>
                        ? kLong : CppTypeToScalarType<T>::value;
  const TensorOptions merged = TensorOptions(type).merge_in(options);
  const Tensor result = kgtorch::allocate(static_cast<int64_t>(values.size()), merged, true, "torch::tensor");
  const kgtorch::Ref source = kgtorch::call_method(
      kgtorch::Torch::get().module.get(), "tensor", kgtorch::to_python(values));
  return result.copy_(Tensor::from_python(source.get()));
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return scalar_tensor(value, options);
}

inline Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {}) {
  const kgtorch::Ref values =
      kgtorch::call_method(kgtorch::Torch::get().module.get(), "arange", start, end);
  const Tensor source = Tensor::from_python(values.get());
  return kgtorch::copied(source, options, "torch::arange");
}
inline Tensor arange(const Scalar& end, const TensorOptions& options = {}) {
  return arange(0, end, options);
}

#ifdef KGEMU
inline Tensor Tensor::contiguous(c10::MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  return kgtorch::copied(*this, TensorOptions(format), "contiguous()");
}
inline Tensor Tensor::clone(FormatOption format) const {
  return kgtorch::copied(*this, kgtorch::with_format({}, format), "clone()");
}
inline Tensor Tensor::to(const TensorOptions& options, bool, bool copy) const {
  const bool same = options.dtype_opt().value_or(scalar_type()) == scalar_type();
  if (same && !copy) return *this;
  return kgtorch::copied(*this, options, "to()");
}
#else
inline Tensor Tensor::contiguous(c10::MemoryFormat format) const {
  if (format == c10::MemoryFormat::Contiguous) return impl().contiguous ? *this : viewed("contiguous");
  return is_contiguous(format) ? *this : kgtorch::copied(*this, TensorOptions(format), "");
}
inline Tensor Tensor::clone(FormatOption format) const {
  return format ? kgtorch::copied(*this, TensorOptions(*format), "") : viewed("clone");
}
inline Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy) const {
  const auto device = options.device_opt().value_or(this->device());
  const auto type = options.dtype_opt().value_or(scalar_type());
  return viewed("to", device, type, non_blocking, copy);
}
#endif
inline Tensor Tensor::to(ScalarType type, bool non_blocking, bool copy) const {
  return to(TensorOptions(type), non_blocking, copy);
}
inline Tensor Tensor::new_empty(IntArrayRef sizes, TensorOptions options) const {
  return empty(sizes, this->options().merge_in(options));
}
inline Tensor Tensor::new_zeros(IntArrayRef sizes, TensorOptions options) const {
  return zeros(sizes, this->options().merge_in(options));
}
inline Tensor Tensor::new_ones(IntArrayRef sizes, TensorOptions options) const {
  return ones(sizes, this->options().merge_in(options));
}
inline Tensor Tensor::new_full(IntArrayRef sizes, const Scalar& value, TensorOptions options) const {
  return full(sizes, value, this->options().merge_in(options));
}

// Gradients are not recorded through a custom kernel, whatever the mode.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool = false) {}
  ~AutoGradMode() {}
};
using NoGradGuard = AutoGradMode;
using InferenceMode = AutoGradMode;
using AutoDispatchBelowADInplaceOrView = AutoGradMode;
using AutoNonVariableTypeMode = AutoGradMode;

}  // namespace at
