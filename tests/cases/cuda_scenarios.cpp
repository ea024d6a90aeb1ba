// Programs that use CUDA themselves, by the driver's own interface, found at run time.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "cases/exact_product.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

// Types as the driver's interface has them: results and devices are ints, handles pointers, device addresses
// 64 bits.
using Result = int;
using Handle = void*;
using DevicePointer = unsigned long long;

template <class Signature>
Signature* function(void* library, const char* name) {
  auto* found = reinterpret_cast<Signature*>(dlsym(library, name));
  if (found == nullptr) {
    std::printf("no %s\n", name);
    std::exit(3);
  }
  return found;
}

// The host's side of CUDA, its primary context current on this thread, as the CUDA runtime would leave it.
struct HostCuda {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  Handle context = nullptr;

  std::string open() {
    if (library == nullptr) return "no libcuda.so.1";
    if (function<Result(unsigned)>(library, "cuInit")(0) != 0) return "cuInit failed";
    if (function<Result(Handle*, int)>(library, "cuDevicePrimaryCtxRetain")(&context, 0) != 0)
      return "no context";
    return function<Result(Handle)>(library, "cuCtxSetCurrent")(context) == 0 ? "" : "not current";
  }
  Handle current() const {
    Handle now = nullptr;
    (void)function<Result(Handle*)>(library, "cuCtxGetCurrent")(&now);
    return now;
  }
};

// The runtime's last error, where there is a runtime: cudaErrorMemoryAllocation, made on purpose and kept.
class LastError {
 public:
  LastError() {
    for (const char* name : {"libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so"}) {
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW);
    }
    if (library_ == nullptr) return;
    void* memory = nullptr;
    (void)function<int(void**, std::size_t)>(library_, "cudaMalloc")(&memory, std::size_t{1} << 50);
    made_ = peek();
  }
  bool kept() const { return library_ == nullptr || (made_ != 0 && peek() == made_); }

 private:
  int peek() const { return function<int()>(library_, "cudaPeekAtLastError")(); }
  void* library_ = nullptr;
  int made_ = 0;
};

std::string in_a_cuda_program() {
  HostCuda cuda;
  if (auto wrong = cuda.open(); !wrong.empty()) return wrong;
  const LastError last_error;
  Handle stream = nullptr, graph = nullptr;
  if (function<Result(Handle*, unsigned)>(cuda.library, "cuStreamCreate")(&stream, 1) != 0)
    return "no stream";
  constexpr int kGlobalMode = 0;  // every thread's unsafe call would break the capture
  for (int round = 0; round < 3; ++round) {
    if (function<Result(Handle, int)>(cuda.library, "cuStreamBeginCapture_v2")(stream, kGlobalMode) != 0) {
      return "no capture";
    }
    if (auto wrong = big_right(); !wrong.empty()) return wrong;
    if (function<Result(Handle, Handle*)>(cuda.library, "cuStreamEndCapture")(stream, &graph) != 0 ||
        graph == nullptr) {
      return "the capture was broken";
    }
    (void)function<Result(Handle)>(cuda.library, "cuGraphDestroy")(graph);
    if (cuda.current() != cuda.context) return "the current context changed";
    if (!last_error.kept()) return "the last error changed";
  }
  // A thread that never touched CUDA is left without a context.
  std::string wrong;
  std::thread([&] {
    wrong = big_right();
    if (wrong.empty() && cuda.current() != nullptr) wrong = "a thread was given a context";
  }).join();
  if (!wrong.empty()) return wrong;
  // What cudaDeviceReset does to the host's own context is nothing to ours.
  if (function<Result(int)>(cuda.library, "cuDevicePrimaryCtxReset_v2")(0) != 0) return "no reset";
  return big_right();
}

// --- operands in memory that CUDA knows ---

struct PinnedMemory {
  const HostCuda& cuda;
  void* page_locked(std::int64_t count) const {
    void* memory = nullptr;
    (void)function<Result(void**, std::size_t, unsigned)>(cuda.library, "cuMemHostAlloc")(&memory,
                                                                                          bytes(count), 0);
    return memory;
  }
  void* managed(std::int64_t count) const {
    DevicePointer memory = 0;
    (void)function<Result(DevicePointer*, std::size_t, unsigned)>(cuda.library, "cuMemAllocManaged")(
        &memory, bytes(count), 1);
    return reinterpret_cast<void*>(memory);
  }
  Result lock(void* memory, std::size_t size) const {
    return function<Result(void*, std::size_t, unsigned)>(cuda.library, "cuMemHostRegister_v2")(memory, size,
                                                                                                0);
  }
  Result unlock(void* memory) const {
    return function<Result(void*)>(cuda.library, "cuMemHostUnregister")(memory);
  }
  static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }
};

std::string multiply_there(const Extents& extents, const Operands& operands, const char* where) {
  if (operands.a == nullptr || operands.b == nullptr || operands.c == nullptr)
    return std::string("no memory: ") + where;
  for (const float beta : {0.0F, 0.5F}) {
    fill_exact(extents, operands);
    multiply(exact_call(extents, operands, beta));
    if (auto wrong = check_exact(extents, operands, beta); !wrong.empty()) return where + (": " + wrong);
  }
  return {};
}

std::string pinned_operands() {
  HostCuda cuda;
  if (auto wrong = cuda.open(); !wrong.empty()) return wrong;
  const PinnedMemory memory{cuda};
  const Extents extents{big(), big() - 1, big() / 2};
  const auto pinned = [&](std::int64_t count) { return static_cast<float*>(memory.page_locked(count)); };
  const auto managed = [&](std::int64_t count) { return static_cast<float*>(memory.managed(count)); };
  const Operands locked{pinned(extents.a_size()), pinned(extents.b_size()), pinned(extents.c_size())};
  if (auto wrong = multiply_there(extents, locked, "page-locked"); !wrong.empty()) return wrong;
  const Operands unified{managed(extents.a_size()), managed(extents.b_size()), managed(extents.c_size())};
  if (auto wrong = multiply_there(extents, unified, "managed"); !wrong.empty()) return wrong;

  // Pages registered in the middle of a mapping: operands within them, across their end, and around them.
  constexpr std::size_t kPage = 4096;
  const std::size_t region = (PinnedMemory::bytes(extents.a_size()) + kPage) / kPage * kPage;
  auto* base = static_cast<char*>(
      mmap(nullptr, 3 * region, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED || memory.lock(base + region, region) != 0) return "no registration";
  for (const std::size_t offset : {region, region - kPage, region + kPage, std::size_t{64}}) {
    const Operands across{reinterpret_cast<float*>(base + offset), locked.b, unified.c};
    if (auto wrong = multiply_there(extents, across, "registered in part"); !wrong.empty()) return wrong;
  }
  const Result unlocked = memory.unlock(base + region);
  if (unlocked != 0) return "the program's own unregister answers " + std::to_string(unlocked);
  munmap(base, 3 * region);
  return big_right();
}

// --- another process that takes the GPU's memory ---

// The argument is what it leaves, in MiB. Keeps the rest until its standard input ends.
std::string memory_hog() {
  HostCuda cuda;
  if (auto wrong = cuda.open(); !wrong.empty()) return wrong;
  auto* info = function<Result(std::size_t*, std::size_t*)>(cuda.library, "cuMemGetInfo_v2");
  auto* allocate = function<Result(DevicePointer*, std::size_t)>(cuda.library, "cuMemAlloc_v2");
  const std::size_t left = std::strtoull(std::string(scenario_argument()).c_str(), nullptr, 10) << 20;
  for (std::size_t piece = std::size_t{8} << 30; piece >= (std::size_t{2} << 20); piece /= 2) {
    for (;;) {
      std::size_t free_bytes = 0, total = 0;
      DevicePointer memory = 0;
      if (info(&free_bytes, &total) != 0 || free_bytes < left + piece) break;
      if (allocate(&memory, piece) != 0) break;
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return {};
}

class Hog {
 public:
  explicit Hog(const char* left_mib) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      unsetenv("LD_PRELOAD");
      execl("/proc/self/exe", "hog", "--play", "memory hog", left_mib, nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
  bool ready() const {
    char word[6] = {};
    return read(output_, word, sizeof word) == 6 && std::string(word, 5) == "ready";
  }
  void end() {
    close(input_);
    close(output_);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
};

std::string little_memory_left() {
  Hog hog("200");
  if (!hog.ready()) return "the GPU could not be filled";
  std::string wrong;
  for (const Extents& extents : {Extents{9000, 9000, 60}, Extents{600, 500, 400}}) {
    if (wrong.empty()) wrong = exact_product(extents, 0.5F);
  }
  hog.end();
  if (!wrong.empty()) return wrong;
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t before = counter("calls_gpu");
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(30)) {
    if (wrong = exact_product({9000, 9000, 60}); !wrong.empty()) return wrong;
    if (counter("calls_gpu") > before) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return "the GPU was not used again";
}

constexpr Scenario kScenarios[] = {
    {"in a CUDA program", in_a_cuda_program},
    {"pinned operands", pinned_operands},
    {"memory hog", memory_hog},
    {"little memory left", little_memory_left},
};

}  // namespace

std::span<const Scenario> cuda_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
