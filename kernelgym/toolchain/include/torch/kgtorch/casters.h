// From Python arguments to C++ values: one Loader for each kind of parameter.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "pyobjects.h"

namespace kgtorch {

// A Loader<T> holds what was loaded. `load` answers whether the object fits; `convert` allows an
// int for a float and the like. `name` is what Python calls the type.
template <class T, class = void>
struct Loader {
  static_assert(sizeof(T) == 0,
                "a bound function has a parameter or result of a type that kernelgym's torch "
                "stand-in does not convert; tensors, numbers, strings, and optionals, vectors, "
                "pairs and tuples of them can be used");
};

template <>
struct Loader<at::Tensor> {
  at::Tensor value;
  bool load(PyObject* object, bool) {
    if (!is_tensor(object)) return false;
    value = at::Tensor::from_python(object);
    return true;
  }
  at::Tensor& get() { return value; }
  static std::string name() { return "torch.Tensor"; }
};

template <class T>
struct Loader<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  T value = 0;
  bool load(PyObject* object, bool convert) {
    if (is_int(object)) return store(object);
    if (!convert || is_float(object) || !PyIndex_Check(object)) return false;
    PyObject* index = PyNumber_Index(object);
    if (!index) {
      PyErr_Clear();
      return false;
    }
    const bool stored = store(index);
    Py_DecRef(index);
    return stored;
  }
  T& get() { return value; }
  static std::string name() { return "int"; }

 private:
  // Values that T cannot hold do not fit.
  bool store(PyObject* integer) {
    if constexpr (std::is_signed_v<T>) {
      const long long wide = PyLong_AsLongLong(integer);
      value = static_cast<T>(wide);
      if (value == wide && !(wide == -1 && PyErr_Occurred())) return true;
    } else {
      const unsigned long long wide = PyLong_AsUnsignedLongLong(integer);
      value = static_cast<T>(wide);
      if (value == wide && !PyErr_Occurred()) return true;
    }
    PyErr_Clear();
    return false;
  }
};

template <class T>
struct Loader<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  T value = 0;
  bool load(PyObject* object, bool convert) {
    if (!is_float(object) && !(convert && PyNumber_Check(object))) return false;
    const double wide = PyFloat_AsDouble(object);
    if (wide == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    value = static_cast<T>(wide);
    return true;
  }
  T& get() { return value; }
  static std::string name() { return "float"; }
};

template <>
struct Loader<bool> {
  bool value = false;
  bool load(PyObject* object, bool convert) {
    if (is_bool(object)) {
      value = is_true(object);
      return true;
    }
    if (!convert || !(object == none() || PyNumber_Check(object)) || is_tensor(object))
      return false;
    const int truth = PyObject_IsTrue(object);
    if (truth < 0) PyErr_Clear();
    value = truth == 1;
    return truth >= 0;
  }
  bool& get() { return value; }
  static std::string name() { return "bool"; }
};

template <>
struct Loader<std::string> {
  std::string value;
  bool load(PyObject* object, bool) {
    if (!is_str(object)) return false;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) {
      PyErr_Clear();
      return false;
    }
    value.assign(text, static_cast<size_t>(size));
    return true;
  }
  std::string& get() { return value; }
  static std::string name() { return "str"; }
};

template <>
struct Loader<const char*> : Loader<std::string> {
  const char* get() { return value.c_str(); }
};

template <>
struct Loader<c10::Scalar> {
  c10::Scalar value;
  bool load(PyObject* object, bool convert) {
    if (is_bool(object)) value = is_true(object);
    else if (Loader<int64_t> integer; integer.load(object, false)) value = integer.value;
    else if (Loader<double> real; real.load(object, convert)) value = real.value;
    else return false;
    return true;
  }
  c10::Scalar& get() { return value; }
  static std::string name() { return "number"; }
};

template <>
struct Loader<c10::ScalarType> {
  c10::ScalarType value = c10::kFloat;
  bool load(PyObject* object, bool) {
    if (type_of(object) != Torch::get().dtype_type.as_type()) return false;
    value = dtype_from_object(object);
    return true;
  }
  c10::ScalarType& get() { return value; }
  static std::string name() { return "torch.dtype"; }
};

template <>
struct Loader<c10::Device> {
  c10::Device value = c10::kCPU;
  bool load(PyObject* object, bool) {
    if (type_of(object) != Torch::get().device_type.as_type()) return false;
    const Ref text(PyObject_Str(object));
    value = c10::Device(std::string(utf8(text.get())));
#ifdef KGEMU
    value = c10::Device(c10::kCUDA, 0);
#endif
    return true;
  }
  c10::Device& get() { return value; }
  static std::string name() { return "torch.device"; }
};

template <class T>
struct Loader<std::optional<T>> {
  std::optional<T> value;
  bool load(PyObject* object, bool convert) {
    if (object == none()) return true;
    Loader<T> inner;
    if (!inner.load(object, convert)) return false;
    value = static_cast<T&&>(inner.get());
    return true;
  }
  std::optional<T>& get() { return value; }
  static std::string name() { return Loader<T>::name() + " | None"; }
};

template <class T>
struct Loader<std::vector<T>> {
  std::vector<T> value;
  bool load(PyObject* object, bool convert) {
    if (!PySequence_Check(object) || is_str(object) || is_bytes(object) ||
        is_tensor(object))
      return false;
    const Ref sequence(PySequence_Tuple(object));
    const Py_ssize_t count = PyTuple_Size(sequence.get());
    value.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      Loader<T> element;
      if (!element.load(PyTuple_GetItem(sequence.get(), i), convert)) return false;
      value.push_back(static_cast<T&&>(element.get()));
    }
    return true;
  }
  std::vector<T>& get() { return value; }
  static std::string name() { return "collections.abc.Sequence[" + Loader<T>::name() + "]"; }
};

template <class T>
struct Loader<c10::ArrayRef<T>> : Loader<std::vector<T>> {
  c10::ArrayRef<T> get() { return this->value; }
};

template <>
struct Loader<c10::OptionalIntArrayRef> : Loader<std::optional<std::vector<int64_t>>> {
  c10::OptionalIntArrayRef get() {
    return value ? c10::OptionalIntArrayRef(*value) : c10::OptionalIntArrayRef();
  }
};

template <class... T>
struct Loader<std::tuple<T...>> {
  std::tuple<T...> value;
  bool load(PyObject* object, bool convert) {
    if (!is_tuple(object) && !is_list(object)) return false;
    const Ref sequence(PySequence_Tuple(object));
    if (PyTuple_Size(sequence.get()) != sizeof...(T)) return false;
    return load(sequence.get(), convert, std::index_sequence_for<T...>{});
  }
  std::tuple<T...>& get() { return value; }
  static std::string name() {
    std::string text;
    ((text += (text.empty() ? "tuple[" : ", ") + Loader<T>::name()), ...);
    return text + "]";
  }

 private:
  template <size_t I>
  bool load_one(PyObject* object, bool convert) {
    Loader<std::tuple_element_t<I, std::tuple<T...>>> element;
    if (!element.load(object, convert)) return false;
    std::get<I>(value) = element.get();
    return true;
  }
  template <size_t... I>
  bool load(PyObject* tuple, bool convert, std::index_sequence<I...>) {
    return (load_one<I>(PyTuple_GetItem(tuple, I), convert) && ...);
  }
};

template <class A, class B>
struct Loader<std::pair<A, B>> {
  std::pair<A, B> value;
  bool load(PyObject* object, bool convert) {
    Loader<std::tuple<A, B>> both;
    if (!both.load(object, convert)) return false;
    value = {std::get<0>(both.value), std::get<1>(both.value)};
    return true;
  }
  std::pair<A, B>& get() { return value; }
  static std::string name() { return Loader<std::tuple<A, B>>::name(); }
};

template <class T>
struct Loader<T, std::enable_if_t<std::is_base_of_v<pybind11::object, T>>> {
  T value;
  bool load(PyObject* object, bool) {
    if (std::is_same_v<T, pybind11::list> && !is_list(object)) return false;
    if (std::is_same_v<T, pybind11::dict> && !is_dict(object)) return false;
    if (std::is_same_v<T, pybind11::tuple> && !is_tuple(object)) return false;
    static_cast<pybind11::object&>(value) = pybind11::object(Ref::borrow(object));
    return true;
  }
  T& get() { return value; }
  static std::string name() { return "object"; }
};

template <>
struct Loader<void> {
  static std::string name() { return "None"; }
};

}  // namespace kgtorch

namespace pybind11 {
template <class T>
T cast(const object& value) {
  kgtorch::Loader<T> loader;
  if (!loader.load(value.ptr(), true))
    throw c10::TypeError("Expected " + kgtorch::Loader<T>::name() + ", got " +
                         kgtorch::type_name(value.ptr()));
  return loader.get();
}
template <class T, std::enable_if_t<!std::is_base_of_v<object, T>, int> = 0>
object cast(const T& value) {
  return object(kgtorch::to_python(value));
}
template <class T>
T object::cast() const {
  return pybind11::cast<T>(*this);
}
}  // namespace pybind11
