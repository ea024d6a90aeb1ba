#include "device/cuda/driver_table.hpp"

#include <atomic>
#include <mutex>

#include "os/os.hpp"

namespace gemmhoist::device::cuda {
namespace {

// By soname first, so that LD_LIBRARY_PATH, the ld cache and a library that the host has loaded already are
// respected. WSL puts the driver in a folder of its own that not every distribution adds to the ld cache.
constexpr const char* kLibraries[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

struct Loaded {
  DriverTable table;
  Status status{StatusCode::unavailable, "libcuda.so.1"};
};

// Both have trivial destructors: nothing of them is torn down at exit, when a worker may still be about.
constinit std::mutex load_mutex;
constinit Loaded loaded;
constinit std::atomic<bool> tried{false};

void load() noexcept {
  for (const char* name : kLibraries) {
    if (void* library = os::load_library(name)) {
      loaded.status = fill_table(loaded.table, library, os::find_symbol);
      // Never closed, even when a symbol is missing: libcuda starts threads and registers exit handlers.
      return;
    }
  }
}

}  // namespace

Status fill_table(DriverTable& table, void* library, void* (*resolve)(void*, const char*)) noexcept {
  Status status;
  for_each_entry([&](auto member, const char* symbol, bool required) {
    void* address = resolve(library, symbol);
    // POSIX promises that a data pointer from dlsym converts to a function pointer.
    using Pointer = std::remove_reference_t<decltype(table.*member)>;
    table.*member = reinterpret_cast<Pointer>(address);
    if (address == nullptr && required && status.ok()) status = Status(StatusCode::unavailable, symbol);
  });
  return status;
}

const DriverTable* driver(Status& status) noexcept {
  const std::lock_guard lock(load_mutex);
  if (!tried.load(std::memory_order_relaxed)) {
    load();
    tried.store(true, std::memory_order_release);
  }
  status = loaded.status;
  return loaded.status.ok() ? &loaded.table : nullptr;
}

const DriverTable* driver_if_loaded() noexcept {
  return tried.load(std::memory_order_acquire) && loaded.status.ok() ? &loaded.table : nullptr;
}

}  // namespace gemmhoist::device::cuda
