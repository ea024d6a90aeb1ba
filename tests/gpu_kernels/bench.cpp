#include "bench.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>

#include "core/checked.hpp"
#include "cublas.hpp"
#include "prepared.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

struct Contestant {
  std::string name;
  std::function<void()> launch;
  std::string peer = "cublas NT";  // whose time its own is held against
  std::vector<double> seconds = {};

  double median() {
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    return seconds[seconds.size() / 2];
  }
  double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

// Launches timed singly by events; contestants take turns.
void measure(Gpu& gpu, std::vector<Contestant>& contestants, const BenchOptions& options) {
  void* const begin = gpu.make_event();
  void* const end = gpu.make_event();
  const auto once = [&](const Contestant& contestant) {
    gpu.record(begin);
    contestant.launch();
    gpu.record(end);
    return gpu.seconds_between(begin, end);
  };
  for (int round = 0; round < options.rounds; ++round)
    for (Contestant& contestant : contestants) {
      once(contestant);  // warms caches and clocks up
      double spent = 0;
      do {
        contestant.seconds.push_back(once(contestant));
        spent += contestant.seconds.back();
      } while (spent < options.round_seconds && contestant.seconds.size() < 2000);
    }
}

// U(-1, 1) everywhere, padding too: zeros would run faster than data do.
void fill_random(Buffer& buffer, std::size_t floats) {
  static const std::vector<float> block = [] {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values((1 << 22) + 13);  // its length divides no leading dimension
    for (float& value : values) value = uniform(random);
    return values;
  }();
  for (std::size_t at = 0; at < floats; at += block.size())
    buffer.upload(std::span(block).first(std::min(block.size(), floats - at)), at);
}

std::FILE* open_csv(const std::string& path, bool& fresh) {
  if (path.empty()) return nullptr;
  std::FILE* file = std::fopen(path.c_str(), "a");
  if (file == nullptr) throw std::runtime_error("cannot write " + path);
  std::fseek(file, 0, SEEK_END);
  fresh = std::ftell(file) == 0;
  return file;
}

class Csv {
 public:
  explicit Csv(const std::string& path) : file_(open_csv(path, fresh_)) {
    if (file_ != nullptr && fresh_)
      std::fputs("gpu,kernel,m,n,k,median_ms,least_ms,samples,rate,rate_unit,over_cublas\n", file_);
  }
  ~Csv() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Csv(const Csv&) = delete;
  Csv& operator=(const Csv&) = delete;
  void row(const Gpu& gpu, Contestant& contestant, bench::Extents shape, double rate, const char* unit,
           double over_cublas) {
    if (file_ == nullptr) return;
    std::fprintf(file_, "%s,%s,%d,%d,%d,%.6f,%.6f,%zu,%.4g,%s,%.4f\n", gpu.name().c_str(),
                 contestant.name.c_str(), shape.m, shape.n, shape.k, contestant.median() * 1e3,
                 contestant.least() * 1e3, contestant.seconds.size(), rate, unit, over_cublas);
  }

 private:
  bool fresh_ = false;
  std::FILE* file_;
};

// The BLAS letters of a layout.
std::string letters(Inner a, Inner b) {
  return std::string(a == Inner::rows ? " N" : " T") + (b == Inner::rows ? "T" : "N");
}

// Rows: the product of images alone; the preparing of both operands from K-outer panels (NT); and for each
// layout of the caller's, preparing and product together, beside cuBLAS from the same layout.
void add_prepared(Gpu& gpu, const KernelDescriptor& kernel, const GemmKernelParams& params,
                  std::int32_t real_k, std::vector<std::unique_ptr<PreparedProduct>>& prepared,
                  std::vector<Contestant>& contestants) {
  const PreparedKernels set = companions(kernel);
  const std::string peer = kernel.precision == Precision::tf32 ? "cublas_tf32" : "cublas";
  // The same memory read as if k were inner: other numbers, the same traffic.
  const auto operand = [&](const float* panel, std::int64_t ld, Inner inner) {
    return inner == Inner::rows ? StridedOperand{panel, 1, ld} : StridedOperand{panel, real_k, 1};
  };
  for (const Inner a : {Inner::rows, Inner::k})
    for (const Inner b : {Inner::rows, Inner::k}) {
      prepared.push_back(std::make_unique<PreparedProduct>(
          gpu, set, params, real_k, operand(params.a, params.lda, a), operand(params.b, params.ldb, b)));
      const PreparedProduct* const product = prepared.back().get();
      if (a == Inner::rows && b == Inner::rows) {
        product->prepare();
        contestants.push_back(
            {std::string(kernel.name) + " alone", [product] { product->multiply(); }, peer + letters(a, b)});
        contestants.push_back({std::string(set.prepare->name) + " both", [product] { product->prepare(); },
                               peer + letters(a, b)});
      }
      contestants.push_back({kernel.name + letters(a, b),
                             [product] {
                               product->prepare();
                               product->multiply();
                             },
                             peer + letters(a, b)});
    }
}

void bench_shape(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels, const Cublas& cublas,
                 bench::Extents shape, const BenchOptions& options, Csv& csv) {
  // One pair of panels, padded enough for every tile and depth.
  std::int64_t tile_m = kPanelAlignment, tile_n = kPanelAlignment, tile_k = 1;
  for (const KernelDescriptor* kernel : kernels) {
    tile_m = std::max<std::int64_t>(tile_m, kernel->tile_m);
    tile_n = std::max<std::int64_t>(tile_n, kernel->tile_n);
    tile_k = std::max<std::int64_t>(tile_k, kernel->tile_k);
  }
  const std::int64_t lda = round_up(shape.m, tile_m), ldb = round_up(shape.n, tile_n);
  const std::int64_t ldc = round_up(shape.m, 4), k = round_up(shape.k, tile_k);
  Buffer a(gpu, static_cast<std::size_t>(lda * k)), b(gpu, static_cast<std::size_t>(ldb * k));
  const Buffer c(gpu, static_cast<std::size_t>(ldc * shape.n));
  fill_random(a, static_cast<std::size_t>(lda * k));
  fill_random(b, static_cast<std::size_t>(ldb * k));
  const GemmKernelParams params{a.device(), b.device(), c.device(), lda,  ldb, ldc,
                                shape.m,    shape.n,    0,          1.0f, 0};

  std::vector<Contestant> contestants;
  std::vector<std::unique_ptr<PreparedProduct>> prepared;
  for (const KernelDescriptor* kernel : kernels) {
    GemmKernelParams own = params;
    own.k = static_cast<std::int32_t>(round_up(shape.k, kernel->tile_k));
    if (kernel->role == KernelRole::gemm)
      contestants.push_back({kernel->name, [&gpu, kernel, own] { gpu.launch(*kernel, own); }, "cublas NT"});
    else if (companions(*kernel).prepare != nullptr)
      add_prepared(gpu, *kernel, own, shape.k, prepared, contestants);
  }
  if (cublas.usable()) {
    GemmKernelParams own = params;
    own.k = shape.k;
    for (const CublasMode mode : {CublasMode::fp32, CublasMode::tf32}) {
      const std::string name = mode == CublasMode::fp32 ? "cublas" : "cublas_tf32";
      for (const Inner of_a : {Inner::rows, Inner::k})
        for (const Inner of_b : {Inner::rows, Inner::k}) {
          const std::string peer = name + letters(of_a, of_b);
          const bool wanted = std::any_of(contestants.begin(), contestants.end(),
                                          [&](const Contestant& other) { return other.peer == peer; });
          if (wanted)
            contestants.push_back({peer,
                                   [&cublas, own, mode, of_a, of_b] {
                                     if (!cublas.multiply(own, mode, of_a, of_b))
                                       throw std::runtime_error("cublasGemmEx failed");
                                   },
                                   peer});
        }
    }
  }
  measure(gpu, contestants, options);

  const double flops = 2.0 * shape.m * shape.n * shape.k;
  for (Contestant& contestant : contestants) {
    double peer = 0;
    for (Contestant& other : contestants)
      if (other.name == contestant.peer) peer = other.median();
    const double rate = flops / contestant.median() * 1e-12;
    const double over = peer > 0 ? peer / contestant.median() : 0;
    std::printf("%-44s %6d %6d %6d %10.4f ms %8.2f TFLOP/s %6.3f of %s\n", contestant.name.c_str(), shape.m,
                shape.n, shape.k, contestant.median() * 1e3, rate, over, contestant.peer.c_str());
    csv.row(gpu, contestant, shape, rate, "TFLOP/s", over);
  }
  std::fflush(stdout);
}

}  // namespace

void bench_products(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels,
                    const BenchOptions& options) {
  if (kernels.empty()) return;
  const Cublas cublas;
  if (!cublas.usable()) std::printf("cuBLAS: not on this machine\n");
  Csv csv(options.csv);
  for (const bench::Extents shape : options.shapes) bench_shape(gpu, kernels, cublas, shape, options, csv);
}

void bench_transposes(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels,
                      const BenchOptions& options) {
  Csv csv(options.csv);
  for (const KernelDescriptor* kernel : kernels)
    for (const std::int32_t n : {512, 2048, 8192}) {
      const auto floats = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
      Buffer from(gpu, floats);
      const Buffer to(gpu, floats);
      fill_random(from, floats);
      const TransposeKernelParams params{from.device(), to.device(), n, n, n, n};
      std::vector<Contestant> contestants{{kernel->name, [&] { gpu.launch(*kernel, params); }}};
      measure(gpu, contestants, options);
      const double rate = 8.0 * static_cast<double>(floats) / contestants[0].median() * 1e-9;
      std::printf("%-34s %6d %6d        %10.4f ms %8.1f GB/s\n", kernel->name, n, n,
                  contestants[0].median() * 1e3, rate);
      csv.row(gpu, contestants[0], {n, n, 0}, rate, "GB/s", 0);
    }
}

}  // namespace gemmhoist::gpu_kernels
