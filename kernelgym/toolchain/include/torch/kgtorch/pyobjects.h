// The few Python object types of pybind11 that candidates touch.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "factories.h"

namespace pybind11 {

using kgtorch::to_python;

using error_already_set = kgtorch::PythonError;
using ssize_t = Py_ssize_t;

// An object reference; owns.
class object : public kgtorch::ObjectBase {
 public:
  object() = default;
  explicit object(kgtorch::Ref ref) : ref_(static_cast<kgtorch::Ref&&>(ref)) {}
  object(const at::Tensor& tensor) : ref_(to_python(tensor)) {}
  PyObject* ptr() const { return ref_.get(); }
  kgtorch::Ref ref() const { return ref_; }
  bool is_none() const { return ptr() == kgtorch::none(); }
  bool is(const object& other) const { return ptr() == other.ptr(); }
  explicit operator bool() const { return static_cast<bool>(ref_); }
  object release() { return static_cast<object&&>(*this); }
  template <class T>
  T cast() const;
  template <class... Args>
  object operator()(const Args&... args) const {
    return object(kgtorch::call(ptr(), args...));
  }
  template <class Key>
  object operator[](const Key& key) const {
    return object(kgtorch::Ref(PyObject_GetItem(ptr(), to_python(key).get())));
  }
  class attribute attr(const char* name) const;

 private:
  kgtorch::Ref ref_;
};
using handle = object;

// What `x.attr("name")` stands for: reads as an object, and can be assigned to.
class attribute : public object {
 public:
  attribute(object owner, const char* name, kgtorch::Ref value)
      : object(static_cast<kgtorch::Ref&&>(value)), owner_(static_cast<object&&>(owner)),
        name_(name) {}
  template <class T>
  attribute& operator=(const T& value) {
    const kgtorch::Ref converted = to_python(value);
    if (PyObject_SetAttrString(owner_.ptr(), name_, converted.get()) < 0)
      throw kgtorch::PythonError();
    return *this;
  }

 private:
  object owner_;
  const char* name_;
};

inline attribute object::attr(const char* name) const {
  PyObject* value = PyObject_GetAttrString(ptr(), name);
  if (!value) PyErr_Clear();
  return {*this, name, value ? kgtorch::Ref(value) : kgtorch::Ref()};
}

class none : public object {
 public:
  none() : object(kgtorch::Ref::borrow(kgtorch::none())) {}
};
class str : public object {
 public:
  str(const std::string& text) : object(to_python(text)) {}
  str(const char* text) : object(to_python(text)) {}
};
class int_ : public object {
 public:
  int_(int64_t value) : object(to_python(value)) {}
};
class float_ : public object {
 public:
  float_(double value) : object(to_python(value)) {}
};
class list : public object {
 public:
  using object::object;
  list() : object(kgtorch::Ref(PyList_New(0))) {}
  template <class T>
  void append(const T& value) {
    const kgtorch::Ref converted = to_python(value);
    if (PyList_Append(ptr(), converted.get()) < 0) throw kgtorch::PythonError();
  }
  size_t size() const { return static_cast<size_t>(PyList_Size(ptr())); }
};
class dict : public object {
 public:
  using object::object;
  dict() : object(kgtorch::Ref(PyDict_New())) {}
  // What `dict["key"]` stands for: reads as an object, and can be assigned to.
  class entry : public object {
   public:
    entry(PyObject* dict, const char* key)
        : object(find(dict, key)), dict_(dict), key_(key) {}
    template <class T>
    entry& operator=(const T& value) {
      const kgtorch::Ref converted = to_python(value);
      if (PyDict_SetItemString(dict_, key_, converted.get()) < 0) throw kgtorch::PythonError();
      return *this;
    }

   private:
    static kgtorch::Ref find(PyObject* dict, const char* key) {
      PyObject* value = PyDict_GetItemString(dict, key);
      return value ? kgtorch::Ref::borrow(value) : kgtorch::Ref();
    }
    PyObject* dict_;
    const char* key_;
  };
  entry operator[](const char* key) { return {ptr(), key}; }
  size_t size() const { return static_cast<size_t>(PyDict_Size(ptr())); }
};
class tuple : public object {
 public:
  using object::object;
  size_t size() const { return static_cast<size_t>(PyTuple_Size(ptr())); }
};
template <class... Args>
tuple make_tuple(const Args&... args) {
  return tuple(to_python(std::tuple<const Args&...>(args...)));
}

// The GIL stays: tensors here are Python objects, which nobody may touch without it.
struct gil_scoped_release {
  gil_scoped_release() {}
  ~gil_scoped_release() {}
};
using gil_scoped_acquire = gil_scoped_release;

class index_error : public c10::IndexError {
  using c10::IndexError::IndexError;
};
class value_error : public c10::ValueError {
  using c10::ValueError::ValueError;
};
class type_error : public c10::TypeError {
  using c10::TypeError::TypeError;
};

}  // namespace pybind11
