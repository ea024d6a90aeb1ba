// case36: throughput of small and lopsided products with the library preloaded, as a share of plain
// OpenBLAS'.
//
// The same worker process runs with and without LD_PRELOAD in turns, since that is what a user compares. It
// binds cblas_sgemm as a program would: the first in the global scope, which is the preloaded library where
// there is one and OpenBLAS otherwise.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sampling.hpp"

extern char** environ;

namespace gemmhoist::bench {
namespace {

using nlohmann::json;
using Cblas = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                   int);
using Stat = int(const char*, std::uint64_t*);

struct Case {
  int m, n, k, threads;
  std::string name() const {
    return fmt::format("{} x {} x {}{}", m, n, k, threads > 1 ? fmt::format(", {} threads", threads) : "");
  }
};

constexpr Case kCases[] = {
    {64, 64, 64, 1},       {128, 128, 128, 1}, {256, 256, 256, 1},   {512, 512, 512, 1},
    {1024, 1024, 1024, 1}, {8192, 8192, 1, 1}, {16384, 1, 16384, 1}, {16, 16, 16, 32},
};

struct Options {
  std::string library, openblas = "libopenblas.so.0", csv;
  int pairs = 9;
  double seconds = 0.3;  // a worker's timed part
  int worker = -1;
};

// --- the worker
// ---------------------------------------------------------------------------------------------

// Three matrices at the same place of a page in every process: what else a process allocates before, a
// preloaded library's link map for instance, moves those of malloc, and a product of 64 cubed is a quarter
// slower where lines of the cache are split.
class Operands {
 public:
  explicit Operands(const Case& c)
      : a_(lines(c.m, c.k)), b_(lines(c.k, c.n)), c_(lines(c.m, c.n)), memory_(allocate(a_ + b_ + c_)) {
    fill(a(), a_, 7);
    fill(b(), b_, 5);
    fill(product(), c_, 1);
  }
  float* a() const { return memory_.get(); }
  float* b() const { return a() + a_; }
  float* product() const { return b() + b_; }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  // Floats of a matrix, to the end of its last line and one line more: matrices of whole pages would alias.
  static std::size_t lines(int rows, int columns) {
    constexpr std::size_t kLine = 16;
    return (static_cast<std::size_t>(rows) * columns + kLine - 1) / kLine * kLine + kLine;
  }
  static std::unique_ptr<float, Free> allocate(std::size_t floats) {
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes = (floats * sizeof(float) + kPage - 1) / kPage * kPage;
    std::unique_ptr<float, Free> memory(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  static void fill(float* matrix, std::size_t count, int modulus) {
    for (std::size_t i = 0; i < count; ++i)
      matrix[i] = static_cast<float>(i % static_cast<std::size_t>(modulus)) - 2.0f;
  }

  std::size_t a_, b_, c_;
  std::unique_ptr<float, Free> memory_;
};

// Calls for `seconds` after a warm-up as long as a third of it; products a second of this thread.
double product_rate(Cblas* sgemm, const Case& c, double seconds, std::barrier<>& together) {
  constexpr int kColumnMajor = 102, kNoTrans = 111;
  const Operands x(c);
  const auto call = [&] {
    sgemm(kColumnMajor, kNoTrans, kNoTrans, c.m, c.n, c.k, 1.0f, x.a(), c.m, x.b(), c.k, 0.0f, x.product(),
          c.m);
  };
  // The clock is read once a batch, so that reading it costs nothing beside a call of a microsecond.
  int batch = 1;
  const auto repeat = [&](double span) {
    const double start = now_s();
    double now = start;
    std::int64_t calls = 0;
    for (; now - start < span; now = now_s()) {
      for (int i = 0; i < batch; ++i) call();
      calls += batch;
    }
    return static_cast<double>(calls) / (now - start);
  };
  batch = std::max(1, static_cast<int>(repeat(seconds / 3) * 1e-3));  // about a millisecond
  together.arrive_and_wait();
  return repeat(seconds);
}

int run_worker(const Options& o) {
  const Case& c = kCases[o.worker];
  if (dlopen(o.openblas.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    fmt::print(stderr, "case36: {}\n", dlerror());
    return 2;
  }
  auto* const sgemm = reinterpret_cast<Cblas*>(dlsym(RTLD_DEFAULT, "cblas_sgemm"));
  auto* const stat = reinterpret_cast<Stat*>(dlsym(RTLD_DEFAULT, "gemmhoist_stat"));
  if (sgemm == nullptr) return 2;
  std::barrier together(c.threads);
  std::atomic<double> rate = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < c.threads; ++i) {
    threads.emplace_back([&] { rate += product_rate(sgemm, c, o.seconds, together); });
  }
  for (auto& thread : threads) thread.join();
  std::uint64_t on_gpu = 0, on_cpu = 0;
  if (stat != nullptr) {
    stat("calls_gpu", &on_gpu);
    stat("calls_cpu", &on_cpu);
  }
  fmt::print(
      "{}\n",
      json{{"rate", rate.load()}, {"served", stat != nullptr}, {"gpu", on_gpu}, {"cpu", on_cpu}}.dump());
  return 0;
}

// --- the driver
// ---------------------------------------------------------------------------------------------

// Runs this program as a worker and reads its one line.
json run_process(const std::vector<std::string>& arguments, const std::string& preload) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const std::string variable = "LD_PRELOAD=" + preload;
  std::vector<char*> environment, argv;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) environment.push_back(*entry);
  }
  if (!preload.empty()) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got; failed == 0 && (got = read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = -1;
  if (failed == 0) waitpid(pid, &status, 0);
  const json answer = json::parse(text, nullptr, false);
  if (status != 0 || !answer.is_object()) throw std::runtime_error("a worker failed");
  return answer;
}

struct Outcome {
  Summary plain, preloaded, ratio;
  std::uint64_t on_gpu = 0;
};

Outcome compare(const Options& o, const std::string& self, int which) {
  const std::vector<std::string> worker = {self,       "--worker",  fmt::format("{}", which),    "--openblas",
                                           o.openblas, "--seconds", fmt::format("{}", o.seconds)};
  std::vector<double> plain, preloaded, ratio;
  Outcome outcome;
  for (int pair = 0; pair < o.pairs; ++pair) {
    double rate[2] = {};  // plain, preloaded
    for (int turn = 0; turn < 2; ++turn) {
      const int side = (turn + pair) % 2;  // who goes first changes from pair to pair
      const json answer = run_process(worker, side == 1 ? o.library : "");
      if (answer.at("served").get<bool>() != (side == 1))
        throw std::runtime_error("the preload did not take");
      rate[side] = answer.at("rate");
      outcome.on_gpu += answer.at("gpu").get<std::uint64_t>();
    }
    plain.push_back(rate[0]);
    preloaded.push_back(rate[1]);
    ratio.push_back(rate[1] / rate[0]);
  }
  outcome.plain = summarise(plain);
  outcome.preloaded = summarise(preloaded);
  outcome.ratio = summarise(ratio);
  return outcome;
}

int run_driver(const Options& o) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  setenv("GEMMHOIST_FALLBACK", o.openblas.c_str(), 0);
  std::ofstream csv;
  if (!o.csv.empty()) csv.open(o.csv);
  csv << "case,pairs,plain_per_s,preloaded_per_s,ratio_median,ratio_mad,calls_gpu\n";
  fmt::print(
      "Throughput with the library preloaded, as a share of plain OpenBLAS' ({} pairs of processes)\n\n"
      "| m x n x k | plain, GFLOP/s | preloaded, GFLOP/s | ratio | MAD | calls on the GPU |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      o.pairs);
  int slow = 0;
  for (int i = 0; i < static_cast<int>(std::size(kCases)); ++i) {
    const Case& c = kCases[i];
    const Outcome x = compare(o, self, i);
    const double gflop = 2e-9 * c.m * c.n * c.k;
    fmt::print("| {} | {:.2f} | {:.2f} | {:.3f} | {:.3f} | {} |\n", c.name(), x.plain.median * gflop,
               x.preloaded.median * gflop, x.ratio.median, x.ratio.mad, x.on_gpu);
    std::fflush(stdout);
    csv << fmt::format("\"{}\",{},{:.6g},{:.6g},{:.4f},{:.4f},{}\n", c.name(), o.pairs, x.plain.median,
                       x.preloaded.median, x.ratio.median, x.ratio.mad, x.on_gpu);
    if (x.ratio.median < 0.95) ++slow;
  }
  fmt::print("\n{} of {} cases under 0.95\n", slow, std::size(kCases));
  if (!o.csv.empty() && !csv.flush()) throw std::runtime_error("cannot write " + o.csv);
  return slow > 0 ? 1 : 0;
}

}  // namespace
}  // namespace gemmhoist::bench

int main(int argc, char** argv) {
  using namespace gemmhoist::bench;
  Options options;
  CLI::App app{
      "Compares small products with and without the library preloaded; status 1 if one is under 0.95"};
  app.add_option("--library", options.library, "libgemmhoist.so")->check(CLI::ExistingFile);
  app.add_option("--openblas", options.openblas, "OpenBLAS: soname or path");
  app.add_option("--pairs", options.pairs, "Pairs of processes a case")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "Timed part of a process");
  app.add_option("--csv", options.csv, "Write the results there too");
  app.add_option("--worker", options.worker, "")
      ->check(CLI::Range(0, static_cast<int>(std::size(kCases)) - 1))
      ->group("");  // for the driver only
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.worker >= 0) return run_worker(options);
    if (options.library.empty()) throw std::runtime_error("--library is needed");
    options.library = std::filesystem::absolute(options.library).string();
    return run_driver(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "case36: {}\n", error.what());
    return 2;
  }
}
