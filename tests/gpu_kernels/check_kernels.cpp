// check_kernels: runs every kernel of the registry on the GPU against plain references, and times them beside
// cuBLAS. Exits 0 when all is right, 1 when something is wrong, 77 where there is no GPU to ask.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "accuracy.hpp"
#include "bench.hpp"
#include "bench/extents.hpp"
#include "check_gemm.hpp"
#include "driver.hpp"
#include "kernels/registry.hpp"
#include "products.hpp"
#include "report.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

constexpr int kSkipped = 77;  // as Meson has it

struct Options {
  int device = 0;
  int arch = 0;
  std::vector<std::string> only;
  bool list = false, no_check = false, bench = false, accuracy = false;
  std::vector<std::string> shapes;
  BenchOptions timing;
};

bool wanted(const Options& options, const KernelDescriptor& kernel) {
  if (options.arch != 0 && kernel.min_arch > options.arch) return false;
  if (options.only.empty()) return true;
  for (const std::string& part : options.only)
    if (std::string(kernel.name).find(part) != std::string::npos) return true;
  return false;
}

const std::vector<bench::Extents> kSquares = {
    {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}};

void check(Gpu& gpu, const std::vector<const KernelDescriptor*>& chosen, Report& report) {
  const KernelDescriptor* reference = nullptr;
  for (const KernelDescriptor& kernel : kernels::all())
    if (kernel.role == KernelRole::gemm_reference) reference = &kernel;
  for (const KernelDescriptor* kernel : chosen) {
    const long checks = report.checks(), failed = report.failed();
    if (kernel->role == KernelRole::transpose) {
      check_transposes(gpu, *kernel, report);
    } else if (kernel->role == KernelRole::prepare) {
      check_prepare(gpu, *kernel, report);
    } else if (kernel->role == KernelRole::gemm_leftover) {
      continue;  // checked with the product that leaves something over
    } else if (kernel->role == KernelRole::gemm_prepared) {
      if (reference != nullptr) check_prepared_products(gpu, *kernel, *reference, report);
    } else {
      check_small_products(gpu, *kernel, report);
      if (reference != nullptr && kernel != reference) check_large_products(gpu, *kernel, *reference, report);
    }
    std::printf("%-34s %5ld checks, %ld failed\n", kernel->name, report.checks() - checks,
                report.failed() - failed);
    std::fflush(stdout);
  }
}

int run(const Options& options) {
  std::string why_not;
  Gpu* gpu = Gpu::open(options.device, why_not);
  if (gpu == nullptr) {
    std::printf("skipped: %s\n", why_not.c_str());
    return kSkipped;
  }
  std::printf("%s, sm_%d, image %s\n", gpu->name().c_str(), gpu->arch(), gpu->image().group);
  std::vector<const KernelDescriptor*> chosen, products, transposes;
  for (const KernelDescriptor& kernel : kernels::all()) {
    if (!wanted(options, kernel)) continue;
    std::string reason;
    if (!gpu->can_run(kernel, reason)) {
      std::printf("%-34s left out: %s\n", kernel.name, reason.c_str());
      continue;
    }
    chosen.push_back(&kernel);
    if (kernel.role == KernelRole::gemm || kernel.role == KernelRole::gemm_prepared)
      products.push_back(&kernel);
    if (kernel.role == KernelRole::transpose) transposes.push_back(&kernel);
  }
  Report report;
  if (!options.no_check) check(*gpu, chosen, report);
  if (options.bench) {
    bench_products(*gpu, products, options.timing);
    bench_transposes(*gpu, transposes, options.timing);
  }
  if (options.accuracy) print_accuracy(*gpu, products, options.timing.shapes);
  if (options.no_check) return 0;
  std::printf("%ld checks, %ld failed\n", report.checks(), report.failed());
  return report.failed() == 0 && report.checks() > 0 ? 0 : 1;
}

int main_with_options(int argc, char** argv) {
  Options options;
  CLI::App app("Checks and times the GPU kernels of this build.");
  app.add_option("--device", options.device, "Ordinal of the GPU");
  app.add_option("--only", options.only, "Only kernels whose name contains this; may be repeated");
  app.add_option("--arch", options.arch,
                 "Only kernels that a GPU of this architecture could run, as 75 or 80");
  app.add_flag("--list", options.list, "Print the kernels' names and stop");
  app.add_flag("--few", few_shapes, "Check at a few small sizes only, as under compute-sanitizer");
  app.add_flag("--no-check", options.no_check, "Do not check");
  app.add_flag("--bench", options.bench, "Time the kernels, and cuBLAS where there is one");
  app.add_flag("--accuracy", options.accuracy,
               "Print errors beside cuBLAS', of each shape and family of data");
  app.add_option("--shape", options.shapes,
                 "With --bench or --accuracy: MxNxK; may be repeated; else squares of 512 to 8192");
  app.add_option("--rounds", options.timing.rounds, "With --bench: turns that each contestant gets")
      ->check(CLI::Range(1, 1000));
  app.add_option("--csv", options.timing.csv, "With --bench: append results to this file");
  CLI11_PARSE(app, argc, argv);
  options.timing.shapes = bench::parse_extents(options.shapes, kSquares);
  if (options.list) {
    for (const KernelDescriptor& kernel : kernels::all()) std::printf("%s\n", kernel.name);
    return 0;
  }
  return run(options);
}

}  // namespace
}  // namespace gemmhoist::gpu_kernels

int main(int argc, char** argv) {
  try {
    return gemmhoist::gpu_kernels::main_with_options(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "check_kernels: %s\n", error.what());
    return 1;
  }
}
