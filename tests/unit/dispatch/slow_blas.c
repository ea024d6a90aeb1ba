/* A BLAS that takes as long as a model says, so that what is decided does not depend on the machine:
 * 2mnk / GEMMHOIST_TEST_CPU_FLOPS seconds. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static double flops_per_second; /* 0: as fast as it goes */

/* Read ahead: strtod alone would take 3 KiB of a caller's stack. */
__attribute__((constructor)) static void read_rate(void) {
  const char* rate = getenv("GEMMHOIST_TEST_CPU_FLOPS");
  if (rate) flops_per_second = strtod(rate, NULL);
}

/* From now on, as a machine that others have left. */
__attribute__((visibility("default"))) void slow_blas_set_rate(double rate);
void slow_blas_set_rate(double rate) {
  flops_per_second = rate;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((visibility("default"))) void cblas_sgemm(int order, int ta, int tb, int32_t m, int32_t n,
                                                        int32_t k, float alpha, const float* a, int32_t lda,
                                                        const float* b, int32_t ldb, float beta, float* c,
                                                        int32_t ldc);
void cblas_sgemm(int order, int ta, int tb, int32_t m, int32_t n, int32_t k, float alpha, const float* a,
                 int32_t lda, const float* b, int32_t ldb, float beta, float* c, int32_t ldc) {
  const double begin = seconds();
  const double end = flops_per_second > 0 ? begin + 2.0 * m * n * k / flops_per_second : begin;
  if (order != 102) abort(); /* the library's own calls are column-major */
  for (int64_t j = 0; j < n; ++j) {
    float* column = c + j * ldc;
    for (int64_t i = 0; i < m; ++i) column[i] = beta == 0 ? 0 : beta * column[i];
    for (int64_t l = 0; l < k; ++l) {
      const float y = alpha * (tb == 111 ? b[l + j * ldb] : b[j + l * ldb]);
      for (int64_t i = 0; i < m; ++i) column[i] += (ta == 111 ? a[i + l * lda] : a[l + i * lda]) * y;
    }
  }
  const double left = end - seconds();
  if (left > 0) {
    const struct timespec pause = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    nanosleep(&pause, NULL);
  }
}
__attribute__((visibility("default"))) double cblas_ddot(int32_t n, const double* x, int32_t incx,
                                                         const double* y, int32_t incy);
double cblas_ddot(int32_t n, const double* x, int32_t incx, const double* y, int32_t incy) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i * incx] * y[i * incy];
  return sum;
}
