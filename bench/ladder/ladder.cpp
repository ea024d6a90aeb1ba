// ladder: climbs from the naive product to the shipped kernels; checks and times every rung beside cuBLAS and
// the FFMA limit, in one run. Exits 0 when all is right, 1 when something is wrong, 77 where there is no GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "bench/extents.hpp"
#include "bench/sampling.hpp"
#include "check.hpp"
#include "kernels/registry.hpp"
#include "rungs.hpp"

namespace gemmhoist::ladder {
namespace {

constexpr int kSkipped = 77;  // as Meson has it

struct Options {
  std::vector<std::string> shapes, only;
  std::string csv, fatbin;
  int rounds = 3;
  double round_seconds = 0.03;
  bool once = false, list = false;
};

using bench::Extents;

const std::vector<Extents> kShapes = {{1000, 1300, 700},  {512, 512, 512},    {1024, 1024, 1024},
                                      {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}};

std::string default_fatbin() {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / "ladder.fatbin").string();
}

// FLOP/s of FFMA and nothing else, on every SM.
double measure_ffma_limit(const Catalogue& catalogue) {
  constexpr int kBlocks = 132 * 16, kThreads = 256, kRounds = 4096, kChains = 16, kSteps = 16;
  DeviceArray<float> operands(2);
  fill_random(operands.get(), 2, 5);
  Params params{operands.get(), nullptr, nullptr, 0, 0, kRounds};
  Stopwatch watch;
  std::vector<double> seconds;
  for (int i = 0; i < 7; ++i) {
    watch.start();
    launch(catalogue.kernel("ffma_limit"), dim3(kBlocks), kThreads, 0, &params);
    seconds.push_back(watch.stop_s());
  }
  return 2.0 * kBlocks * kThreads * kRounds * kChains * kSteps / bench::summarise(seconds).median;
}

// One problem on the device, with its product in fp64 beside it.
class Problem {
 public:
  Problem(const Catalogue& catalogue, Extents shape, Product product)
      : catalogue_(catalogue),
        shape_(shape),
        columns_(product == Product::a_b ? shape.n : shape.m),
        a_(elements(shape.m, shape.k)),
        b_(elements(shape.k, shape.n)),
        c_(elements(shape.m, columns_)),
        sum_(elements(shape.m, columns_)),
        magnitude_(elements(shape.m, columns_)),
        wrong_(1) {
    fill_random(a_.get(), elements(shape.m, shape.k), 5);
    fill_random(b_.get(), elements(shape.k, shape.n), 5);
    ReferenceParams reference{a_.get(), b_.get(), sum_.get(), magnitude_.get(), shape.k, 1,
                              shape.n,  1,        shape.m,    columns_,         shape.k};
    if (product == Product::a_a_transposed)
      reference.b = a_.get(), reference.b_step = 1, reference.b_col = shape.k;
    const dim3 grid(static_cast<unsigned>((columns_ - 1) / 16 + 1),
                    static_cast<unsigned>((shape.m - 1) / 16 + 1));
    ladder::launch(catalogue.kernel("reference_fp64"), grid, 256, 0, &reference);
  }

  Params params() const { return {a_.get(), b_.get(), c_.get(), shape_.m, shape_.n, shape_.k}; }

  // Elements that a launch leaves wrong; C is NaN before it.
  unsigned count_wrong(Contestant& contestant) const {
    require(cudaMemset(c_.get(), 0xFF, elements(shape_.m, columns_) * sizeof(float)), "cudaMemset");
    require(cudaMemset(wrong_.get(), 0, sizeof(unsigned)), "cudaMemset");
    contestant.launch();
    CompareParams compare{c_.get(),
                          sum_.get(),
                          magnitude_.get(),
                          wrong_.get(),
                          static_cast<std::int64_t>(elements(shape_.m, columns_)),
                          shape_.k};
    ladder::launch(catalogue_.kernel("count_wrong"), dim3(1024), 256, 0, &compare);
    unsigned wrong = 0;
    require(cudaMemcpy(&wrong, wrong_.get(), sizeof wrong, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return wrong;
  }

 private:
  static std::size_t elements(int rows, int cols) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }

  const Catalogue& catalogue_;
  Extents shape_;
  int columns_;
  DeviceArray<float> a_, b_, c_;
  DeviceArray<double> sum_, magnitude_;
  DeviceArray<unsigned> wrong_;
};

bool wanted(const Options& options, const std::string& name) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), name) != options.only.end();
}

using Field = std::vector<std::unique_ptr<Contestant>>;

Field contestants_of(const Catalogue& catalogue, const Options& options, const Problem& problem,
                     Extents shape, Product product) {
  Field field;
  const bool by_four = shape.n % 4 == 0 && shape.k % 4 == 0;
  for (const Rung& rung : rungs())
    if (rung.product == product && shape.m <= rung.largest && (by_four || !rung.by_four) &&
        wanted(options, rung.symbol))
      field.push_back(catalogue.rung(rung, problem.params()));
  if (product == Product::a_b && shape.n % 4 == 0)
    for (const KernelDescriptor* kernel : Catalogue::shipped())
      if (wanted(options, kernel->name)) field.push_back(catalogue.shipped(*kernel, problem.params()));
  if (wanted(options, "cublas"))
    if (auto cublas = Catalogue::cublas(problem.params(), product)) field.push_back(std::move(cublas));
  return field;
}

// Contestants take turns, so that a clock that drifts meets all alike.
std::vector<std::vector<double>> measure(const Field& field, const Options& options) {
  std::vector<std::vector<double>> seconds(field.size());
  Stopwatch watch;
  for (int round = 0; round < options.rounds; ++round)
    for (std::size_t i = 0; i < field.size(); ++i) {
      field[i]->launch();
      double spent = 0;
      do {
        watch.start();
        field[i]->launch();
        seconds[i].push_back(watch.stop_s());
        spent += seconds[i].back();
      } while (spent < options.round_seconds && seconds[i].size() < 500);
    }
  return seconds;
}

class Table {
 public:
  Table(const Options& options, double ffma_limit) : limit_(ffma_limit) {
    if (options.csv.empty()) return;
    file_ = std::fopen(options.csv.c_str(), "w");
    if (file_ == nullptr) throw std::runtime_error("cannot write " + options.csv);
    fmt::print(file_,
               "rung,m,n,k,median_ms,mad_ms,samples,tflops,of_cublas,of_ffma_limit,registers,local_bytes,"
               "shared_bytes,blocks_per_sm,occupancy,wrong\n");
  }
  ~Table() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void row(const Contestant& of, Extents s, const bench::Summary& time, double flops, double cublas_s,
           unsigned wrong) {
    const double rate = flops / time.median, share = cublas_s / time.median;
    const Resources& r = of.resources;
    fmt::print(
        "{:<32} {:>5} {:>5} {:>5} {:>9.4f} ms {:>6.2f} TFLOP/s {:>6.3f} of cuBLAS {:>6.3f} of FFMA{}\n",
        of.name, s.m, s.n, s.k, time.median * 1e3, rate * 1e-12, share, rate / limit_,
        wrong == 0 ? "" : fmt::format("  WRONG: {} elements", wrong));
    if (file_ != nullptr)
      fmt::print(file_, "{},{},{},{},{:.6f},{:.6f},{},{:.4f},{:.4f},{:.4f},{},{},{},{},{:.4f},{}\n", of.name,
                 s.m, s.n, s.k, time.median * 1e3, time.mad * 1e3, time.count, rate * 1e-12, share,
                 rate / limit_, r.registers, r.local_bytes, r.shared_bytes, r.blocks_per_sm, r.occupancy,
                 wrong);
    std::fflush(stdout);
  }

 private:
  double limit_;
  std::FILE* file_ = nullptr;
};

// Elements that were wrong.
long climb(const Catalogue& catalogue, const Options& options, Extents shape, Product product, Table& table) {
  const Problem problem(catalogue, shape, product);
  const Field field = contestants_of(catalogue, options, problem, shape, product);
  std::vector<unsigned> wrong;
  for (const auto& contestant : field) wrong.push_back(problem.count_wrong(*contestant));
  const std::vector<std::vector<double>> seconds = measure(field, options);
  double cublas_s = 0;
  for (std::size_t i = 0; i < field.size(); ++i)
    if (field[i]->name == "cublas") cublas_s = bench::summarise(seconds[i]).median;
  const double flops =
      2.0 * shape.m * (product == Product::a_b ? shape.n : shape.m) * static_cast<double>(shape.k);
  long all_wrong = 0;
  for (std::size_t i = 0; i < field.size(); ++i) {
    table.row(*field[i], shape, bench::summarise(seconds[i]), flops, cublas_s, wrong[i]);
    all_wrong += wrong[i];
  }
  return all_wrong;
}

// For a profiler: each contestant launched twice, nothing checked or timed.
void launch_only(const Catalogue& catalogue, const Options& options, Extents shape, Product product) {
  const Problem problem(catalogue, shape, product);
  for (const auto& contestant : contestants_of(catalogue, options, problem, shape, product)) {
    contestant->launch();
    contestant->launch();
    require(cudaDeviceSynchronize(), contestant->name.c_str());
  }
}

int run(const Options& options) {
  if (options.list) {
    for (const Rung& rung : rungs()) fmt::print("{}\n", rung.symbol);
    for (const KernelDescriptor& kernel : kernels::all())
      if (kernel.role == KernelRole::gemm && kernel.precision == Precision::fp32)
        fmt::print("{}\n", kernel.name);
    return 0;
  }
  if (const std::string why = why_no_gpu(); !why.empty()) {
    fmt::print("skipped: {}\n", why);
    return kSkipped;
  }
  const Catalogue catalogue(options.fatbin.empty() ? default_fatbin() : options.fatbin);
  const std::vector<Extents> shapes = bench::parse_extents(options.shapes, kShapes);
  if (options.once) {
    for (const Extents shape : shapes)
      for (const Product product : {Product::a_b, Product::a_a_transposed})
        launch_only(catalogue, options, shape, product);
    return 0;
  }
  const double limit = measure_ffma_limit(catalogue);
  fmt::print("FFMA limit: {:.2f} TFLOP/s\n", limit * 1e-12);
  Table table(options, limit);
  long wrong = 0;
  for (const Product product : {Product::a_b, Product::a_a_transposed})
    for (const Extents shape : shapes)
      if (product == Product::a_b || shape.m <= 4096)
        wrong += climb(catalogue, options, shape, product, table);
  return wrong == 0 ? 0 : 1;
}

int main_with_options(int argc, char** argv) {
  Options options;
  CLI::App app("Climbs from the naive product to the shipped kernels, beside cuBLAS.");
  app.add_option("--shape", options.shapes, "MxNxK; may be repeated");
  app.add_option("--only", options.only, "Only the rungs of these names; may be repeated");
  app.add_option("--csv", options.csv, "Write the table to this file");
  app.add_option("--fatbin", options.fatbin, "The kernels; else ladder.fatbin beside this program");
  app.add_option("--rounds", options.rounds, "Turns that each rung gets")->check(CLI::Range(1, 100));
  app.add_option("--round-seconds", options.round_seconds, "Length of a turn")->check(CLI::Range(1e-4, 10.0));
  app.add_flag("--once", options.once, "For a profiler: launch each rung twice, check and time nothing");
  app.add_flag("--list", options.list, "Print the rungs' names and stop");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace
}  // namespace gemmhoist::ladder

int main(int argc, char** argv) {
  try {
    return gemmhoist::ladder::main_with_options(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ladder: %s\n", error.what());
    return 1;
  }
}
