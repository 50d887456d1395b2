// Python objects as C++ values: owning references, errors, conversions, and torch's objects.
// Everything here wants the GIL.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "cpython.h"
#include "dlpack.h"
#include "scalar_type.h"

namespace kgtorch {

// A Python exception on its way through C++.
class PythonError : public std::exception {
 public:
  KGTORCH_COLD PythonError() {
    PyErr_Fetch(&type_, &value_, &trace_);
    PyErr_NormalizeException(&type_, &value_, &trace_);
    if (PyObject* text = value_ ? PyObject_Str(value_) : nullptr) {
      if (const char* message = utf8(text)) what_ = message;
      Py_DecRef(text);
    }
    PyErr_Clear();
  }
  PythonError(const PythonError& other)
      : std::exception(other), type_(other.type_), value_(other.value_), trace_(other.trace_),
        what_(other.what_) {
    Py_IncRef(type_);
    Py_IncRef(value_);
    Py_IncRef(trace_);
  }
  PythonError& operator=(const PythonError&) = delete;
  ~PythonError() override {
    Py_DecRef(type_);
    Py_DecRef(value_);
    Py_DecRef(trace_);
  }
  const char* what() const noexcept override { return what_.c_str(); }
  // Makes it the interpreter's current exception again.
  void restore() const {
    Py_IncRef(type_);
    Py_IncRef(value_);
    Py_IncRef(trace_);
    PyErr_Restore(type_, value_, trace_);
  }

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
  std::string what_;
};

// Gives a reference back. A static variable may hold it longer than there is an interpreter.
inline void release(PyObject* object) {
  if (object && Py_IsInitialized()) Py_DecRef(object);
}

// An owning reference; takes over the reference it is made from, and throws if that is null.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {
    if (!object_) throw PythonError();
  }
  static Ref borrow(PyObject* object) {
    Py_IncRef(object);
    return Ref(object);
  }
  Ref(const Ref& other) : object_(other.object_) { Py_IncRef(object_); }
  Ref(Ref&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Ref& operator=(Ref other) noexcept {
    PyObject* mine = object_;
    object_ = other.object_;
    other.object_ = mine;
    return *this;
  }
  ~Ref() { kgtorch::release(object_); }
  PyObject* get() const { return object_; }
  PyTypeObject* as_type() const { return reinterpret_cast<PyTypeObject*>(object_); }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }
  explicit operator bool() const { return object_ != nullptr; }
  Ref attr(const char* name) const { return Ref(PyObject_GetAttrString(object_, name)); }

 private:
  PyObject* object_ = nullptr;
};

// The name of an object's type, as messages give it: "int", "torch.dtype".
KGTORCH_COLD inline std::string type_name(PyObject* object) {
  const Ref type = Ref::borrow(reinterpret_cast<PyObject*>(type_of(object)));
  const Ref module = type.attr("__module__");
  const Ref name = type.attr("__qualname__");
  const std::string space = utf8(module.get());
  return (space == "builtins" ? "" : space + ".") + utf8(name.get());
}

// What is looked up once per extension module. Leaked on purpose: it outlives the interpreter.
struct Torch {
  Ref module = Ref(PyImport_ImportModule("torch"));
  Ref aten = module.attr("ops").attr("aten");
  Ref tensor_type = module.attr("Tensor");
  Ref dtype_type = module.attr("dtype");
  Ref device_type = module.attr("device");
  DLExchange* exchange = find_exchange(tensor_type.get());
  Ref dtypes[sizeof(c10::kTypeFacts) / sizeof(c10::kTypeFacts[0])];

  // Null where torch is too old to have it (before 2.10).
  static DLExchange* find_exchange(PyObject* type) {
    for (const char* name : {"__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"}) {
      PyObject* capsule = PyObject_GetAttrString(type, name);
      if (!capsule) {
        PyErr_Clear();
        continue;
      }
      void* table = type_of(capsule) == &PyCapsule_Type
                        ? PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
                        : nullptr;
      Py_DecRef(capsule);
      auto* exchange = static_cast<DLExchange*>(table);
      if (exchange && exchange->version.major == 1) return exchange;
    }
    return nullptr;
  }

  static Torch& get();
};

KGTORCH_LOCAL inline Torch* torch_state = nullptr;

inline Torch& Torch::get() {
  if (C10_UNLIKELY(!torch_state)) torch_state = new Torch;
  return *torch_state;
}

inline Ref dtype_object(c10::ScalarType type) {
  Torch& torch = Torch::get();
  const c10::TypeFacts& facts = c10::type_facts(type);
  Ref& cached = torch.dtypes[&facts - c10::kTypeFacts];
  if (!cached) cached = torch.module.attr(facts.python);
  return cached;
}

KGTORCH_COLD inline c10::ScalarType dtype_from_object(PyObject* object) {
  for (const c10::TypeFacts& facts : c10::kTypeFacts)
    if (facts.type != c10::ScalarType::Undefined && dtype_object(facts.type).get() == object)
      return facts.type;
  throw c10::TypeError("Expected a torch.dtype that the C++ side knows");
}

// On the emulator every tensor is in host memory, whatever it says it is.
inline std::string device_name(const c10::Device& device) {
#ifdef KGEMU
  (void)device;
  return "cpu";
#else
  return device.str();
#endif
}

// What pybind11's object types here derive from.
struct ObjectBase {};

inline Ref to_python(const Ref& value) { return value; }
template <class T>
auto to_python(const T& value) -> std::enable_if_t<std::is_base_of_v<ObjectBase, T>, Ref> {
  if (!value.ref()) throw c10::IndexError("Expected an object, got an entry that is not there");
  return value.ref();
}
inline Ref to_python(const c10::Device& device) {
  return Ref(PyUnicode_FromString(device_name(device).c_str()));
}
inline Ref to_python(c10::DeviceType type) { return to_python(c10::Device(type)); }
inline Ref to_python(c10::ScalarType type) { return dtype_object(type); }
inline Ref to_python(c10::TypeMeta type) { return dtype_object(type.toScalarType()); }
inline Ref to_python(const char* text) { return Ref(PyUnicode_FromString(text)); }
inline Ref to_python(const std::string& text) {
  return Ref(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}
inline Ref to_python(c10::nullopt_t) { return Ref::borrow(none()); }
inline Ref to_python(std::nullptr_t) { return Ref::borrow(none()); }
inline Ref to_python(const c10::Scalar& value) {
  if (value.isBoolean()) return Ref(PyBool_FromLong(value.toBool()));
  if (value.isFloatingPoint()) return Ref(PyFloat_FromDouble(value.toDouble()));
  return Ref(PyLong_FromLongLong(value.toLong()));
}
inline Ref to_python(c10::MemoryFormat format) {
  const char* const names[] = {"contiguous_format", "preserve_format", "channels_last",
                               "channels_last_3d"};
  return Torch::get().module.attr(names[static_cast<int>(format)]);
}
inline Ref to_python(c10::Layout) { return Torch::get().module.attr("strided"); }
template <class T>
auto to_python(T value) -> std::enable_if_t<std::is_arithmetic_v<T>, Ref> {
  if constexpr (std::is_same_v<T, bool>) return Ref(PyBool_FromLong(value));
  else if constexpr (std::is_floating_point_v<T>)
    return Ref(PyFloat_FromDouble(static_cast<double>(value)));
  else if constexpr (std::is_signed_v<T>) return Ref(PyLong_FromLongLong(value));
  else return Ref(PyLong_FromUnsignedLongLong(value));
}
template <class T>
Ref to_python(const std::optional<T>& value);
template <class A, class B>
Ref to_python(const std::pair<A, B>& value);
template <class... T>
Ref to_python(const std::tuple<T...>& value);

template <class T>
Ref to_python(const c10::ArrayRef<T>& values) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), to_python(values[i]).release());
  return list;
}
template <class T>
Ref to_python(const std::vector<T>& values) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i),
                    to_python(static_cast<const T&>(values[i])).release());
  return list;
}
template <class T>
Ref to_python(std::initializer_list<T> values) {
  return to_python(c10::ArrayRef<T>(values));
}
inline Ref to_python(const c10::OptionalIntArrayRef& value) {
  return value.has_value() ? to_python(value.value()) : Ref::borrow(none());
}
template <class T>
Ref to_python(const std::optional<T>& value) {
  return value ? to_python(*value) : Ref::borrow(none());
}
template <class Tuple, size_t... I>
Ref tuple_to_python(const Tuple& value, std::index_sequence<I...>) {
  Ref tuple(PyTuple_New(sizeof...(I)));
  (PyTuple_SetItem(tuple.get(), I, to_python(std::get<I>(value)).release()), ...);
  return tuple;
}
template <class... T>
Ref to_python(const std::tuple<T...>& value) {
  return tuple_to_python(value, std::index_sequence_for<T...>{});
}
template <class A, class B>
Ref to_python(const std::pair<A, B>& value) {
  return tuple_to_python(value, std::make_index_sequence<2>{});
}

// callable(*args, **named). (Cheaper to compile than a std::tuple of each call's types.)
inline Ref call_with(PyObject* callable, const Ref* args, size_t count, PyObject* named) {
  const Ref positional(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i)
    PyTuple_SetItem(positional.get(), static_cast<Py_ssize_t>(i), Ref(args[i]).release());
  return Ref(PyObject_Call(callable, positional.get(), named));
}

// callable(*args), positional.
template <class... Args>
Ref call(PyObject* callable, const Args&... args) {
  const Ref owned[] = {to_python(args)..., Ref()};
  return call_with(callable, owned, sizeof...(Args), nullptr);
}

template <class... Args>
Ref call_method(PyObject* self, const char* name, const Args&... args) {
  const Ref method(PyObject_GetAttrString(self, name));
  return call(method.get(), args...);
}

}  // namespace kgtorch

namespace c10::detail {
inline void warn(const std::string& message) {
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw kgtorch::PythonError();
}
}  // namespace c10::detail
