// What the loaded extension modules contain, read from their ELF files: segments, and the static
// shared variables with the kernels that declare them.
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "internal.h"

namespace kgemu {
namespace {

std::map<uintptr_t, std::unique_ptr<Module>> modules;  // by base address

struct Symbol {
  std::string name;
  uintptr_t value;
  size_t size;
  unsigned char type;
};

// The full symbol table of a file (.symtab, or .dynsym when it was stripped).
std::vector<Symbol> read_symbols(const std::string& path) {
  std::vector<Symbol> symbols;
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return symbols;
  struct stat status;
  size_t bytes = fstat(file, &status) == 0 ? static_cast<size_t>(status.st_size) : 0;
  void* mapped =
      bytes >= sizeof(Elf64_Ehdr) ? mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (mapped == MAP_FAILED) return symbols;
  const char* image = static_cast<const char*>(mapped);
  auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  size_t table_end = header->e_shoff + size_t{header->e_shnum} * sizeof(Elf64_Shdr);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && table_end <= bytes) {
    auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
    const Elf64_Shdr* table = nullptr;
    for (int i = 0; i < header->e_shnum; ++i) {
      if (sections[i].sh_type == SHT_SYMTAB) table = &sections[i];
      if (sections[i].sh_type == SHT_DYNSYM && !table) table = &sections[i];
    }
    if (table && table->sh_offset + table->sh_size <= bytes && table->sh_link < header->e_shnum) {
      const Elf64_Shdr& names = sections[table->sh_link];
      auto* entries = reinterpret_cast<const Elf64_Sym*>(image + table->sh_offset);
      for (size_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); ++i) {
        unsigned char type = ELF64_ST_TYPE(entries[i].st_info);
        if (entries[i].st_shndx == SHN_UNDEF || (type != STT_TLS && type != STT_FUNC)) continue;
        symbols.push_back({image + names.sh_offset + entries[i].st_name, entries[i].st_value,
                           entries[i].st_size, type});
      }
    }
  }
  munmap(mapped, bytes);
  return symbols;
}

std::string demangle(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  free(text);
  return result;
}

// Position of the last "::" outside of brackets, or npos.
size_t last_scope(const std::string& text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 1;) {
    if (text[i] == ')' || text[i] == '>' || text[i] == '}') ++depth;
    if (text[i] == '(' || text[i] == '<' || text[i] == '{') --depth;
    if (depth == 0 && text[i] == ':' && text[i - 1] == ':') return i - 1;
  }
  return std::string::npos;
}

SharedVariable shared_variable(const Symbol& symbol) {
  SharedVariable variable{symbol.value, symbol.size, demangle(symbol.name), "", ""};
  size_t scope = last_scope(variable.name);
  // Only variables of functions are demangled with a parameter list before the last "::".
  if (symbol.name.compare(0, 3, "_ZZ") == 0 && scope != std::string::npos) {
    variable.function = variable.name.substr(0, scope);
    variable.name = variable.name.substr(scope + 2);
    variable.owner = base_name(variable.function);
  }
  return variable;
}

int add_module(dl_phdr_info* info, size_t, void* data) {
  auto* wanted = static_cast<std::pair<uintptr_t, Module*>*>(data);
  auto module = std::make_unique<Module>();
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD) {
      uintptr_t low = info->dlpi_addr + part.p_vaddr;
      module->segments.push_back({low, part.p_memsz});
      inside |= wanted->first - low < part.p_memsz;
    } else if (part.p_type == PT_TLS) {
      module->tls_bytes = part.p_memsz;
      module->tls_align = part.p_align;
    }
  }
  if (!inside) return 0;
  module->base = info->dlpi_addr;
  module->path = info->dlpi_name;
  if (module->path.empty()) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
    if (length > 0) module->path.assign(path, static_cast<size_t>(length));
  }
  for (const Symbol& symbol : read_symbols(module->path)) {
    if (symbol.type != STT_TLS || symbol.size == 0) continue;
    SharedVariable variable = shared_variable(symbol);
    if (variable.function.compare(0, 7, "kgemu::") != 0) module->shared.push_back(variable);
  }
  std::sort(module->shared.begin(), module->shared.end(),
            [](const SharedVariable& a, const SharedVariable& b) { return a.offset < b.offset; });
  wanted->second = module.get();
  modules[module->base] = std::move(module);
  return 1;
}

struct TlsQuery {
  uintptr_t address, block, loaded;  // `loaded`: an address in the module's own segments
};

int find_tls(dl_phdr_info* info, size_t, void* data) {
  auto* query = static_cast<TlsQuery*>(data);
  auto block = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
  if (!block) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_TLS || query->address - block >= part.p_memsz) continue;
    query->block = block;
    for (int k = info->dlpi_phnum; k-- > 0;) {
      const ElfW(Phdr)& other = info->dlpi_phdr[k];
      if (other.p_type == PT_LOAD) query->loaded = info->dlpi_addr + other.p_vaddr;
    }
    return 1;
  }
  return 0;
}

}  // namespace

size_t Module::static_shared(const std::string& kernel) const {
  std::map<std::string, size_t> totals;  // by instantiation
  for (const SharedVariable& variable : shared) {
    if (variable.owner == kernel) totals[variable.function] += variable.bytes;
  }
  size_t largest = 0;
  for (const auto& total : totals) largest = std::max(largest, total.second);
  return largest;
}

std::string base_name(const std::string& kernel) {
  std::string text = kernel;
  const std::string anonymous = "(anonymous namespace)";
  for (size_t at; (at = text.find(anonymous)) != std::string::npos;) {
    text.replace(at, anonymous.size(), "anonymous");
  }
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>') --depth;
    if (text[i] == '(' && depth == 0) text.resize(i);  // the parameter list
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (!text.empty() && text.back() == '>') {
    size_t i = text.size();
    depth = 0;
    do {
      --i;
      depth += (text[i] == '>') - (text[i] == '<');
    } while (i > 0 && depth > 0);
    text.resize(i);
  }
  size_t scope = text.find_last_of(": ");
  return scope == std::string::npos ? text : text.substr(scope + 1);
}

Module* find_module(const void* address) {
  auto target = reinterpret_cast<uintptr_t>(address);
  for (auto& entry : modules) {
    for (const auto& segment : entry.second->segments) {
      if (target - segment.first < segment.second) return entry.second.get();
    }
  }
  std::pair<uintptr_t, Module*> wanted{target, nullptr};
  dl_iterate_phdr(add_module, &wanted);
  return wanted.second;
}

uintptr_t tls_block(const void* anchor, Module** module) {
  TlsQuery query{reinterpret_cast<uintptr_t>(anchor), 0, 0};
  bool found = dl_iterate_phdr(find_tls, &query);
  *module = found ? find_module(reinterpret_cast<const void*>(query.loaded)) : nullptr;
  return query.block;
}

std::string function_at(const void* address, Module** module) {
  *module = find_module(address);
  if (!*module) return "";
  uintptr_t offset = reinterpret_cast<uintptr_t>(address) - (*module)->base;
  for (const Symbol& symbol : read_symbols((*module)->path)) {
    if (symbol.type != STT_FUNC || offset != symbol.value) continue;
    return base_name(demangle(symbol.name));
  }
  return "";
}

}  // namespace kgemu
