// bench_kernels: strict fp32 from matrices on the device as a caller has them (column-major, each transpose),
// beside cublasSgemm on the same buffers. Checks every result against fp64. Exits 0 when all is right, 1 when
// something is wrong, 77 where there is no GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "bench/cuda_api.hpp"
#include "bench/extents.hpp"
#include "bench/ladder/check.hpp"
#include "bench/ladder/rungs.hpp"
#include "bench/sampling.hpp"
#include "kernels/stream_k_choice.hpp"

namespace gemmhoist::ladder {
namespace {

constexpr int kSkipped = 77;  // as Meson has it

struct Options {
  std::vector<std::string> shapes;
  std::string csv, fatbin;
  int rounds = 3;
  double round_seconds = 0.02;
  bool all = false;
};

// Those that a BLAS meets, lopsided and odd ones included.
const std::vector<bench::Extents> kShapes = {
    {512, 512, 512},    {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192},
    {8192, 8192, 512},  {512, 512, 65536},  {16384, 128, 4096}, {128, 16384, 4096}, {1024, 1024, 16384},
    {3000, 3000, 3000}, {4097, 4095, 4099}, {50000, 256, 784},  {1500, 1500, 1500},
};

// A caller's matrix: `along` elements of the panel's extent by `k`, one of which is contiguous.
struct Operand {
  const float* data;
  std::int64_t extent;
  bool k_contiguous;
  std::int64_t ld(std::int64_t k) const { return k_contiguous ? k : extent; }
  kernels::OperandLayout layout(std::int64_t k) const { return {k_contiguous, ld(k) % 4 == 0}; }
};

// Partial sums and tickets of a launch that cuts tiles.
struct Scratch {
  Scratch(std::int64_t floats, std::int64_t count)
      : partials(static_cast<std::size_t>(std::max<std::int64_t>(floats, 1))),
        tickets(static_cast<std::size_t>(count + 1)) {
    require(cudaMemset(tickets.get(), 0, static_cast<std::size_t>(count + 1) * sizeof(std::uint32_t)),
            "cudaMemset");
  }
  DeviceArray<float> partials;
  DeviceArray<std::uint32_t> tickets;
};

class StreamKRun final : public Contestant {
 public:
  StreamKRun(const Catalogue& catalogue, const KernelDescriptor& kernel, const GemmKernelParams& gemm,
             int sms)
      : facts_(kernel), handle_(catalogue.kernel(kernel)) {
    name = kernel.name;
    params_.gemm = gemm;
    kernels::deal_out(kernel, sms, params_);
    scratch_ = std::make_unique<Scratch>(kernels::partial_floats(kernel, params_),
                                         kernels::ticket_count(kernel, params_));
    params_.partials = scratch_->partials.get();
    params_.tickets = scratch_->tickets.get();
  }
  void launch() override {
    ladder::launch(handle_, dim3(static_cast<unsigned>(kernels::blocks_of(params_))), facts_.threads,
                   facts_.shared_bytes, &params_);
  }

 private:
  const KernelDescriptor& facts_;
  cudaKernel_t handle_;
  kernels::StreamKParams params_{};
  std::unique_ptr<Scratch> scratch_;
};

struct Sgemm {
  bench::Cublas library{""};
  bench::CublasHandle handle = nullptr;
  Sgemm() {
    if (library.usable()) bench::Cublas::check(library.create(&handle), "cublasCreate");
  }
};

struct Line {
  std::string kernel;
  double seconds, cublas_seconds;
  unsigned wrong;
};

class Case {
 public:
  Case(const Catalogue& catalogue, bench::Extents shape, bool trans_a, bool trans_b, int sms)
      : catalogue_(catalogue),
        shape_(shape),
        trans_a_(trans_a),
        trans_b_(trans_b),
        a_(count(shape.m, shape.k)),
        b_(count(shape.k, shape.n)),
        c_(count(shape.m, shape.n)),
        left_{a_.get(), shape.m, trans_a},
        right_{b_.get(), shape.n, !trans_b} {
    fill_random(a_.get(), count(shape.m, shape.k), 1);
    fill_random(b_.get(), count(shape.k, shape.n), 2);
    gemm_ = {a_.get(), b_.get(), c_.get(), left_.ld(shape.k), right_.ld(shape.k), shape.m, shape.m, shape.n,
             shape.k,  1.0f,     0};
    candidates_ = Catalogue::shipped(KernelRole::gemm_stream_k);
    chosen_ = kernels::choose_stream_k(candidates_, gemm_, left_.layout(shape.k), right_.layout(shape.k),
                                       {sms, 53.3e12});
    if (chosen_ == nullptr) throw std::runtime_error("this build has no kernel for these products");
    sms_ = sms;
  }

  std::vector<Line> run(const Options& options, const Sgemm& sgemm) {
    std::vector<std::unique_ptr<StreamKRun>> runs;
    for (const KernelDescriptor* kernel : candidates_)
      if (kernel == chosen_ ||
          (options.all && kernels::serves(*kernel, left_.layout(shape_.k), right_.layout(shape_.k))))
        runs.push_back(std::make_unique<StreamKRun>(catalogue_, *kernel, gemm_, sms_));
    std::vector<unsigned> wrong = check(runs);
    std::vector<std::vector<double>> seconds(runs.size() + 1);
    Stopwatch watch;
    // Short products are queued several at a time: it is the GPU that is timed, not how fast it is fed.
    constexpr double kSampleSeconds = 2e-4;
    const auto turn = [&](std::vector<double>& samples, const auto& once) {
      once();
      watch.start();
      once();
      const int queued = std::clamp(static_cast<int>(kSampleSeconds / watch.stop_s()), 1, 20);
      double spent = 0;
      do {
        watch.start();
        for (int i = 0; i < queued; ++i) once();
        const double sample = watch.stop_s();
        samples.push_back(sample / queued);
        spent += sample;
      } while (spent < options.round_seconds);
    };
    for (int round = 0; round < options.rounds; ++round) {
      for (std::size_t i = 0; i < runs.size(); ++i) turn(seconds[i], [&] { runs[i]->launch(); });
      if (sgemm.handle != nullptr) turn(seconds.back(), [&] { cublas(sgemm); });
    }
    const double peer = sgemm.handle != nullptr ? bench::summarise(seconds.back()).median : std::nan("");
    std::vector<Line> lines;
    for (std::size_t i = 0; i < runs.size(); ++i)
      lines.push_back({runs[i]->name, bench::summarise(seconds[i]).median, peer, wrong[i]});
    return lines;
  }

  const char* chosen() const { return chosen_->name; }

 private:
  static std::size_t count(int x, int y) { return static_cast<std::size_t>(x) * static_cast<std::size_t>(y); }

  void cublas(const Sgemm& sgemm) const {
    const float one = 1, zero = 0;
    const auto [m, n, k] = shape_;
    bench::Cublas::check(
        sgemm.library.sgemm(sgemm.handle, trans_a_ ? bench::kOpT : bench::kOpN,
                            trans_b_ ? bench::kOpT : bench::kOpN, m, n, k, &one, a_.get(), trans_a_ ? k : m,
                            b_.get(), trans_b_ ? n : k, &zero, c_.get(), m),
        "cublasSgemm");
  }

  // The reference is row-major, so it makes the transpose: op(B)^T op(A)^T.
  std::vector<unsigned> check(const std::vector<std::unique_ptr<StreamKRun>>& runs) {
    const auto [m, n, k] = shape_;
    const std::size_t elements = count(m, n);
    const DeviceArray<double> sum(elements), magnitude(elements);
    const DeviceArray<unsigned> wrong(1);
    ReferenceParams reference{};
    reference.a = b_.get(), reference.b = a_.get();
    reference.sum = sum.get(), reference.magnitude = magnitude.get();
    reference.a_row = trans_b_ ? 1 : k, reference.a_step = trans_b_ ? n : 1;
    reference.b_step = trans_a_ ? 1 : m, reference.b_col = trans_a_ ? k : 1;
    reference.m = n, reference.n = m, reference.k = k;
    ladder::launch(catalogue_.kernel("reference_fp64"),
                   dim3(static_cast<unsigned>((m - 1) / 16 + 1), static_cast<unsigned>((n - 1) / 16 + 1)),
                   256, 0, &reference);
    std::vector<unsigned> counts;
    for (const auto& run : runs) {
      require(cudaMemset(c_.get(), 0xFF, elements * sizeof(float)), "cudaMemset");
      require(cudaMemset(wrong.get(), 0, sizeof(unsigned)), "cudaMemset");
      run->launch();
      CompareParams compare{
          c_.get(), sum.get(), magnitude.get(), wrong.get(), static_cast<std::int64_t>(elements), k};
      ladder::launch(catalogue_.kernel("count_wrong"), dim3(1024), 256, 0, &compare);
      counts.push_back(0);
      require(cudaMemcpy(&counts.back(), wrong.get(), sizeof(unsigned), cudaMemcpyDeviceToHost),
              "cudaMemcpy");
    }
    return counts;
  }

  const Catalogue& catalogue_;
  bench::Extents shape_;
  bool trans_a_, trans_b_;
  DeviceArray<float> a_, b_, c_;
  Operand left_, right_;
  GemmKernelParams gemm_{};
  std::vector<const KernelDescriptor*> candidates_;
  const KernelDescriptor* chosen_ = nullptr;
  int sms_ = 0;
};

struct Totals {
  double log_sum = 0, worst = 1e9;
  int cases = 0;
  std::string worst_case;
  long wrong = 0;
};

void one_case(const Catalogue& catalogue, const Options& options, const Sgemm& sgemm, bench::Extents shape,
              int trans, int sms, std::FILE* csv, Totals& totals) {
  const bool trans_a = (trans & 2) != 0, trans_b = (trans & 1) != 0;
  const std::string letters = std::string(trans_a ? "T" : "N") + (trans_b ? "T" : "N");
  Case product(catalogue, shape, trans_a, trans_b, sms);
  const double flops = 2.0 * shape.m * shape.n * static_cast<double>(shape.k);
  for (const Line& line : product.run(options, sgemm)) {
    const bool chosen = line.kernel == product.chosen();
    const double ratio = line.cublas_seconds / line.seconds;
    totals.wrong += line.wrong;
    fmt::print(
        "{:>5} {:>5} {:>5} {} {:<40}{} {:>9.4f} ms {:>6.2f} TFLOP/s  cuBLAS {:>6.2f}  ratio {:>5.3f}{}\n",
        shape.m, shape.n, shape.k, letters, line.kernel, chosen ? '*' : ' ', line.seconds * 1e3,
        flops / line.seconds * 1e-12, flops / line.cublas_seconds * 1e-12, ratio,
        line.wrong == 0 ? "" : fmt::format("  WRONG: {} elements", line.wrong));
    if (csv != nullptr)
      fmt::print(csv, "{},{},{},{},{},{},{:.6f},{:.4f},{:.6f},{:.4f},{:.4f},{}\n", shape.m, shape.n, shape.k,
                 letters, line.kernel, chosen ? 1 : 0, line.seconds * 1e3, flops / line.seconds * 1e-12,
                 line.cublas_seconds * 1e3, flops / line.cublas_seconds * 1e-12, ratio, line.wrong);
    if (!chosen || std::isnan(ratio)) continue;
    totals.log_sum += std::log(ratio);
    ++totals.cases;
    if (ratio < totals.worst)
      totals.worst = ratio,
      totals.worst_case = fmt::format("{}x{}x{} {}", shape.m, shape.n, shape.k, letters);
  }
  std::fflush(stdout);
}

int run(const Options& options) {
  if (const std::string why = why_no_gpu(); !why.empty()) {
    fmt::print("skipped: {}\n", why);
    return kSkipped;
  }
  const std::filesystem::path here = std::filesystem::canonical("/proc/self/exe").parent_path();
  const std::filesystem::path beside = here / "ladder.fatbin", built = here / "ladder" / "ladder.fatbin";
  const Catalogue catalogue(!options.fatbin.empty()           ? options.fatbin
                            : std::filesystem::exists(beside) ? beside.string()
                                                              : built.string());
  const Sgemm sgemm;
  if (sgemm.handle == nullptr) fmt::print("cuBLAS: not on this machine\n");
  int sms = 0;
  require(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
  std::FILE* csv = nullptr;
  if (!options.csv.empty()) {
    csv = std::fopen(options.csv.c_str(), "w");
    if (csv == nullptr) throw std::runtime_error("cannot write " + options.csv);
    fmt::print(csv, "m,n,k,trans,kernel,chosen,median_ms,tflops,cublas_ms,cublas_tflops,over_cublas,wrong\n");
  }
  Totals totals;
  for (const bench::Extents shape : bench::parse_extents(options.shapes, kShapes))
    for (int trans = 0; trans < 4; ++trans)
      one_case(catalogue, options, sgemm, shape, trans, sms, csv, totals);
  if (csv != nullptr) std::fclose(csv);
  if (totals.cases > 0)
    fmt::print("geometric mean {:.3f} of cuBLAS over {} cases; worst {:.3f}: {}\n",
               std::exp(totals.log_sum / totals.cases), totals.cases, totals.worst, totals.worst_case);
  return totals.wrong == 0 ? 0 : 1;
}

int main_with_options(int argc, char** argv) {
  Options options;
  CLI::App app("Times strict fp32 products of matrices as a caller has them, beside cuBLAS.");
  app.add_option("--shape", options.shapes, "MxNxK; may be repeated");
  app.add_option("--csv", options.csv, "Write the table to this file");
  app.add_option("--fatbin", options.fatbin,
                 "Checking kernels; else ladder.fatbin beside this program, or in ladder/");
  app.add_option("--rounds", options.rounds, "Turns that each contestant gets")->check(CLI::Range(1, 100));
  app.add_option("--round-seconds", options.round_seconds, "Length of a turn")->check(CLI::Range(1e-4, 10.0));
  app.add_flag("--all", options.all, "Time every kernel that serves, not only the one chosen");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace
}  // namespace gemmhoist::ladder

int main(int argc, char** argv) {
  try {
    return gemmhoist::ladder::main_with_options(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_kernels: %s\n", error.what());
    return 1;
  }
}
