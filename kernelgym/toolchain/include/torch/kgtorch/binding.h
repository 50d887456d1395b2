// PYBIND11_MODULE and m.def: C++ functions as Python callables (METH_FASTCALL).
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "casters.h"

namespace pybind11 {

// A parameter's name, and with `= value` its default.
struct arg {
  const char* name;
  kgtorch::Ref value;
  explicit arg(const char* text) : name(text) {}
  template <class T>
  arg operator=(const T& default_value) const {
    arg with_default(name);
    with_default.value = kgtorch::to_python(default_value);
    return with_default;
  }
  arg noconvert(bool = true) const { return *this; }
  arg none(bool = true) const { return *this; }
};
namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

enum class return_value_policy { automatic, automatic_reference, take_ownership, copy, move, reference };
template <class...>
struct call_guard {};
struct doc {
  const char* text;
  explicit doc(const char* value) : text(value) {}
};

}  // namespace pybind11

namespace kgtorch {

inline PyObject* not_matched() { return reinterpret_cast<PyObject*>(1); }

// One C++ function behind a Python name.
class Overload {
 public:
  virtual ~Overload() = default;
  // The result, null with a Python error set, or not_matched(). `slots` holds one object a
  // parameter.
  virtual PyObject* call(PyObject* const* slots, bool convert) = 0;

  size_t count = 0;
  std::vector<pybind11::arg> parameters;  // empty, or one each
  const std::string* types = nullptr;  // one each
  std::string result;
  std::string doc;

  void add(const pybind11::arg& parameter) { parameters.push_back(parameter); }
  void add(const char* text) { doc = text; }
  void add(const std::string& text) { doc = text; }
  void add(const pybind11::doc& text) { doc = text.text; }
  void add(pybind11::return_value_policy) {}
  template <class... G>
  void add(pybind11::call_guard<G...>) {}

  KGTORCH_COLD std::string signature() const {
    std::string text = "(";
    for (size_t i = 0; i < count; ++i) {
      if (i) text += ", ";
      text += parameters.empty() ? "arg" + std::to_string(i) : std::string(parameters[i].name);
      text += ": " + types[i];
      if (!parameters.empty() && parameters[i].value) {
        const Ref repr(PyObject_Repr(parameters[i].value.get()));
        text += std::string(" = ") + utf8(repr.get());
      }
    }
    return text + ") -> " + result;
  }

  // Puts arguments into their parameters' slots (borrowed); false if they do not fit.
  bool arrange(PyObject* const* args, size_t given, PyObject* names, PyObject** slots) const {
    if (given > count) return false;
    for (size_t i = 0; i < count; ++i) slots[i] = i < given ? args[i] : nullptr;
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t k = 0; k < named; ++k) {
      size_t i = 0;
      while (i < parameters.size() &&
             PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, k), parameters[i].name) != 0)
        ++i;
      if (i >= parameters.size() || slots[i]) return false;
      slots[i] = args[given + static_cast<size_t>(k)];
    }
    for (size_t i = 0; i < count; ++i) {
      if (!slots[i] && !parameters.empty()) slots[i] = parameters[i].value.get();
      if (!slots[i]) return false;
    }
    return true;
  }
};

template <class F, class R, class... Args>
class TypedOverload final : public Overload {
 public:
  explicit TypedOverload(F function) : function_(static_cast<F&&>(function)) {
    count = sizeof...(Args);
    static const std::string names[] = {Loader<std::decay_t<Args>>::name()..., std::string()};
    types = names;
    result = Loader<std::decay_t<R>>::name();
  }
  PyObject* call(PyObject* const* slots, bool convert) override {
    return call(slots, convert, std::index_sequence_for<Args...>{});
  }

 private:
  template <size_t... I>
  PyObject* call([[maybe_unused]] PyObject* const* slots, [[maybe_unused]] bool convert,
                 std::index_sequence<I...>) {
    [[maybe_unused]] std::tuple<Loader<std::decay_t<Args>>...> loaders;
    if (!(std::get<I>(loaders).load(slots[I], convert) && ...)) return not_matched();
    if constexpr (std::is_void_v<R>) {
      function_(static_cast<Args&&>(std::get<I>(loaders).get())...);
      return Ref::borrow(none()).release();
    } else {
      return to_python(function_(static_cast<Args&&>(std::get<I>(loaders).get())...)).release();
    }
  }
  F function_;
};

template <class F>
struct Callable : Callable<decltype(&F::operator())> {};
template <class R, class... Args>
struct Callable<R (*)(Args...)> {
  template <class F>
  static Overload* make(F function) {
    return new TypedOverload<F, R, Args...>(static_cast<F&&>(function));
  }
};
template <class R, class... Args>
struct Callable<R (*)(Args...) noexcept> : Callable<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct Callable<R (C::*)(Args...)> : Callable<R (*)(Args...)> {};
template <class C, class R, class... Args>
struct Callable<R (C::*)(Args...) const> : Callable<R (*)(Args...)> {};

template <class F, class... Extras>
KGTORCH_COLD Overload* make_overload(F&& function, const Extras&... extras) {
  Overload* overload =
      Callable<std::decay_t<F>>::template make<std::decay_t<F>>(static_cast<F&&>(function));
  (overload->add(extras), ...);
  TORCH_CHECK(overload->parameters.empty() || overload->parameters.size() == overload->count,
              "Expected ", overload->count, " py::arg annotations, got ",
              overload->parameters.size());
  return overload;
}

// Sets the Python error that the exception in flight stands for.
KGTORCH_COLD inline void set_error_from_exception() {
  try {
    throw;
  } catch (const PythonError& error) {
    error.restore();
  } catch (const c10::IndexError& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const c10::ValueError& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const c10::TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const c10::NotImplementedError& error) {
    PyErr_SetString(PyExc_NotImplementedError, error.what());
  } catch (const std::bad_alloc& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "Caught an unknown exception!");
  }
}

// All overloads of one name; lives as long as the process.
class Function {
 public:
  explicit Function(const char* name) : name_(name) {
    method_.name = name_.c_str();
    method_.function = &entry;
  }
  KGTORCH_COLD void add(Overload* overload) {
    overloads_.push_back(overload);
    doc_.clear();
    for (const Overload* each : overloads_)
      doc_ += name_ + each->signature() + "\n\n" + each->doc + "\n";
    method_.doc = doc_.c_str();
  }
  const Overload& first() const { return *overloads_[0]; }
  Ref object() {
    const Ref self(PyCapsule_New(this, kCapsule, nullptr));
    return Ref(PyCFunction_NewEx(method_.get(), self.get(), nullptr));
  }
  // The Function behind a callable that `object` made, or null.
  static Function* behind(PyObject* callable) {
    PyObject* self = PyCFunction_GetSelf(callable);
    PyErr_Clear();  // it is one for callables of other kinds
    if (!self || !PyCapsule_IsValid(self, kCapsule)) return nullptr;
    return static_cast<Function*>(PyCapsule_GetPointer(self, kCapsule));
  }

 private:
  static constexpr const char* kCapsule = "kernelgym.function";
  static constexpr size_t kSlots = 32;
  std::string name_;
  std::string doc_;
  MethodDef method_;
  std::vector<Overload*> overloads_;

  static PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t given, PyObject* names) {
    auto* function = static_cast<Function*>(PyCapsule_GetPointer(self, kCapsule));
    try {
      return function->dispatch(args, static_cast<size_t>(given), names);
    } catch (...) {
      set_error_from_exception();
      return nullptr;
    }
  }

  PyObject* dispatch(PyObject* const* args, size_t given, PyObject* names) {
    // As in pybind11: first without conversions, so that the closest overload wins.
    for (int pass = overloads_.size() > 1 ? 0 : 1; pass < 2; ++pass) {
      for (Overload* overload : overloads_) {
        PyObject* result = try_one(*overload, args, given, names, pass == 1);
        if (result != not_matched()) return result;
      }
    }
    return refuse(args, given, names);
  }

  static PyObject* try_one(Overload& overload, PyObject* const* args, size_t given,
                           PyObject* names, bool convert) {
    if (given == overload.count && !names) return overload.call(args, convert);
    PyObject* stack[kSlots];
    std::vector<PyObject*> heap(overload.count > kSlots ? overload.count : 0);
    PyObject** slots = heap.empty() ? stack : heap.data();
    if (!overload.arrange(args, given, names, slots)) return not_matched();
    return overload.call(slots, convert);
  }

  KGTORCH_COLD PyObject* refuse(PyObject* const* args, size_t given, PyObject* names) const {
    std::string text = name_ + "(): incompatible function arguments. The following argument types "
                               "are supported:\n";
    for (size_t i = 0; i < overloads_.size(); ++i)
      text += "    " + std::to_string(i + 1) + ". " + overloads_[i]->signature() + "\n";
    text += "\nInvoked with types: ";
    const size_t named = names ? static_cast<size_t>(PyTuple_Size(names)) : 0;
    for (size_t i = 0; i < given + named; ++i) {
      if (i) text += ", ";
      if (i >= given)
        text += std::string(utf8(PyTuple_GetItem(names, static_cast<Py_ssize_t>(i - given)))) + "=";
      text += type_name(args[i]);
    }
    PyErr_SetString(PyExc_TypeError, text.c_str());
    return nullptr;
  }
};

template <class F, class... Extras>
Ref make_function(const char* name, F&& function, const Extras&... extras) {
  auto* made = new Function(name);
  made->add(make_overload(static_cast<F&&>(function), extras...));
  return made->object();
}

}  // namespace kgtorch

namespace pybind11 {

class module_ : public object {
 public:
  using object::object;
  // Binds a function; a second one of that name is an overload of the first.
  template <class F, class... Extras>
  KGTORCH_COLD module_& def(const char* name, F&& function, const Extras&... extras) {
    kgtorch::Overload* overload =
        kgtorch::make_overload(static_cast<F&&>(function), extras...);
    const object existing = attr(name);
    kgtorch::Function* known = existing ? kgtorch::Function::behind(existing.ptr()) : nullptr;
    kgtorch::Function* target = known ? known : new kgtorch::Function(name);
    target->add(overload);
    attr(name) = target->object();
    return *this;
  }
  attribute doc() const { return attr("__doc__"); }
  static module_ import(const char* name) {
    return module_(kgtorch::Ref(PyImport_ImportModule(name)));
  }
};
using module = module_;

template <class... T>
class class_ {
  template <class...>
  static constexpr bool unsupported = false;

 public:
  template <class... Args>
  explicit class_(const Args&...) {
    static_assert(unsupported<Args...>,
                  "py::class_ is not supported by kernelgym's torch stand-in: bind functions");
  }
};

}  // namespace pybind11
namespace py = pybind11;

namespace torch {
template <class F>
F&& wrap_pybind_function(F&& function) {
  return static_cast<F&&>(function);
}
}  // namespace torch

#define PYBIND11_MODULE(NAME, VARIABLE) KGTORCH_MODULE(NAME, VARIABLE)
#define KGTORCH_MODULE(NAME, VARIABLE)                                                       \
  static void kgtorch_init_##NAME(::pybind11::module_&);                                     \
  extern "C" __attribute__((visibility("default"))) PyObject* PyInit_##NAME() {              \
    static ::kgtorch::ModuleDef definition(#NAME);                                           \
    PyObject* created = definition.create();                                                 \
    if (!created) return nullptr;                                                            \
    try {                                                                                    \
      ::pybind11::module_ bound(::kgtorch::Ref::borrow(created));                            \
      kgtorch_init_##NAME(bound);                                                            \
      return created;                                                                        \
    } catch (...) {                                                                          \
      ::kgtorch::set_error_from_exception();                                                 \
      Py_DecRef(created);                                                                    \
      return nullptr;                                                                        \
    }                                                                                        \
  }                                                                                          \
  static void kgtorch_init_##NAME(::pybind11::module_& VARIABLE)
