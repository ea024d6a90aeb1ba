// Loaded objects: what the process has mapped, and which of it defines a symbol. Reads the symbol tables that
// the loader keeps in memory: no dlopen per object (a NumPy process has hundreds), no heap, no lock of ours.
#pragma once

#include <cstdint>

namespace gemmhoist::fallback {

struct LoadedObject {
  const char* path = nullptr;  // "" for the program; valid while the object is loaded
  std::uintptr_t base = 0;
  const void* dynamic = nullptr;  // its ElfW(Dyn) table
  explicit operator bool() const noexcept { return dynamic != nullptr; }
};

// True when the object itself defines `symbol` in its dynamic symbol table.
bool defines(const LoadedObject& object, const char* symbol) noexcept;

// The object whose segments hold `address`; empty when none does.
LoadedObject object_of(const void* address) noexcept;

// The index-th object, in load order, that defines `symbol` and is not ours; empty past the last.
LoadedObject object_defining(const char* symbol, int index) noexcept;

// True for this library and for any other copy of it in the process, whatever its path.
bool is_ours(const LoadedObject& object) noexcept;

// A handle that keeps the object loaded; null when it has gone meanwhile.
void* hold(const LoadedObject& object) noexcept;

}  // namespace gemmhoist::fallback
