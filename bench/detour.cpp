// detour: what the library adds to a small product that the CPU serves, over a direct call of the same
// OpenBLAS.
//
// Pairs are interleaved and alternate in order, each call timed by itself; the clock's own cost falls on both
// sides of a pair alike. The answer is the difference of the medians.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
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

template <class Call>
double timed(const Call& call) {
  const double begin = nanoseconds();
  call();
  return nanoseconds() - begin;
}

// Medians of `pairs` calls each, direct and served; prints and answers the difference in nanoseconds.
template <class Direct, class Served>
double compare(const char* name, const Direct& direct, const Served& served, int pairs) {
  std::vector<double> without, with;
  without.reserve(static_cast<std::size_t>(pairs));
  with.reserve(static_cast<std::size_t>(pairs));
  for (int pair = -1000; pair < pairs; ++pair) {
    double ns[2];
    if (pair & 1) {
      ns[1] = timed(served);
      ns[0] = timed(direct);
    } else {
      ns[0] = timed(direct);
      ns[1] = timed(served);
    }
    if (pair < 0) continue;  // caches, branch predictors and discovery
    without.push_back(ns[0]);
    with.push_back(ns[1]);
  }
  const double direct_ns = summarise(std::move(without)).median,
               served_ns = summarise(std::move(with)).median;
  fmt::print("{}: {:.1f} ns direct, {:.1f} ns served; added {:.1f} ns (medians of {} pairs)\n", name,
             direct_ns, served_ns, served_ns - direct_ns, pairs);
  return served_ns - direct_ns;
}

int run(const std::string& library, const std::string& openblas, int size, int pairs, double limit_ns) {
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
  const double worst = std::max(compare("cblas_sgemm", cblas(direct_cblas), cblas(served_cblas), pairs),
                                compare("sgemm_", fortran(direct_fortran), fortran(served_fortran), pairs));
  return worst <= limit_ns ? 0 : 1;
}

}  // namespace
}  // namespace gemmhoist::bench

int main(int argc, char** argv) {
  CLI::App app{"What the library adds to a small product that the CPU serves"};
  std::string library, openblas;
  int size = 8, pairs = 1000000;
  double limit_ns = 50;
  app.add_option("--library", library, "libgemmhoist.so")->required();
  app.add_option("--openblas", openblas, "path of OpenBLAS; by soname where none is given");
  app.add_option("--size", size, "rows and columns")->check(CLI::Range(1, 1024));
  app.add_option("--pairs", pairs, "calls of each")->check(CLI::Range(1, 100000000));
  app.add_option("--limit-ns", limit_ns, "exit 1 beyond this many added nanoseconds");
  CLI11_PARSE(app, argc, argv);
  return gemmhoist::bench::run(std::filesystem::absolute(library), openblas, size, pairs, limit_ns);
}
