// bench_e2e: what a caller waits for a product, in our library and in its peers, beside the floor.
//
// All figures of a run belong together: rates, floor and every peer are measured in it, and only within it
// are they to be compared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "report.hpp"

namespace gemmhoist::bench {
namespace {

struct Options {
  std::string sizes, shapes, trans, csv, cudart, cublas;
  std::string order = "column";
  float alpha = 1.0f, beta = 0.0f;
  std::vector<std::string> peers;
  double budget_s = 0;
  bool dry = false;
  PeerOptions peer;
  SessionOptions session;
};

const std::vector<std::string> kPeers = {"gemmhoist", "cublas-kernel", "cublas",
                                         "cublasxt",  "nvblas",        "openblas"};

void declare(CLI::App& app, Options& o) {
  app.add_option("--sizes", o.sizes, "Squares, e.g. 512,1024");
  app.add_option("--shapes", o.shapes,
                 "MxNxK[:TRANS],... or a file of them, or 'real': what programs ask for");
  app.add_option("--trans", o.trans, "Transposes of all shapes")
      ->check(CLI::IsMember({"NN", "NT", "TN", "TT"}));
  app.add_option("--order", o.order, "Order of squares and shapes given by size")
      ->check(CLI::IsMember({"column", "row"}));
  app.add_option("--alpha", o.alpha, "Likewise");
  app.add_option("--beta", o.beta, "Likewise");
  app.add_option("--peers", o.peers, "Who runs; all by default")
      ->delimiter(',')
      ->check(CLI::IsMember(kPeers));
  app.add_option("--tiles", o.peer.tiles, "NVBLAS tile and cuBLASXt block sizes to choose from")
      ->delimiter(',');
  app.add_option("--reps", o.session.reps, "Calls a peer and shape, where time allows")
      ->check(CLI::Range(1, 100000));
  app.add_option("--seconds", o.session.seconds_per_shape, "Time for a shape, shared out among its peers");
  app.add_option("--budget", o.budget_s, "Seconds after which no further shape is begun; 0: no limit");
  app.add_option("--csv", o.csv, "Write results there, and rates beside them");
  app.add_option("--library", o.peer.library, "libgemmhoist.so")->check(CLI::ExistingFile);
  app.add_option("--precision", o.peer.precision, "GEMMHOIST_PRECISION of our library")
      ->check(CLI::IsMember({"fp32", "bf16x6", "tf32"}));
  app.add_option("--openblas", o.peer.openblas, "OpenBLAS, if not by soname");
  app.add_option("--nvblas", o.peer.nvblas, "libnvblas, if not by soname");
  app.add_option("--cudart", o.cudart, "libcudart, if not by soname");
  app.add_option("--cublas", o.cublas, "libcublas, if not by soname");
  app.add_flag("--pinned", o.peer.pinned, "Also call our library from pinned memory");
  app.add_flag("--dry", o.dry, "Tiny sizes and few calls, to see that everything works");
}

std::vector<Shape> chosen_shapes(const Options& o) {
  std::vector<Shape> shapes = parse_sizes(!o.sizes.empty()   ? o.sizes
                                          : o.dry            ? "64,97"
                                          : o.shapes.empty() ? "512,1024,2048,4096,8192"
                                                             : "");
  if (!o.shapes.empty()) {
    for (auto& shape : parse_shapes(o.shapes)) shapes.push_back(shape);
  }
  for (auto& shape : shapes) {
    if (!shape.from.empty()) continue;  // the table's shapes are as programs call them
    if (!o.trans.empty()) shape.trans = o.trans;
    shape.order = o.order == "row" ? Order::row : Order::column;
    shape.alpha = o.alpha;
    shape.beta = o.beta;
  }
  return shapes;
}

// Our library first: ratios are to it. OpenBLAS last: its threads spin on after a call.
std::vector<PeerGroup> chosen_peers(const Options& o, const CudaRuntime& cuda, const Cublas& cublas) {
  const auto wanted = [&](const char* peer) {
    return o.peers.empty() || std::find(o.peers.begin(), o.peers.end(), peer) != o.peers.end();
  };
  std::vector<PeerGroup> groups;
  if (wanted("gemmhoist")) {
    groups = make_ours(o.peer, cuda);
  } else {
    groups.push_back({"gemmhoist", "not asked for", {}});
  }
  if (wanted("cublas-kernel")) groups.push_back(make_cublas_kernel(cuda, cublas));
  if (wanted("cublas")) {
    groups.push_back(make_cublas(cuda, cublas, Memory::pageable));
    groups.push_back(make_cublas(cuda, cublas, Memory::pinned));
  }
  if (wanted("cublasxt")) {
    groups.push_back(make_cublasxt(o.peer, cuda, cublas, Memory::pageable, false));
    groups.push_back(make_cublasxt(o.peer, cuda, cublas, Memory::pageable, true));
    groups.push_back(make_cublasxt(o.peer, cuda, cublas, Memory::pinned, false));
  }
  if (wanted("nvblas")) {
    groups.push_back(make_nvblas(o.peer, cuda, false));
    groups.push_back(make_nvblas(o.peer, cuda, true));
  }
  if (wanted("openblas")) groups.push_back(make_openblas(o.peer));
  return groups;
}

int run(Options& o) {
  const double start = now_s();
  const std::vector<Shape> shapes = chosen_shapes(o);
  if (o.dry) {
    o.session.reps = std::min(o.session.reps, 4);
    o.session.seconds_per_shape = std::min(o.session.seconds_per_shape, 2.0);
  }
  const CudaRuntime cuda(o.cudart);
  const Cublas cublas(o.cublas);
  std::vector<PeerGroup> groups = chosen_peers(o, cuda, cublas);
  const Rates rates = measure_rates(cuda, (o.dry ? 16u : 512u) << 20);
  print_rates(stdout, rates);
  std::vector<ShapeReport> reports;
  for (const auto& shape : shapes) {
    if (o.budget_s > 0 && now_s() - start > o.budget_s) {
      fmt::print("\n{}: left out, the time is up\n", shape.name());
      continue;
    }
    reports.push_back(run_shape(shape, groups, rates, cuda, o.session));
    print_shape(stdout, reports.back());
    if (!o.csv.empty())
      write_csv(o.csv, reports, rates);  // after each shape: a run cut short leaves its results
  }
  print_overview(stdout, reports);
  const int wrong = count_wrong(reports);
  if (wrong > 0) fmt::print("{} WRONG results\n", wrong);
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace gemmhoist::bench

int main(int argc, char** argv) {
  using namespace gemmhoist::bench;
  if (argc == 3 && std::strcmp(argv[1], "nvblas-child") == 0) return run_nvblas_child(argv[2]);
  CLI::App app{"Times matrix products end to end, in gemmhoist and in its peers, beside the floor"};
  Options options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    options.peer.self = std::filesystem::read_symlink("/proc/self/exe").string();
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_e2e: {}\n", error.what());
    return 2;
  }
}
