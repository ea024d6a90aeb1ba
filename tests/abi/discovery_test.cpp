// Which BLAS is found, in real processes: every order of libraries that programs were seen with.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "abi/installed_blas.hpp"
#include "abi/process.hpp"

namespace gemmhoist::test {
namespace {

namespace fs = std::filesystem;

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One product through `spelling` under the library; its output names the BLAS libraries that are mapped.
Result maps(const std::string& name, const std::string& spelling, const std::string& bits,
            Environment environment, std::vector<std::string> more = {}) {
  std::vector<std::string> command = {program(name), "counters", "maps", spelling, bits};
  command.insert(command.end(), more.begin(), more.end());
  return run(command, environment);
}

void expect_served(const Result& result, long calls = 1) {
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.counter("calls_cpu"), calls) << result.out;
}

TEST(Discovery, NextInOrder) {
  const Result result = maps("calls_openblas", "cblas_sgemm", "32", preloaded());
  expect_served(result);
  EXPECT_TRUE(mentions(result.out, "libopenblas"));
}

TEST(Discovery, BlasLoadedPrivately) {
  const std::string directory = openblas_directory();
  GEMMHOIST_NEEDS(directory, "OpenBLAS");
  const Result result =
      maps("calls_alone", "cblas_sgemm", "32", preloaded(), {"open", directory + "/libblas.so.3"});
  expect_served(result);
}

// A private library of 64-bit names, as the wheels have, is found under the caller's own spelling.
TEST(Discovery, PrivateLibraryOfAnotherDecoration) {
  const Result result =
      maps("calls_alone", "sgemm_64_", "64", preloaded(), {"open", program("libfake_suffixed.so")});
  expect_served(result);
  EXPECT_FALSE(mentions(result.out, "libopenblas")) << result.out;  // no need to look further
}

// OpenBLAS makes its threads and buffers as it is loaded, and ends or hangs the process where it cannot: a
// program that did not choose it must not meet that because of us.
TEST(Discovery, NaiveStaysWhereTheProcessIsLimited) {
  const std::string reference = reference_directory();
  GEMMHOIST_NEEDS(reference, "the reference BLAS");
  for (const char* limit : {"--as=200000000", "--as=80000000", "--nproc=100"}) {
    const Result result = run({"timeout", "20", "prlimit", limit, program("calls_blas"), "product"},
                              preloaded({{"LD_LIBRARY_PATH", reference}}));
    EXPECT_EQ(result.status, 0) << limit;
    EXPECT_EQ(result.out, "right\n") << limit << result.err;
  }
}

TEST(Discovery, NaiveNextInOrderGivesWayToOpenBlas) {
  const std::string reference = reference_directory();
  GEMMHOIST_NEEDS(reference, "the reference BLAS");
  for (const char* spelling : {"cblas_sgemm", "sgemm_", "sgemm"}) {
    const Result result = maps("calls_blas", spelling, "32", preloaded({{"LD_LIBRARY_PATH", reference}}));
    expect_served(result);
    EXPECT_TRUE(mentions(result.out, "libblas.so.3"));
    EXPECT_TRUE(mentions(result.out, "libopenblas")) << result.out;
  }
  const std::string gsl = first_existing({program("calls_gslcblas")});
  GEMMHOIST_NEEDS(gsl, "libgslcblas");
  const Result result = maps("calls_gslcblas", "cblas_sgemm", "32", preloaded());
  expect_served(result);
  EXPECT_TRUE(mentions(result.out, "gslcblas"));
  EXPECT_TRUE(mentions(result.out, "libopenblas")) << result.out;
}

TEST(Discovery, PlainNamesWith64BitIntegers) {
  const std::string program_64 = first_existing({program("calls_blas64")});
  GEMMHOIST_NEEDS(program_64, "libblas64");
  for (const std::string& directory : {openblas64_directory(), reference64_directory()}) {
    if (directory.empty()) continue;
    for (const char* spelling : {"cblas_sgemm", "sgemm_"}) {
      const Result result = run({program_64, "counters", "product", spelling, "64"},
                                preloaded({{"LD_LIBRARY_PATH", directory}}));
      EXPECT_EQ(result.status, 0) << directory << result.out << result.err;
      EXPECT_GT(result.counter("calls_cpu"), 0);
    }
  }
}

TEST(Discovery, ReferenceByNameCountsItsInnerCallOnce) {
  const std::string reference = reference_directory();
  GEMMHOIST_NEEDS(reference, "the reference BLAS");
  const Environment environment = preloaded({{"GEMMHOIST_FALLBACK", reference + "/libblas.so.3"}});
  for (const char* spelling : {"cblas_sgemm", "scipy_cblas_sgemm", "sgemm_", "scipy_sgemm_"}) {
    const Result result = maps("calls_alone", spelling, "32", environment);
    expect_served(result);
    EXPECT_FALSE(mentions(result.out, "libopenblas")) << result.out;
    EXPECT_EQ(result.counter("calls_cblas") + result.counter("calls_fortran"), 1);
  }
}

// Every spelling, with nothing but OpenBLAS to be had, and over a library of the other integer width.
TEST(Discovery, EverySpellingOverEveryLibrary) {
  std::vector<std::string> libraries = {""};
  for (const std::string& path :
       {openblas64_directory() + "/libopenblas64.so.0", reference_directory() + "/libblas.so.3",
        reference64_directory() + "/libblas64.so.3", multiarch() + "libgslcblas.so.0",
        program("libfake_suffixed.so")}) {
    if (fs::exists(path)) libraries.push_back(path);
  }
  for (const std::string& path : libraries) {
    for (const char* spelling : {"cblas_sgemm", "sgemm_", "sgemm", "scipy_cblas_sgemm", "scipy_sgemm_"}) {
      const Result result =
          run({program("calls_alone"), "product", spelling, "32"}, preloaded({{"GEMMHOIST_FALLBACK", path}}));
      EXPECT_EQ(result.out + result.err, "right\n") << spelling << " over " << path;
    }
    for (const char* spelling :
         {"cblas_sgemm64_", "cblas_sgemm_64", "sgemm_64_", "scipy_cblas_sgemm64_", "scipy_sgemm_64_"}) {
      const Result result =
          run({program("calls_alone"), "product", spelling, "64"}, preloaded({{"GEMMHOIST_FALLBACK", path}}));
      EXPECT_EQ(result.out + result.err, "right\n") << spelling << " over " << path;
    }
  }
}

TEST(Discovery, WrongSettingIsOneLineThatNamesIt) {
  for (const std::string& bad : {std::string("/no/such/library.so"), std::string("/etc/passwd"), library(),
                                 multiarch() + "libm.so.6"}) {
    const Result result =
        run({program("calls_openblas"), "product"}, preloaded({{"GEMMHOIST_FALLBACK", bad}}));
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.out, "right\n");
    EXPECT_TRUE(mentions(result.err, "GEMMHOIST_FALLBACK") && mentions(result.err, bad)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Discovery, UnderTheNameOfOpenBlas) {
  const ScratchDirectory scratch;
  fs::copy_file(library(), scratch.path() + "/libopenblas.so.0");
  fs::create_symlink("libopenblas.so.0", scratch.path() + "/libblas.so.3");
  for (const char* name : {"calls_openblas", "calls_blas"}) {
    const Result result = maps(name, "cblas_sgemm", "32", {{"LD_LIBRARY_PATH", scratch.path()}});
    expect_served(result);
    EXPECT_TRUE(mentions(result.out, "libopenblasp") || mentions(result.out, "libopenblas-")) << result.out;
  }
}

TEST(Discovery, PreloadedByTwoPaths) {
  const ScratchDirectory scratch;
  const std::string copy = scratch.path() + "/copy.so", link = scratch.path() + "/link.so";
  fs::copy_file(library(), copy);
  fs::create_symlink(fs::absolute(library()), link);
  for (const std::string& two : {library() + ":" + copy, copy + ":" + library(), library() + ":" + link,
                                 link + ":" + copy + ":" + library()}) {
    for (const char* name : {"calls_openblas", "calls_alone"}) {
      const Result result = maps(name, "cblas_sgemm", "32", {{"LD_PRELOAD", two}});
      expect_served(result);
    }
  }
}

// A copy given as the BLAS to fall back on is still ourselves.
TEST(Discovery, CopyOfOurselvesIsNoBlas) {
  const ScratchDirectory scratch;
  const std::string copy = scratch.path() + "/libother.so";
  fs::copy_file(library(), copy);
  const Result result = run({program("calls_openblas"), "once"}, preloaded({{"GEMMHOIST_FALLBACK", copy}}));
  EXPECT_EQ(result.out, "right\n");
  EXPECT_TRUE(mentions(result.err, "GEMMHOIST_FALLBACK"));
}

// Hides `directories`, and every plain file whose name holds `part`, under empty ones of the child's own,
// then becomes `command`.
Result run_without(const std::vector<std::string>& directories, const std::string& part,
                   const std::vector<std::string>& command, const Environment& environment) {
  std::string script = "set -e; ";
  for (const std::string& directory : directories) {
    if (!directory.empty()) script += "mount -t tmpfs none " + directory + "; ";
  }
  for (const auto& entry : fs::directory_iterator(multiarch())) {
    const std::string file = entry.path().filename().string();
    if (!entry.is_symlink() && entry.is_regular_file() && file.find(part) != std::string::npos) {
      script += "mount --bind /dev/null " + entry.path().string() + "; ";
    }
  }
  for (const auto& [name, value] : environment) script += "export " + name + "='" + value + "'; ";
  script += "exec";
  for (const std::string& word : command) script += " '" + word + "'";
  return run({"unshare", "-rm", "sh", "-c", script});
}

Result run_without_any_blas(const std::vector<std::string>& command, const Environment& environment) {
  return run_without(
      {openblas_directory(), openblas64_directory(), reference_directory(), reference64_directory()}, "blas",
      command, environment);
}

TEST(Discovery, NaiveServesWhereThereIsNoOpenBlas) {
  if (run({"unshare", "-rm", "true"}).status != 0) GTEST_SKIP() << "no mount namespace may be made here";
  const std::string reference = reference_directory();
  GEMMHOIST_NEEDS(reference, "the reference BLAS");
  for (const char* spelling : {"cblas_sgemm", "sgemm_"}) {
    const Result result = run_without({openblas_directory(), openblas64_directory()}, "openblas",
                                      {program("calls_blas"), "counters", "maps", spelling, "32"},
                                      preloaded({{"LD_LIBRARY_PATH", reference}}));
    expect_served(result);
    EXPECT_TRUE(mentions(result.out, "libblas.so.3"));
    EXPECT_FALSE(mentions(result.out, "openblas")) << result.out;
    EXPECT_EQ(result.counter("calls_cblas") + result.counter("calls_fortran"), 1);
  }
}

TEST(Discovery, NoBlasAtAll) {
  if (run({"unshare", "-rm", "true"}).status != 0) GTEST_SKIP() << "no mount namespace may be made here";
  for (const char* spelling : {"cblas_sgemm", "sgemm_", "cblas_sgemm64_", "scipy_sgemm_64_"}) {
    const std::string bits = mentions(spelling, "64") ? "64" : "32";
    const Result result =
        run_without_any_blas({program("calls_alone"), "counters", "product", spelling, bits}, preloaded());
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    EXPECT_EQ(result.out.substr(0, 6), "right\n");
    EXPECT_TRUE(mentions(result.err, "no BLAS")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  const Result special = run_without_any_blas({program("calls_alone"), "special"}, preloaded());
  EXPECT_EQ(special.out, "right\n") << special.err;
  // Our own report says what OpenBLAS would.
  for (const char* spelling : {"cblas_sgemm", "sgemm_"}) {
    const Result plain = run({program("calls_openblas"), "illegal", spelling});
    const Result ours = run_without_any_blas({program("calls_alone"), "illegal", spelling}, preloaded());
    EXPECT_EQ(ours.out, plain.out);
    EXPECT_EQ(ours.status, plain.status);
  }
}

}  // namespace
}  // namespace gemmhoist::test
