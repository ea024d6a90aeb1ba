#include "fallback/opened_libraries.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "fallback/fallback.hpp"

namespace gemmhoist::fallback {
namespace {

// Base addresses; more than a dozen BLAS libraries in one process have not been seen. Beyond that the oldest
// is overwritten.
constexpr unsigned kCapacity = 16;
constinit std::atomic<std::uintptr_t> g_opened[kCapacity]{};
constinit std::atomic<unsigned> g_opened_count{0};

struct Bases {
  std::uintptr_t base[kCapacity] = {};
  unsigned count = 0;
  bool contains(std::uintptr_t wanted) const noexcept {
    return std::find(base, base + count, wanted) != base + count;
  }
};

Bases definers_of_any_spelling() noexcept {
  Bases bases;
  for (int s = 0; s < kSpellings; ++s) {
    LoadedObject object;
    for (int i = 0; (object = object_defining(spelling_name(static_cast<Spelling>(s)), i)); ++i) {
      if (bases.count < kCapacity && !bases.contains(object.base)) bases.base[bases.count++] = object.base;
    }
  }
  return bases;
}

}  // namespace

void* open_library(const char* name) noexcept {
  if (void* loaded = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
  const Bases before = definers_of_any_spelling();
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    (void)dlerror();
    return nullptr;
  }
  const Bases after = definers_of_any_spelling();
  for (unsigned i = 0; i < after.count; ++i) {
    if (before.contains(after.base[i])) continue;
    g_opened[g_opened_count.fetch_add(1) % kCapacity].store(after.base[i]);
  }
  return library;
}

bool opened_by_us(const LoadedObject& object) noexcept {
  return std::any_of(g_opened, g_opened + kCapacity,
                     [&](const auto& base) { return object.base != 0 && base.load() == object.base; });
}

}  // namespace gemmhoist::fallback
