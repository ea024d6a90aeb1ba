// NumPy, as Debian builds it and as PyPI ships it: which symbol it binds, that the call is counted and the
// values right.
#include <gtest/gtest.h>

#include <cstdlib>

#include "abi/process.hpp"

namespace gemmhoist::test {
namespace {

// Multiplies in the ways that NumPy passes on differently, and prints the library's own counters.
const char* const kScript = R"(
import ctypes, sys
import numpy as np
rng = np.random.default_rng(1)
def near(x, y): return bool(np.all(np.abs(x - y) <= 1e-5 * (np.abs(y) + 10)))
A = rng.standard_normal((300, 200), dtype=np.float32)
B = rng.standard_normal((200, 400), dtype=np.float32)
D = lambda x: x.astype(np.float64)
ok = [near(A @ B, D(A) @ D(B)),
      near(A @ np.ascontiguousarray(B.T).T, D(A) @ D(B)),
      near(np.asfortranarray(A) @ np.asfortranarray(B), D(A) @ D(B)),
      near(A[10:50] @ B, D(A[10:50]) @ D(B)),
      near(A @ A.T, D(A) @ D(A).T),
      near(A @ A.T.copy(), D(A) @ D(A).T)]
out = np.full((300, 500), np.nan, dtype=np.float32)
np.matmul(A, B, out=out[:, 50:450])
ok.append(near(out[:, 50:450], D(A) @ D(B)) and bool(np.isnan(out[:, :50]).all() and np.isnan(out[:, 450:]).all()))
print('right' if all(ok) else ok)
library = ctypes.CDLL(None)
for name in (b'calls_cblas', b'calls_cblas64', b'calls_cpu'):
    value = ctypes.c_uint64()
    if hasattr(library, 'gemmhoist_stat') and library.gemmhoist_stat(name, ctypes.byref(value)) == 0:
        print(name.decode(), value.value)
)";

// Products of the script that NumPy passes to sgemm; A @ A.T goes to ssyrk.
constexpr long kProducts = 6;

void expect_bound(const std::string& python, const std::string& symbol, Environment environment) {
  environment["LD_DEBUG"] = "bindings";
  const Result result =
      run({python, "-c", "import numpy as np; a = np.ones((9, 9), 'f'); print((a @ a)[0, 0])"}, environment);
  EXPECT_EQ(result.out, "9.0\n");
  const std::string target = library() + " [0]: normal symbol `" + symbol + "'";
  EXPECT_NE(result.err.find(target), std::string::npos) << "no binding to " << target;
}

TEST(NumPy, FromDebian) {
  const std::string python = "/usr/bin/python3";
  if (run({python, "-c", "import numpy; assert '/usr/lib/python3/' in numpy.__file__"}).status != 0) {
    GTEST_SKIP() << "python3-numpy is not installed here";
  }
  const Result result = run({python, "-c", kScript}, preloaded());
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out << result.err;
  EXPECT_EQ(result.counter("calls_cblas"), kProducts);
  EXPECT_EQ(result.counter("calls_cpu"), kProducts);
  EXPECT_EQ(result.err, "");
  expect_bound(python, "cblas_sgemm", preloaded());
}

TEST(NumPy, FromPyPI) {
  const std::string python = "/usr/bin/python3";
  const std::string wheels = std::getenv("GEMMHOIST_TEST_WHEELS");
  const Environment with_wheel = preloaded({{"PYTHONPATH", wheels}});
  if (run({python, "-c", "import numpy, sys; assert numpy.__file__.startswith(sys.argv[1])", wheels},
          {{"PYTHONPATH", wheels}})
          .status != 0) {
    GTEST_SKIP() << "no NumPy wheel on this machine: scripts/setup fetches it from PyPI";
  }
  const Result result = run({python, "-c", kScript}, with_wheel);
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out << result.err;
  EXPECT_EQ(result.counter("calls_cblas64"), kProducts) << result.out;
  EXPECT_EQ(result.counter("calls_cpu"), kProducts);
  EXPECT_EQ(result.err, "");
  expect_bound(python, "scipy_cblas_sgemm64_", with_wheel);
}

}  // namespace
}  // namespace gemmhoist::test
