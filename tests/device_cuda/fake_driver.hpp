// The fake driver in a test: loaded once, from beside the test's own binary, before anything asks for
// libcuda.so.1.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "device/cuda/driver_table.hpp"
#include "fake_cuda.hpp"
#include "os/os.hpp"

namespace gemmhoist::test {

class FakeDriver {
 public:
  // The dynamic loader knows a library by its soname: once this is loaded, dlopen("libcuda.so.1") answers it.
  static FakeDriver& load() {
    static FakeDriver* it = new FakeDriver;
    return *it;
  }

  decltype(&fake_cuda_reset) reset;
  decltype(&fake_cuda_set) set;
  decltype(&fake_cuda_fail) fail;
  decltype(&fake_cuda_fail_function) fail_function;
  decltype(&fake_cuda_calls) calls;
  decltype(&fake_cuda_live) live;
  decltype(&fake_cuda_capture_broken) capture_broken;
  device::cuda::DriverTable table;

  void* library() const { return library_; }

  std::vector<std::string> log() const {
    std::string text(1 << 20, '\0');
    text.resize(log_(text.data(), text.size()));
    std::vector<std::string> names;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      names.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return names;
  }

  static std::string path() {
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    std::string folder(self, length > 0 ? static_cast<std::size_t>(length) : 0);
    return folder.substr(0, folder.rfind('/')) + "/libcuda.so.1";
  }

 private:
  FakeDriver() : library_(dlopen(path().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      std::fprintf(stderr, "the fake driver: %s\n", dlerror());
      std::abort();
    }
    take(reset, "fake_cuda_reset");
    take(set, "fake_cuda_set");
    take(fail, "fake_cuda_fail");
    take(fail_function, "fake_cuda_fail_function");
    take(calls, "fake_cuda_calls");
    take(log_, "fake_cuda_log");
    take(live, "fake_cuda_live");
    take(capture_broken, "fake_cuda_capture_broken");
    if (!device::cuda::fill_table(table, library_, os::find_symbol).ok()) std::abort();
  }

  template <typename Pointer>
  void take(Pointer& pointer, const char* name) {
    pointer = reinterpret_cast<Pointer>(dlsym(library_, name));
    if (pointer == nullptr) std::abort();
  }

  void* library_;
  decltype(&fake_cuda_log) log_;
};

}  // namespace gemmhoist::test
