#include "fallback/loaded_objects.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>

namespace gemmhoist::fallback {
namespace {

// Exported by every copy of the library and by nothing else.
constexpr const char* kMarkerSymbol = "gemmhoist_version";

struct SymbolTables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const ElfW(Word) * sysv_hash = nullptr;
};

// glibc relocates the d_ptr of loaded objects in place, other loaders (and the vDSO) leave offsets.
template <typename T>
const T* table_at(const LoadedObject& object, ElfW(Addr) value) noexcept {
  return reinterpret_cast<const T*>(value < object.base ? value + object.base : value);
}

SymbolTables tables_of(const LoadedObject& object) noexcept {
  SymbolTables tables;
  for (auto entry = static_cast<const ElfW(Dyn)*>(object.dynamic); entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = table_at<ElfW(Sym)>(object, value);
        break;
      case DT_STRTAB:
        tables.strings = table_at<char>(object, value);
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = table_at<std::uint32_t>(object, value);
        break;
      case DT_HASH:
        tables.sysv_hash = table_at<ElfW(Word)>(object, value);
        break;
      default:
        break;
    }
  }
  return tables;
}

bool is_definition(const SymbolTables& tables, std::size_t index, const char* symbol) noexcept {
  const ElfW(Sym)& entry = tables.symbols[index];
  return entry.st_shndx != SHN_UNDEF && std::strcmp(tables.strings + entry.st_name, symbol) == 0;
}

// The layout of DT_GNU_HASH: four words, a Bloom filter of address-sized words, buckets, then a chain of
// hashes beside the symbols from `first` on, the last of a bucket marked by its lowest bit.
bool find_by_gnu_hash(const SymbolTables& tables, const char* symbol) noexcept {
  std::uint32_t hash = 5381;
  for (auto p = reinterpret_cast<const unsigned char*>(symbol); *p != 0; ++p) hash = hash * 33 + *p;
  const std::uint32_t bucket_count = tables.gnu_hash[0];
  const std::uint32_t first = tables.gnu_hash[1];
  const std::uint32_t bloom_words = tables.gnu_hash[2];
  if (bucket_count == 0) return false;
  const std::uint32_t* buckets = tables.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chain = buckets + bucket_count;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first) return false;
  for (;; ++index) {
    const std::uint32_t candidate = chain[index - first];
    if ((candidate | 1) == (hash | 1) && is_definition(tables, index, symbol)) return true;
    if (candidate & 1) return false;
  }
}

bool find_by_sysv_hash(const SymbolTables& tables, const char* symbol) noexcept {
  std::uint32_t hash = 0;
  for (auto p = reinterpret_cast<const unsigned char*>(symbol); *p != 0; ++p) {
    hash = (hash << 4) + *p;
    const std::uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  const ElfW(Word)* buckets = tables.sysv_hash + 2;
  const ElfW(Word)* chain = buckets + tables.sysv_hash[0];
  if (tables.sysv_hash[0] == 0) return false;
  for (ElfW(Word) index = buckets[hash % tables.sysv_hash[0]]; index != STN_UNDEF; index = chain[index]) {
    if (is_definition(tables, index, symbol)) return true;
  }
  return false;
}

LoadedObject object_from(const dl_phdr_info& info) noexcept {
  LoadedObject object;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      object.path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
      object.base = info.dlpi_addr;
      object.dynamic = reinterpret_cast<const void*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  return object;
}

bool holds(const dl_phdr_info& info, std::uintptr_t address) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const std::uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) return true;
  }
  return false;
}

struct AddressQuery {
  std::uintptr_t address;
  LoadedObject found;
};

int visit_for_address(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto& query = *static_cast<AddressQuery*>(data);
  if (!holds(*info, query.address)) return 0;
  query.found = object_from(*info);
  return 1;
}

struct SymbolQuery {
  const char* symbol;
  int skip;
  std::uintptr_t our_base;
  LoadedObject found;
};

int visit_for_symbol(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto& query = *static_cast<SymbolQuery*>(data);
  const LoadedObject object = object_from(*info);
  if (!object || object.base == query.our_base || !defines(object, query.symbol)) return 0;
  if (defines(object, kMarkerSymbol) || query.skip-- > 0) return 0;
  query.found = object;
  return 1;
}

std::uintptr_t our_base() noexcept {
  return object_of(reinterpret_cast<const void*>(&object_defining)).base;
}

}  // namespace

bool defines(const LoadedObject& object, const char* symbol) noexcept {
  if (!object) return false;
  const SymbolTables tables = tables_of(object);
  if (tables.symbols == nullptr || tables.strings == nullptr) return false;
  if (tables.gnu_hash != nullptr) return find_by_gnu_hash(tables, symbol);
  return tables.sysv_hash != nullptr && find_by_sysv_hash(tables, symbol);
}

LoadedObject object_of(const void* address) noexcept {
  AddressQuery query{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(visit_for_address, &query);
  return query.found;
}

LoadedObject object_defining(const char* symbol, int index) noexcept {
  SymbolQuery query{symbol, index, our_base(), {}};
  dl_iterate_phdr(visit_for_symbol, &query);
  return query.found;
}

bool is_ours(const LoadedObject& object) noexcept {
  return object && (object.base == our_base() || defines(object, kMarkerSymbol));
}

void* hold(const LoadedObject& object) noexcept {
  if (!object) return nullptr;
  return dlopen(object.path[0] == '\0' ? nullptr : object.path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
}

}  // namespace gemmhoist::fallback
