// What a tensor handle points to: the Python tensor, and its metadata read once.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "options.h"
#include "python.h"
#ifdef KGEMU
#include <kgemu_api.h>
#endif

namespace kgtorch {

inline constexpr int kInlineDims = 6;

// A strided block of elements; sizes and strides in elements. Reference counted under the GIL.
struct TensorImpl {
  size_t references = 1;
  PyObject* object = nullptr;  // owned
  void* data = nullptr;
  int64_t numel = 1;
  int64_t* sizes = inline_dims;
  int64_t* strides = inline_dims + kInlineDims;
  int ndim = 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  c10::Device device = c10::kCPU;
  bool contiguous = true;
#ifdef KGEMU
  const void* registered = nullptr;
#endif
  int64_t inline_dims[2 * kInlineDims];

  explicit TensorImpl(Ref tensor) : object(tensor.release()) {}
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;
  ~TensorImpl() {
#ifdef KGEMU
    if (registered) kgemu_unregister(registered);
#endif
    if (sizes != inline_dims) delete[] sizes;
    release(object);
  }

  void set_dims(int count) {
    ndim = count;
    if (count <= kInlineDims) return;
    sizes = new int64_t[2 * static_cast<size_t>(count)];
    strides = sizes + count;
  }

  // Number of elements, and whether they lie in row-major order without gaps.
  void finish() {
    int64_t expected = 1;
    for (int i = ndim - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != expected) contiguous = false;
      expected *= sizes[i];
    }
    numel = expected;
    if (numel == 0) contiguous = true;
#ifdef KGEMU
    if (numel != 0) make_known();
#endif
  }

#ifdef KGEMU
  // The emulator refuses accesses to memory that it does not know. What a torch operator made is
  // registered here, whole, so that views of it need not nest; otherwise only kept alive.
  KGTORCH_COLD void make_known() {
    if (kgemu_is_device_pointer(data)) {
      kgemu_register(data, 1, 0, "");
      registered = data;
      return;
    }
    const Ref storage = call_method(object, "untyped_storage");
    const Ref address = call_method(storage.get(), "data_ptr");
    const Ref bytes = call_method(storage.get(), "nbytes");
    registered = PyLong_AsVoidPtr(address.get());
    kgemu_register(registered, PyLong_AsSize_t(bytes.get()), 1, "a tensor made by torch");
  }
#endif

  // The device as the candidate is told: on the emulator all memory is the GPU's.
  void set_device(bool is_cuda, int index) {
#ifdef KGEMU
    (void)is_cuda;
    (void)index;
    device = c10::Device(c10::kCUDA, 0);
#else
    device = is_cuda ? c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index))
                     : c10::Device(c10::kCPU);
#endif
  }
};

inline c10::ScalarType type_from_dlpack(DLType type) {
  for (const c10::TypeFacts& facts : c10::kTypeFacts)
    if (facts.code == type.code && facts.bits == type.bits && type.lanes == 1) return facts.type;
  throw c10::TypeError("Expected a tensor of an element type that the C++ side knows, got DLPack " +
                       std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits");
}

// Reads the metadata through Python attributes: for torch without the exchange API.
KGTORCH_COLD inline void read_attributes(TensorImpl& impl) {
  const Ref tensor = Ref::borrow(impl.object);
  const Ref shape = tensor.attr("shape");
  const Ref strides = call_method(impl.object, "stride");
  const auto integer = [](const Ref& value) {
    const long long number = PyLong_AsLongLong(value.get());
    if (number == -1 && PyErr_Occurred()) throw PythonError();
    return static_cast<int64_t>(number);
  };
  impl.set_dims(static_cast<int>(PyTuple_Size(shape.get())));
  for (int i = 0; i < impl.ndim; ++i) {
    impl.sizes[i] = integer(Ref::borrow(PyTuple_GetItem(shape.get(), i)));
    impl.strides[i] = integer(Ref::borrow(PyTuple_GetItem(strides.get(), i)));
  }
  impl.data = reinterpret_cast<void*>(integer(call_method(impl.object, "data_ptr")));
  impl.dtype = dtype_from_object(tensor.attr("dtype").get());
  const bool is_cuda = is_true(tensor.attr("is_cuda").get());
  impl.set_device(is_cuda, is_cuda ? static_cast<int>(integer(call_method(impl.object, "get_device")))
                                   : 0);
  impl.finish();
}

inline TensorImpl* impl_from_python(Ref tensor) {
  struct Guard {
    TensorImpl* impl;
    ~Guard() { delete impl; }
    TensorImpl* operator->() const { return impl; }
    TensorImpl& operator*() const { return *impl; }
    TensorImpl* release() {
      TensorImpl* released = impl;
      impl = nullptr;
      return released;
    }
  } impl{new TensorImpl(static_cast<Ref&&>(tensor))};
  DLExchange* exchange = Torch::get().exchange;
  if (!exchange || !exchange->view_object) {
    read_attributes(*impl);
    return impl.release();
  }
  DLView view;
  if (exchange->view_object(impl->object, &view) != 0) throw PythonError();
  impl->set_dims(view.ndim);
  for (int i = 0; i < view.ndim; ++i) {
    impl->sizes[i] = view.shape[i];
    impl->strides[i] = view.strides[i];
  }
  impl->data = static_cast<char*>(view.data) + view.byte_offset;
  impl->dtype = type_from_dlpack(view.dtype);
  impl->set_device(view.device.type == 2, view.device.index);
  impl->finish();
  return impl.release();
}

inline bool is_tensor(PyObject* object) {
  return is_instance(object, Torch::get().tensor_type.as_type());
}

#ifdef KGEMU
// Guarded memory of the emulator under a DLPack header that frees it with its last user.
struct EmulatorBlock {
  DLManaged managed;
  DLManagedLegacy legacy;
  int64_t dims[2 * 64];

  static void free(EmulatorBlock* block) {
    if (block->managed.tensor.data) kgemu_free(block->managed.tensor.data);
    delete block;
  }
};

inline Ref emulator_tensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, size_t bytes,
                           c10::ScalarType dtype, bool initialised, const char* label) {
  TORCH_CHECK(sizes.size() <= 64, "Expected at most 64 dimensions, got ", sizes.size());
  void* memory = bytes ? kgemu_alloc(bytes, initialised, label) : nullptr;
  TORCH_CHECK(memory || !bytes, "CUDA out of memory. Tried to allocate ", bytes, " bytes");
  auto* block = new EmulatorBlock;
  DLView& view = block->managed.tensor;
  const c10::TypeFacts& facts = c10::type_facts(dtype);
  view = {memory,
          {1, 0},
          static_cast<int32_t>(sizes.size()),
          {facts.code, facts.bits, 1},
          block->dims,
          block->dims + 64,
          0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    view.shape[i] = sizes[i];
    view.strides[i] = strides[i];
  }
  block->managed.version = {1, 0};
  block->managed.manager = block;
  block->managed.flags = 0;
  block->managed.deleter = [](DLManaged* self) {
    EmulatorBlock::free(static_cast<EmulatorBlock*>(self->manager));
  };
  Torch& torch = Torch::get();
  if (torch.exchange) {
    void* object = nullptr;
    if (torch.exchange->import_object(&block->managed, &object) != 0) throw PythonError();
    return Ref(static_cast<PyObject*>(object));
  }
  block->legacy = {view, block, [](DLManagedLegacy* self) {
                     EmulatorBlock::free(static_cast<EmulatorBlock*>(self->manager));
                   }};
  const Ref capsule(PyCapsule_New(&block->legacy, "dltensor", nullptr));
  return call_method(torch.module.get(), "from_dlpack", capsule);
}
#endif

inline void set_python_error(void*, const char* kind, const char* message) {
  PyObject* type = __builtin_strcmp(kind, "MemoryError") == 0 ? PyExc_MemoryError
                                                              : PyExc_RuntimeError;
  PyErr_SetString(type, message);
}

// A new tensor of torch's own allocator, row-major, contents undefined.
inline Ref torch_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype, const c10::Device& device) {
  Torch& torch = Torch::get();
  const c10::TypeFacts& facts = c10::type_facts(dtype);
  if (!torch.exchange || (device.is_cuda() && !device.has_index())) {
    const Ref empty = torch.module.attr("empty");
    const Ref args(Py_BuildValue("(N)", to_python(sizes).release()));
    const Ref options(Py_BuildValue("{sNsN}", "dtype", to_python(dtype).release(), "device",
                                    to_python(device).release()));
    return Ref(PyObject_Call(empty.get(), args.get(), options.get()));
  }
  DLView prototype{nullptr,
                   {device.is_cuda() ? 2 : 1, device.has_index() ? device.index() : 0},
                   static_cast<int32_t>(sizes.size()),
                   {facts.code, facts.bits, 1},
                   const_cast<int64_t*>(sizes.data()),
                   nullptr,
                   0};
  DLManaged* managed = nullptr;
  if (torch.exchange->allocate(&prototype, &managed, nullptr, set_python_error) != 0)
    throw PythonError();
  void* object = nullptr;
  if (torch.exchange->import_object(managed, &object) != 0) throw PythonError();
  return Ref(static_cast<PyObject*>(object));
}

}  // namespace kgtorch
