#include <dlfcn.h>

#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {

// A failed lookup leaves a message for the thread's next dlerror(), which would be the host's: it is taken
// away here.
void* load_library(const char* name_or_path) noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;  // dlopen reads files
  void* library = dlopen(name_or_path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) dlerror();
  return library;
}

void* find_symbol(void* library, const char* symbol) noexcept {
  const ErrnoGuard keep_errno;
  void* address = dlsym(library, symbol);
  if (address == nullptr) dlerror();
  return address;
}

}  // namespace gemmhoist::os
