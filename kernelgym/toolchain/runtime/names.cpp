// Names of kernels that are launched through a pointer.
#include <map>
#include <string>

#include "../include/cuda/kgemu/qualifiers.h"
#include "internal.h"

const char* kgemu_function_name(const void* function) {
  static std::map<const void*, std::string> names;  // what is handed out stays valid
  std::string& name = names[function];
  kgemu::Module* module = nullptr;
  if (name.empty()) name = kgemu::function_at(function, &module);
  return name.c_str();
}
