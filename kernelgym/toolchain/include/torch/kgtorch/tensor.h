// at::Tensor: a handle on a Python tensor with its metadata at hand.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "accessor.h"
#include "compute_methods.h"
#include "tensor_impl.h"

namespace at {

class Tensor;
using TensorList = c10::ArrayRef<Tensor>;
using ITensorListRef = TensorList;

// The deprecated `x.type()`.
class DeprecatedTypeProperties {
 public:
  DeprecatedTypeProperties(c10::ScalarType type, c10::Device device)
      : type_(type), device_(device) {}
  c10::ScalarType scalarType() const { return type_; }
  bool is_cuda() const { return device_.is_cuda(); }
  operator c10::TensorOptions() const { return c10::TensorOptions(type_).device(device_); }

 private:
  c10::ScalarType type_;
  c10::Device device_;
};

// Copies of a handle share one tensor. A default-constructed handle is undefined (None in Python).
// Shapes and strides count elements; an undefined tensor's metadata is a c10::Error.
class Tensor : public kgtorch::ComputeMethods<Tensor> {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : impl_(other.impl_) {
    if (impl_) ++impl_->references;
  }
  Tensor(Tensor&& other) noexcept : impl_(other.impl_) { other.impl_ = nullptr; }
  Tensor& operator=(Tensor other) noexcept {
    kgtorch::TensorImpl* mine = impl_;
    impl_ = other.impl_;
    other.impl_ = mine;
    return *this;
  }
  ~Tensor() { reset(); }
  void reset() {
    if (impl_ && --impl_->references == 0) delete impl_;
    impl_ = nullptr;
  }

  // From a Python tensor, or None. The first takes over the reference, the second shares it.
  static Tensor own_python(kgtorch::Ref object) {
    Tensor tensor;
    if (object.get() != kgtorch::none())
      tensor.impl_ = kgtorch::impl_from_python(static_cast<kgtorch::Ref&&>(object));
    return tensor;
  }
  static Tensor from_python(PyObject* object) {
    return own_python(kgtorch::Ref::borrow(object));
  }
  // What a Python operator returned: its contents are written.
  static Tensor computed(kgtorch::Ref object) {
    Tensor tensor = own_python(static_cast<kgtorch::Ref&&>(object));
    tensor.mark_written();
    return tensor;
  }
  PyObject* python() const { return impl_ ? impl_->object : kgtorch::none(); }

  // Tells the emulator that the elements of this view have been written.
  void mark_written() const {
#ifdef KGEMU
    if (impl_ && impl_->numel) mark_written(static_cast<char*>(impl_->data), 0);
#endif
  }

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const = delete;
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  int64_t dim() const { return impl().ndim; }
  int64_t ndimension() const { return dim(); }
  c10::IntArrayRef sizes() const { return {impl().sizes, static_cast<size_t>(impl_->ndim)}; }
  c10::IntArrayRef strides() const { return {impl().strides, static_cast<size_t>(impl_->ndim)}; }
  int64_t size(int64_t d) const { return impl().sizes[wrap(d)]; }
  int64_t stride(int64_t d) const { return impl().strides[wrap(d)]; }
  c10::IntArrayRef sym_sizes() const { return sizes(); }
  int64_t numel() const { return impl().numel; }
  size_t element_size() const { return c10::elementSize(impl().dtype); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return element_size() * static_cast<size_t>(numel()); }
  c10::ScalarType scalar_type() const { return impl().dtype; }
  c10::TypeMeta dtype() const { return impl().dtype; }
  DeprecatedTypeProperties type() const { return {impl().dtype, impl_->device}; }
  c10::Device device() const { return impl().device; }
  c10::DeviceIndex get_device() const { return impl().device.index(); }
  c10::Layout layout() const { return c10::kStrided; }
  bool is_cuda() const { return impl().device.is_cuda(); }
  bool is_cpu() const { return impl().device.is_cpu(); }
  bool is_sparse() const { return false; }
  bool is_floating_point() const { return c10::isFloatingType(impl().dtype); }
  bool is_complex() const { return c10::isComplexType(impl().dtype); }
  c10::TensorOptions options() const {
    return c10::TensorOptions(impl().dtype).device(impl_->device);
  }
  bool is_contiguous(c10::MemoryFormat format = c10::MemoryFormat::Contiguous) const {
    if (format == c10::MemoryFormat::Contiguous) return impl().contiguous;
    const kgtorch::Ref method = kgtorch::Ref(PyObject_GetAttrString(python(), "is_contiguous"));
    const kgtorch::Ref args(PyTuple_New(0));
    const kgtorch::Ref options(
        Py_BuildValue("{sN}", "memory_format", kgtorch::to_python(format).release()));
    return kgtorch::is_true(
        kgtorch::Ref(PyObject_Call(method.get(), args.get(), options.get())).get());
  }
  bool is_non_overlapping_and_dense() const {
    return impl().contiguous || ask("is_non_overlapping_and_dense");
  }
  bool requires_grad() const { return kgtorch::is_true(kgtorch::Ref(get("requires_grad")).get()); }
  int64_t storage_offset() const {
    return PyLong_AsLongLong(kgtorch::call_method(object(), "storage_offset").get());
  }

  void* data_ptr() const { return impl().data; }
  void* mutable_data_ptr() const { return impl().data; }
  const void* const_data_ptr() const { return impl().data; }
  template <class T>
  T* data_ptr() const {
    using Element = std::remove_const_t<T>;
    if (C10_UNLIKELY(impl().dtype != c10::CppTypeToScalarType<Element>::value))
      throw c10::Error(c10::str("expected scalar type ",
                                c10::CppTypeToScalarType<Element>::value, " but found ",
                                impl_->dtype));
    return static_cast<T*>(impl_->data);
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const {
    return data_ptr<const std::remove_const_t<T>>();
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }

  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const {
    check_rank(N);
    return {data_ptr<T>(), impl_->sizes, impl_->strides};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const {
    check_rank(N);
    return {data_ptr<T>(), impl_->sizes, impl_->strides};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const {
    check_rank(N);
    return {data_ptr<T>(), impl_->sizes, impl_->strides};
  }
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> packed_accessor() const {
    check_rank(N);
    return {data_ptr<T>(), impl_->sizes, impl_->strides};
  }

  c10::Scalar item() const {
    const kgtorch::Ref value = kgtorch::call_method(object(), "item");
    if (kgtorch::is_bool(value.get())) return kgtorch::is_true(value.get());
    if (kgtorch::is_int(value.get())) return static_cast<int64_t>(PyLong_AsLongLong(value.get()));
    return PyFloat_AsDouble(value.get());
  }
  template <class T>
  T item() const {
    return item().to<T>();
  }

  // Views.
  Tensor view(c10::IntArrayRef sizes) const { return viewed("view", sizes); }
  Tensor view(c10::ScalarType type) const { return viewed("view", type); }
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape(c10::IntArrayRef sizes) const { return viewed("reshape", sizes); }
  Tensor reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const {
    return viewed("flatten", first, last);
  }
  Tensor unflatten(int64_t d, c10::IntArrayRef sizes) const { return viewed("unflatten", d, sizes); }
  Tensor transpose(int64_t a, int64_t b) const { return viewed("transpose", a, b); }
  Tensor permute(c10::IntArrayRef dims) const { return viewed("permute", dims); }
  Tensor movedim(int64_t from, int64_t to) const { return viewed("movedim", from, to); }
  Tensor t() const { return viewed("t"); }
  Tensor squeeze() const { return viewed("squeeze"); }
  Tensor squeeze(int64_t d) const { return viewed("squeeze", d); }
  Tensor unsqueeze(int64_t d) const { return viewed("unsqueeze", d); }
  Tensor expand(c10::IntArrayRef sizes) const { return viewed("expand", sizes); }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor narrow(int64_t d, int64_t start, int64_t length) const {
    return viewed("narrow", d, start, length);
  }
  Tensor select(int64_t d, int64_t index) const { return viewed("select", d, index); }
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor slice(int64_t d = 0, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) const {
    return own_python(kgtorch::aten("slice", *this, d, start, end, step));
  }
  Tensor as_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                    std::optional<int64_t> offset = {}) const {
    return viewed("as_strided", sizes, strides, offset);
  }
  Tensor detach() const { return viewed("detach"); }
  Tensor alias() const { return view(sizes()); }
  std::vector<Tensor> chunk(int64_t count, int64_t d = 0) const { return several("chunk", count, d); }
  std::vector<Tensor> split(int64_t size, int64_t d = 0) const { return several("split", size, d); }
  std::vector<Tensor> unbind(int64_t d = 0) const { return several("unbind", d); }

  // Copies, in factories.h: on the emulator they live in its guarded memory.
  Tensor contiguous(c10::MemoryFormat format = c10::MemoryFormat::Contiguous) const;
  Tensor clone(std::optional<c10::MemoryFormat> format = {}) const;
  Tensor to(c10::ScalarType type, bool non_blocking = false, bool copy = false) const;
  Tensor to(c10::TypeMeta type, bool non_blocking = false, bool copy = false) const {
    return to(type.toScalarType(), non_blocking, copy);
  }
  Tensor to(const c10::TensorOptions& options, bool non_blocking = false, bool copy = false) const;
  Tensor to(const c10::Device& device, c10::ScalarType type) const {
    return to(c10::TensorOptions(type).device(device));
  }
  Tensor to(const c10::Device& device) const { return to(c10::TensorOptions(device)); }
  Tensor to(c10::DeviceType type) const { return to(c10::Device(type)); }
  Tensor to(const Tensor& like) const { return to(like.options()); }
  Tensor toType(c10::ScalarType type) const { return to(type); }
  Tensor type_as(const Tensor& like) const { return to(like.options()); }
  Tensor cuda() const { return to(c10::kCUDA); }
  Tensor cpu() const { return to(c10::kCPU); }
  Tensor new_empty(c10::IntArrayRef sizes, c10::TensorOptions options = {}) const;
  Tensor new_zeros(c10::IntArrayRef sizes, c10::TensorOptions options = {}) const;
  Tensor new_ones(c10::IntArrayRef sizes, c10::TensorOptions options = {}) const;
  Tensor new_full(c10::IntArrayRef sizes, const c10::Scalar& value,
                  c10::TensorOptions options = {}) const;

  // In place.
  const Tensor& zero_() const { return changed("zero_"); }
  const Tensor& fill_(const c10::Scalar& value) const { return changed("fill_", value); }
  const Tensor& copy_(const Tensor& source, bool non_blocking = false) const {
    return changed("copy_", source, non_blocking);
  }
  const Tensor& set_requires_grad(bool) const { return *this; }
  Tensor& resize_(c10::IntArrayRef sizes) {
    return *this = viewed("resize_", sizes);
  }

 private:
  kgtorch::TensorImpl* impl_ = nullptr;

  const kgtorch::TensorImpl& impl() const {
    if (C10_UNLIKELY(!impl_)) throw c10::Error("Expected a defined tensor, got an undefined one");
    return *impl_;
  }
  PyObject* object() const { return impl().object; }
  PyObject* get(const char* name) const { return PyObject_GetAttrString(object(), name); }
  bool ask(const char* name) const {
    return kgtorch::is_true(kgtorch::aten(name, *this).get());
  }
  int64_t wrap(int64_t d) const {
    const int64_t n = impl_->ndim;
    if (C10_UNLIKELY(d < -n || d >= n))
      throw c10::IndexError(c10::str("Dimension out of range (expected to be in range of [", -n,
                                     ", ", n - 1, "], but got ", d, ")"));
    return d < 0 ? d + n : d;
  }
  void check_rank(size_t n) const {
    TORCH_CHECK(dim() == static_cast<int64_t>(n), "TensorAccessor expected ", n,
                " dims but tensor has ", dim());
  }
  template <class... Args>
  Tensor viewed(const char* name, const Args&... args) const {
    return own_python(kgtorch::call_method(object(), name, args...));
  }
  template <class... Args>
  const Tensor& changed(const char* name, const Args&... args) const {
    kgtorch::call_method(object(), name, args...);
    mark_written();
    return *this;
  }
  template <class... Args>
  std::vector<Tensor> several(const char* name, const Args&... args) const {
    const kgtorch::Ref list = kgtorch::call_method(object(), name, args...);
    std::vector<Tensor> tensors;
    for (Py_ssize_t i = 0; i < PySequence_Size(list.get()); ++i)
      tensors.push_back(own_python(kgtorch::Ref(PySequence_GetItem(list.get(), i))));
    return tensors;
  }
#ifdef KGEMU
  void mark_written(char* first, int d) const {
    const size_t element = element_size();
    int64_t run = 1;  // elements in one piece from dimension d on
    bool dense = true;
    for (int i = impl_->ndim - 1; i >= d && dense; --i) {
      dense = impl_->sizes[i] == 1 || impl_->strides[i] == run;
      run *= impl_->sizes[i];
    }
    if (dense) return kgemu_mark_initialised(first, static_cast<size_t>(run) * element);
    const auto step = static_cast<ptrdiff_t>(element) * impl_->strides[d];
    for (int64_t i = 0; i < impl_->sizes[d]; ++i) mark_written(first + i * step, d + 1);
  }
#endif
};

}  // namespace at

namespace kgtorch {
inline Ref to_python(const at::Tensor& tensor) { return Ref::borrow(tensor.python()); }
}  // namespace kgtorch

namespace c10 {
template <class T>
using List = std::vector<T>;
}  // namespace c10
