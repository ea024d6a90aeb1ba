// detour: what the library adds to a small product that the CPU serves, over a direct call of the same
// OpenBLAS.
//
// In batches, since a program's calls follow each other: a clock read round each call would hide what the
// library delays of the next one. Batches of both kinds alternate, which of them begins too. The answer is
// the difference of the medians over rounds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "sampling.hpp"
#include "shared_object.hpp"

namespace gemmhoist::bench {
namespace {

using Cblas = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                   int);
using Fortran = void(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                     const int*, const float*, const int*, const float*, float*, const int*, std::size_t,
                     std::size_t);

struct Operands {
  explicit Operands(int size) : n(size), a(count()), b(count()), c(count()) {}
  std::size_t count() const { return static_cast<std::size_t>(n) * static_cast<std::size_t>(n); }
  int n;
  std::vector<float> a, b, c;
};

double nanoseconds() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds a call, of `batch` of them in a row.
template <class Call>
double timed(const Call& call, int batch) {
  const double begin = nanoseconds();
  for (int i = 0; i < batch; ++i) call();
  return (nanoseconds() - begin) / batch;
}

// Medians of `rounds` batches each, direct and served; prints and answers the difference in nanoseconds.
template <class Direct, class Served>
double compare(const char* name, const Direct& direct, const Served& served, int rounds) {
  constexpr double kBatchNs =
      200e3;                 // against which a clock read is nothing, and most batches see no interrupt
  (void)timed(served, 100);  // discovery
  const int batch = std::max(1, static_cast<int>(kBatchNs / timed(direct, 100)));
  std::vector<double> without, with;
  for (int round = -20; round < rounds; ++round) {
    double ns[2];
    for (const int turn : {0, 1}) {
      const int which = (turn + round) & 1;
      ns[which] = which == 0 ? timed(direct, batch) : timed(served, batch);
    }
    if (round < 0) continue;  // caches and branch predictors
    without.push_back(ns[0]);
    with.push_back(ns[1]);
  }
  const double direct_ns = summarise(std::move(without)).median,
               served_ns = summarise(std::move(with)).median;
  fmt::print("{}: {:.1f} ns direct, {:.1f} ns served; added {:.1f} ns (medians of {} batches of {})\n", name,
             direct_ns, served_ns, served_ns - direct_ns, rounds, batch);
  return served_ns - direct_ns;
}

int run(const std::string& library, const std::string& openblas, int size, int rounds, double limit_ns) {
  const SharedObject plain({openblas, "libopenblas.so.0"});
  if (!plain.loaded()) {
    fmt::print("OpenBLAS is not installed here: nothing to compare with\n");
    return 77;
  }
  setenv("GEMMHOIST_FALLBACK", plain.path().c_str(), 1);  // the same one behind ours
  const SharedObject ours({library});
  Cblas *direct_cblas = nullptr, *served_cblas = nullptr;
  Fortran *direct_fortran = nullptr, *served_fortran = nullptr;
  if (!plain.bind(direct_cblas, "cblas_sgemm") || !plain.bind(direct_fortran, "sgemm_") ||
      !ours.bind(served_cblas, "cblas_sgemm") || !ours.bind(served_fortran, "sgemm_")) {
    fmt::print(stderr, "{}: no cblas_sgemm or sgemm_ {}\n", library, ours.error());
    return 2;
  }
  Operands x(size);
  const float one = 1, zero = 0;
  const auto cblas = [&](Cblas* f) {
    return
        [&, f] { f(102, 111, 111, x.n, x.n, x.n, 1, x.a.data(), x.n, x.b.data(), x.n, 0, x.c.data(), x.n); };
  };
  const auto fortran = [&](Fortran* f) {
    return [&, f] {
      f("N", "N", &x.n, &x.n, &x.n, &one, x.a.data(), &x.n, x.b.data(), &x.n, &zero, x.c.data(), &x.n, 1, 1);
    };
  };
  const double worst = std::max(compare("cblas_sgemm", cblas(direct_cblas), cblas(served_cblas), rounds),
                                compare("sgemm_", fortran(direct_fortran), fortran(served_fortran), rounds));
  return worst <= limit_ns ? 0 : 1;
}

}  // namespace
}  // namespace gemmhoist::bench

int main(int argc, char** argv) {
  CLI::App app{"What the library adds to a small product that the CPU serves"};
  std::string library, openblas;
  int size = 8, rounds = 2000;
  double limit_ns = 15;
  app.add_option("--library", library, "libgemmhoist.so")->required();
  app.add_option("--openblas", openblas, "path of OpenBLAS; by soname where none is given");
  app.add_option("--size", size, "rows and columns")->check(CLI::Range(1, 1024));
  app.add_option("--rounds", rounds, "batches of each, 0.2 ms long")->check(CLI::Range(1, 1000000));
  app.add_option("--limit-ns", limit_ns, "exit 1 beyond this many added nanoseconds");
  CLI11_PARSE(app, argc, argv);
  return gemmhoist::bench::run(std::filesystem::absolute(library), openblas, size, rounds, limit_ns);
}
