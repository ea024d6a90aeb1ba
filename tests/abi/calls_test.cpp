// What programs see of their calls: values, reports, streams, exit codes, with and without the library.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "abi/installed_blas.hpp"
#include "abi/process.hpp"

namespace gemmhoist::test {
namespace {

void expect_same(const Result& plain, const Result& served) {
  EXPECT_EQ(served.out, plain.out);
  EXPECT_EQ(served.err, plain.err);
  EXPECT_EQ(served.status, plain.status);
}

TEST(Calls, IllegalArgumentsAreReportedAsByPlainOpenBlas) {
  for (const char* spelling : {"cblas_sgemm", "sgemm_"}) {
    const Result plain = run({program("calls_openblas"), "illegal", spelling});
    EXPECT_GE(std::count(plain.out.begin(), plain.out.end(), '*'),
              2 * 36);  // the reports are there to compare
    expect_same(plain, run({program("calls_openblas"), "illegal", spelling}, preloaded()));
  }
}

// The reference ends the process at the first report: the same words, stream and status.
TEST(Calls, IllegalArgumentsAreReportedAsByTheReference) {
  const std::string reference = reference_directory();
  GEMMHOIST_NEEDS(reference, "the reference BLAS");
  const Environment plain = {{"LD_LIBRARY_PATH", reference}};
  const Environment served =
      preloaded({{"LD_LIBRARY_PATH", reference}, {"GEMMHOIST_FALLBACK", reference + "/libblas.so.3"}});
  for (const char* spelling : {"cblas_sgemm", "sgemm_"}) {
    expect_same(run({program("calls_blas"), "illegal", spelling}, plain),
                run({program("calls_blas"), "illegal", spelling}, served));
  }
}

TEST(Calls, IllegalAndTrivialCallsAreCounted) {
  const Result illegal = run({program("calls_openblas"), "counters", "illegal", "cblas_sgemm"}, preloaded());
  EXPECT_EQ(illegal.counter("calls_illegal"), 90);  // two orders, nine positions and 36 pairs of them
  EXPECT_EQ(illegal.counter("calls_cpu"), 1);
  EXPECT_EQ(illegal.counter("calls_cblas"), 91);
  const Result special = run({program("calls_openblas"), "counters", "special", "sgemm_"}, preloaded());
  EXPECT_EQ(special.counter("calls_trivial"), 7);
  EXPECT_EQ(special.counter("calls_cpu"), 1);
}

TEST(Calls, ProgramsOwnXerblaIsCalledOnceEach) {
  const Result plain = run({program("own_xerbla")});
  EXPECT_EQ(plain.out.find("xerbla SGEMM  10 1"), 0u) << plain.out;
  EXPECT_NE(plain.out.find("4 reports, c 6"), std::string::npos) << plain.out;
  expect_same(plain, run({program("own_xerbla")}, preloaded()));
}

TEST(Calls, SpecialValuesOfAlphaBetaAndEmptyMatrices) {
  for (const char* spelling : {"cblas_sgemm", "sgemm_"}) {
    // Not by comparison: OpenBLAS' kernels for AVX-512 read A and B for alpha = 0, which ends this program.
    const Result served = run({program("calls_openblas"), "special", spelling}, preloaded());
    EXPECT_EQ(served.out, "right\n");
    EXPECT_EQ(served.err, "");
    EXPECT_EQ(served.status, 0);
  }
  const std::string reference = reference_directory();
  GEMMHOIST_NEEDS(reference, "the reference BLAS");
  const Result over_reference = run({program("calls_alone"), "counters", "special", "cblas_sgemm"},
                                    preloaded({{"GEMMHOIST_FALLBACK", reference + "/libblas.so.3"}}));
  EXPECT_EQ(over_reference.out.substr(0, 6), "right\n");
  EXPECT_EQ(over_reference.counter("calls_trivial"), 7);  // its inner calls are not ours to count
  EXPECT_EQ(over_reference.counter("calls_fortran"), 0);
}

// As OpenBLAS' kernels for AVX-512 do, on any processor: this one multiplies by zero what it reads.
TEST(Calls, AlphaZeroIsRightOverABlasThatReadsForIt) {
  const Result result = run({program("calls_alone"), "counters", "special", "sgemm_64_", "64"},
                            preloaded({{"GEMMHOIST_FALLBACK", program("libfake_suffixed.so")}}));
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out << result.err << result.status;
  EXPECT_EQ(result.counter("calls_trivial"), 7);
}

// The decision, the clocks and the learning are arithmetic on the caller's thread: neither its traps nor its
// flags may see them.
TEST(Calls, TrapsAndFlagsOfTheCallerSeeNothingOfOurs) {
  const Result plain = run({program("traps")});
  ASSERT_EQ(plain.status, 0) << plain.out;
  for (const char* route : {"auto", "cpu", "gpu"}) {
    for (const char* log : {"off", "calls"}) {
      const Result served =
          run({program("traps")}, preloaded({{"GEMMHOIST_ROUTE", route}, {"GEMMHOIST_LOG", log}}));
      EXPECT_EQ(served.status, 0) << route << ' ' << log;
      EXPECT_EQ(served.out, plain.out) << route << ' ' << log;
    }
  }
}

// A FIFO that nobody reads, as the log, the trace or the profile: the program goes on.
TEST(Calls, AFifoWithoutAReaderHoldsNobodyUp) {
  const ScratchDirectory scratch;
  const std::string fifo = scratch.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const char* setting : {"GEMMHOIST_LOG_FILE", "GEMMHOIST_TRACE", "GEMMHOIST_PROFILE"}) {
    const Result result =
        run({"timeout", "20", program("calls_openblas"), "product"}, preloaded({{setting, fifo}}));
    EXPECT_EQ(result.status, 0) << setting;
    EXPECT_EQ(result.out, "right\n") << setting;
  }
}

TEST(Calls, SummaryIsOneThingAtTheEnd) {
  const Result result =
      run({program("calls_openblas"), "product"}, preloaded({{"GEMMHOIST_LOG", "summary"}}));
  EXPECT_EQ(result.out, "right\n");
  EXPECT_EQ(result.err.find("gemmhoist: products "), 0u) << result.err;
  EXPECT_EQ(result.err.find("gemmhoist: products ", 1), std::string::npos) << result.err;
}

TEST(Calls, ProductsInAllShapesOfArguments) {
  for (const char* spelling : {"cblas_sgemm", "sgemm_", "sgemm"}) {
    const Result result = run({program("calls_openblas"), "counters", "product", spelling}, preloaded());
    EXPECT_EQ(result.status, 0) << result.out;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.counter("calls_cpu"), spelling == std::string("cblas_sgemm") ? 54 : 27);
  }
}

TEST(Calls, ThreeProgramsAreEachCountedOnce) {
  const std::string values = "23 34 31 46 ";
  EXPECT_EQ(run({program("direct_cblas")}).out, values + "cblas 1 fortran 0 cpu 1\n");
  EXPECT_EQ(run({program("direct_fortran")}).out, values + "cblas 0 fortran 1 cpu 1\n");
  EXPECT_EQ(run({program("direct_bare")}).out, values + "cblas 0 fortran 1 cpu 1\n");
}

TEST(Calls, RestOfBlasResolves) {
  const std::string rest = first_existing({program("rest_of_blas")});
  GEMMHOIST_NEEDS(rest, "OpenBLAS");
  EXPECT_EQ(run({rest}).out, "7 4 2 0\n");
  EXPECT_EQ(run({rest}, {{"LD_BIND_NOW", "1"}}).out, "7 4 2 0\n");
}

TEST(Calls, EmptyEnvironmentAndReadOnlyDirectory) {
  const Result result =
      run({"env", "-i", "-C", "/proc", "LD_PRELOAD=" + library(), program("calls_openblas"), "product"});
  EXPECT_EQ(result.out, "right\n");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.status, 0);
}

TEST(Calls, OutputIsTheSameInEveryMode) {
  const Result plain = run({program("calls_openblas"), "product"});
  for (const char* route : {"auto", "cpu", "gpu"}) {
    for (const char* precision : {"fp32", "bf16x6", "tf32"}) {
      // The faster modes promise less than the bound that `product` holds: on small sizes they still run on
      // the CPU.
      if (route == std::string("gpu") && precision != std::string("fp32")) continue;
      const Result served = run({program("calls_openblas"), "product"},
                                preloaded({{"GEMMHOIST_ROUTE", route}, {"GEMMHOIST_PRECISION", precision}}));
      EXPECT_EQ(served.out, plain.out) << route << ' ' << precision;
      EXPECT_EQ(served.status, plain.status);
    }
  }
}

}  // namespace
}  // namespace gemmhoist::test
