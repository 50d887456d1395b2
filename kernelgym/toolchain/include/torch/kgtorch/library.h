// TORCH_LIBRARY: operators registered through torch.library, called from Python as
// torch.ops.<namespace>.<name>.
#pragma once
#ifdef KGTORCH_KIT  // inline functions are compiled once, in an object of their own
#pragma interface
#endif
#include "binding.h"

namespace torch {

enum class DispatchKey { CPU, CUDA, CompositeImplicitAutograd, CompositeExplicitAutograd, Autograd, Meta };

template <class F>
struct CppFunction {
  DispatchKey key;
  F function;
};
template <class F>
CppFunction<std::decay_t<F>> dispatch(c10::DeviceType type, F&& function) {
  return {type == c10::kCUDA ? DispatchKey::CUDA : DispatchKey::CPU, static_cast<F&&>(function)};
}
template <class F>
CppFunction<std::decay_t<F>> dispatch(DispatchKey key, F&& function) {
  return {key, static_cast<F&&>(function)};
}

class Library {
 public:
  // `kind` is "DEF", "FRAGMENT" or "IMPL"; the library is kept for the life of the process.
  Library(const char* kind, const char* space, const char* key) : key_(key) {
    const kgtorch::Ref module(PyImport_ImportModule("torch.library"));
    library_ = kgtorch::call_method(module.get(), "Library", space, kind);
    Py_IncRef(library_.get());
  }

  // Declares an operator by its schema.
  Library& def(const char* schema) {
    kgtorch::call_method(library_.get(), "define", schema);
    return *this;
  }
  // Declares and implements it; without "(", the schema is read off the function.
  template <class F>
  Library& def(const char* schema, F&& function) {
    std::string text = schema;
    const kgtorch::Ref callable = kgtorch::make_function(schema, function);
    if (text.find('(') == std::string::npos)
      text += schema_of(kgtorch::Function::behind(callable.get())->first());
    def(text.c_str());
    implement(text.substr(0, text.find('(')), callable, "CompositeExplicitAutograd");
    return *this;
  }
  template <class F>
  Library& def(const char* schema, CppFunction<F> function) {
    std::string text = schema;
    const kgtorch::Ref callable = kgtorch::make_function(schema, function.function);
    if (text.find('(') == std::string::npos)
      text += schema_of(kgtorch::Function::behind(callable.get())->first());
    def(text.c_str());
    implement(text.substr(0, text.find('(')), callable, name(function.key));
    return *this;
  }
  template <class F>
  Library& impl(const char* operation, F&& function) {
    implement(operation, kgtorch::make_function(operation, function), key_);
    return *this;
  }
  template <class F>
  Library& impl(const char* operation, c10::DeviceType type, F&& function) {
    return impl(operation, dispatch(type, static_cast<F&&>(function)));
  }
  template <class F>
  Library& impl(const char* operation, DispatchKey key, F&& function) {
    return impl(operation, dispatch(key, static_cast<F&&>(function)));
  }
  template <class F>
  Library& impl(const char* operation, CppFunction<F> function) {
    implement(operation, kgtorch::make_function(operation, function.function), name(function.key));
    return *this;
  }
  void set_python_module(const char*) {}

 private:
  static const char* name(DispatchKey key) {
    const char* const names[] = {"CPU", "CUDA", "CompositeImplicitAutograd",
                                 "CompositeExplicitAutograd", "Autograd", "Meta"};
    return names[static_cast<int>(key)];
  }
  void implement(const std::string& operation, const kgtorch::Ref& callable, const char* key) {
#ifdef KGEMU
    if (std::string(key) == "CUDA") key = "CPU";  // a GPU tensor is one in host memory
#endif
    kgtorch::call_method(library_.get(), "impl", operation, callable, key);
  }
  // "(Tensor arg0, float arg1) -> Tensor" from the Python names of the types.
  static std::string schema_of(const kgtorch::Overload& overload) {
    std::string text = "(";
    for (size_t i = 0; i < overload.count; ++i)
      text += (i ? ", " : "") + translate(overload.types[i]) + " arg" + std::to_string(i);
    return text + ") -> " + (overload.result == "None" ? "()" : translate(overload.result));
  }
  static std::string translate(const std::string& type) {
    const std::string sequence = "collections.abc.Sequence[";
    const std::string optional = " | None";
    if (type == "torch.Tensor") return "Tensor";
    if (type == "number") return "Scalar";
    if (type.size() > optional.size() &&
        type.compare(type.size() - optional.size(), optional.size(), optional) == 0)
      return translate(type.substr(0, type.size() - optional.size())) + "?";
    if (type.compare(0, sequence.size(), sequence) == 0)
      return translate(type.substr(sequence.size(), type.size() - sequence.size() - 1)) + "[]";
    if (type.compare(0, 6, "tuple[") == 0) {
      std::string text = type.substr(6, type.size() - 7);
      for (size_t at = 0; (at = text.find("torch.Tensor", at)) != std::string::npos;)
        text.replace(at, 12, "Tensor");
      return "(" + text + ")";
    }
    return type;
  }

  const char* key_;
  kgtorch::Ref library_;
};

// Runs a registration when the library is loaded; takes the GIL, which ctypes has released.
class LibraryInitialiser {
 public:
  LibraryInitialiser(const char* kind, const char* space, const char* key, void (*body)(Library&)) {
    const int state = kgtorch::kgtorch_gil_ensure();
    try {
      Library library(kind, space, key);
      body(library);
    } catch (const std::exception& error) {
      PySys_FormatStderr("torch.library registration of %s failed: %s\n", space, error.what());
    }
    kgtorch::kgtorch_gil_release(state);
  }
};

}  // namespace torch

#define KGTORCH_LIBRARY(KIND, SPACE, KEY, VARIABLE, ID)                                  \
  static void C10_CONCATENATE(kgtorch_library_, ID)(::torch::Library&);                  \
  static const ::torch::LibraryInitialiser C10_CONCATENATE(kgtorch_register_, ID)(       \
      KIND, #SPACE, KEY, &C10_CONCATENATE(kgtorch_library_, ID));                        \
  static void C10_CONCATENATE(kgtorch_library_, ID)(::torch::Library & VARIABLE)
#define KGTORCH_LIBRARY_EXPANDED(KIND, SPACE, KEY, VARIABLE, ID) \
  KGTORCH_LIBRARY(KIND, SPACE, KEY, VARIABLE, ID)
#define TORCH_LIBRARY(SPACE, VARIABLE) \
  KGTORCH_LIBRARY_EXPANDED("DEF", SPACE, "CompositeExplicitAutograd", VARIABLE, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(SPACE, VARIABLE) \
  KGTORCH_LIBRARY_EXPANDED("FRAGMENT", SPACE, "CompositeExplicitAutograd", VARIABLE, __COUNTER__)
#define TORCH_LIBRARY_IMPL(SPACE, DISPATCH, VARIABLE) \
  KGTORCH_LIBRARY_EXPANDED("IMPL", SPACE, #DISPATCH, VARIABLE, __COUNTER__)
#define TORCH_FN(FUNCTION) (&FUNCTION)
