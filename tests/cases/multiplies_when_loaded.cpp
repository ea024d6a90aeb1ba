// A library whose constructor makes a large product: inside dlopen, that is, with the loader's lock held.
#include <vector>

extern "C" {
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                 int);
[[gnu::visibility("default")]] extern int wrong_in_constructor;
int wrong_in_constructor = -1;
}

namespace {

[[gnu::constructor]] void on_load() {
  constexpr int n = 200;
  const std::vector<float> a(n * n, 2), b(n * n, 3);
  std::vector<float> c(n * n, -1);
  cblas_sgemm(102, 111, 112, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  wrong_in_constructor = 0;
  for (const float value : c) wrong_in_constructor += value != 6 * n;
}

}  // namespace
