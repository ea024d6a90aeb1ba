// Process life: fork, exec, dlopen and dlclose.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

// What a child process finds wrong: it says so through a pipe. A hang ends it by the alarm.
template <class Work>
std::string in_forked_child(Work&& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const std::string wrong = work();
    (void)!write(ends[1], wrong.data(), wrong.size());
    _exit(wrong.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t got = read(ends[0], said.data(), said.size());
  said.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  close(ends[0]);
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) return "the child ended by signal " + std::to_string(WTERMSIG(status));
  return said.empty() ? said : "in the child: " + said;
}

bool served_by_device() {
  const char* route = std::getenv("GEMMHOIST_ROUTE");
  return route != nullptr && std::strcmp(route, "gpu") == 0;
}

// The child of a process whose GPU is up: on the CPU, counted as its own.
std::string child_goes_to_the_cpu() {
  if (auto wrong = big_right(2); !wrong.empty()) return wrong;
  if (counter("calls_gpu") != 0) return "the child used its parent's GPU";
  if (counter("calls_cpu") != 1) return "the child counted " + std::to_string(counter("calls_cpu"));
  return {};
}

std::string forked_around_big() {
  if (auto wrong = big_right(1); !wrong.empty()) return wrong;
  const char* route_counter = served_by_device() ? "calls_gpu" : "calls_cpu";
  for (int round = 0; round < 3; ++round) {
    if (auto wrong = in_forked_child(child_goes_to_the_cpu); !wrong.empty()) return wrong;
    const std::uint64_t before = counter(route_counter);
    if (auto wrong = big_right(3); !wrong.empty()) return "the parent again: " + wrong;
    if (counter(route_counter) != before + 1) return "the parent lost its route";
  }
  // A child of a child, and a child that only execs.
  return in_forked_child([] { return in_forked_child(child_goes_to_the_cpu); });
}

// A fork while another thread is inside calls: the child has one thread, and locks as they were. The BLAS is
// loaded before; a fork in the middle of a dlopen is another matter.
std::string forked_amid_calls() {
  if (auto wrong = right(test::ProductShape{8, 8, 8}); !wrong.empty()) return wrong;
  std::atomic<bool> stop{false};
  std::string thread_wrong;
  std::thread busy([&] {
    while (!stop && thread_wrong.empty()) thread_wrong = big_right(5);
  });
  std::string wrong;
  for (int round = 0; round < 10 && wrong.empty(); ++round) {
    wrong = in_forked_child([] { return big_right(6); });
  }
  stop = true;
  busy.join();
  return wrong.empty() ? thread_wrong : wrong;
}

// A fork while another thread makes the first call of the process, which loads the CPU BLAS. The argument is
// the delay in microseconds.
std::string forked_amid_the_first_call() {
  (void)served_by();
  const auto delay = std::strtoul(std::string(scenario_argument()).c_str(), nullptr, 10);
  std::string thread_wrong;
  std::atomic<bool> begun{false};
  std::thread busy([&] {
    const test::Product product(test::ProductShape{8, 8, 8});
    begun = true;
    multiply(product.call());
    thread_wrong = product.check();
  });
  while (!begun) std::this_thread::yield();
  usleep(static_cast<useconds_t>(delay));
  const std::string wrong = in_forked_child([] { return right(test::ProductShape{9, 8, 7}); });
  busy.join();
  return wrong.empty() ? thread_wrong : wrong;
}

// A parent that never multiplied: its child is as good as any process.
std::string forked_before_big() {
  const std::string wrong = in_forked_child([]() -> std::string {
    if (auto wrong_in_child = big_right(); !wrong_in_child.empty()) return wrong_in_child;
    if (served_by_device() && counter("calls_gpu") != 1) return "not on the GPU";
    return {};
  });
  return wrong.empty() ? big_right() : wrong;
}

// Becomes another scenario with the GPU up.
std::string exec_after_big() {
  if (auto wrong = big_right(); !wrong.empty()) return wrong;
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return "no path to this program";
  self[length] = '\0';
  execl(self, self, "--play", "all ways", nullptr);
  return "exec failed";
}

// The argument is a library whose constructor multiplies; it says itself whether that was right.
std::string constructor_multiplies() {
  const std::string path(scenario_argument());
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return dlerror();
  const auto* wrong = static_cast<const int*>(dlsym(opened, "wrong_in_constructor"));
  if (wrong == nullptr || *wrong != 0) return "wrong in the constructor";
  if (!served_by_device()) return big_right();
  // The start went on behind the constructor: the GPU serves before long.
  for (int i = 0; i < 300; ++i) {
    if (auto again = big_right(); !again.empty()) return again;
    if (counter("calls_gpu") > 0) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return "the GPU never came up";
}

// Not preloaded: opened, used, closed and opened again, as a plugin host does. The argument is the library.
std::string opened_and_closed() {
  const std::string path(scenario_argument());
  for (int round = 0; round < 3; ++round) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    auto* sgemm = reinterpret_cast<CblasSgemm*>(dlsym(library, "cblas_sgemm"));
    auto* stat = reinterpret_cast<int (*)(const char*, std::uint64_t*)>(dlsym(library, "gemmhoist_stat"));
    if (sgemm == nullptr || stat == nullptr) return "not the library";
    test::ProductShape shape{big(), big(), big()};
    const test::Product product(shape);
    const GemmCall call = product.call();
    const int n = static_cast<int>(big());
    sgemm(102, 111, 111, n, n, n, 1, call.a, n, call.b, n, 0, call.c, n);
    if (auto wrong = product.check(); !wrong.empty()) return wrong;
    std::uint64_t served = 0;
    if (stat(served_by_device() ? "calls_gpu" : "calls_cpu", &served) != 0 || served == 0)
      return "not served";
    if (dlclose(library) != 0) return "dlclose failed";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // our threads run on
  }
  return {};
}

// One product of the argument's extent, and whether anything of CUDA is in this process.
std::string one_product() {
  const std::int64_t n = std::strtol(std::string(scenario_argument()).c_str(), nullptr, 10);
  const std::vector<float> ones(static_cast<std::size_t>(n * n), 1);
  std::vector<float> c(ones.size(), -1);
  multiply({Transpose::no, Transpose::no, n, n, n, 1, ones.data(), n, ones.data(), n, 0, c.data(), n});
  for (const float value : c) {
    if (value != static_cast<float>(n)) return "wrong";
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libcuda") != std::string::npos || line.find("/dev/nvidia") != std::string::npos)
      return line;
  }
  return {};
}

constexpr Scenario kScenarios[] = {
    {"one product", one_product},
    {"forked around big", forked_around_big},
    {"forked amid calls", forked_amid_calls},
    {"forked amid the first call", forked_amid_the_first_call},
    {"forked before big", forked_before_big},
    {"exec after big", exec_after_big},
    {"constructor multiplies", constructor_multiplies},
    {"opened and closed", opened_and_closed},
};

}  // namespace

std::span<const Scenario> process_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
