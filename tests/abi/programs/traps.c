/* A program that traps on floating-point exceptions, as those do that hunt for a NaN: products of small
 * integers, which are exact, then the flags that are set. What a library computes for itself on this thread
 * shows as a signal. */
#define _GNU_SOURCE
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a,
                 int lda, const float* b, int ldb, float beta, float* c, int ldc);

int main(void) {
  const int sizes[] = {8, 64, 256};
  for (int s = 0; s < 3; ++s) {
    const int n = sizes[s];
    const size_t count = (size_t)n * (size_t)n;
    float* a = malloc(3 * count * sizeof *a);
    float *b = a + count, *c = b + count;
    for (size_t i = 0; i < count; ++i) {
      a[i] = (float)(i % 5);
      b[i] = (float)(i % 3);
      c[i] = 1;
    }
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_INEXACT);
    for (int call = 0; call < 3; ++call) cblas_sgemm(102, 111, 112, n, n, n, 1, a, n, b, n, 1, c, n);
    fedisableexcept(FE_ALL_EXCEPT);
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += c[i];
    printf("%d: sum %.0f, flags %x\n", n, sum, (unsigned)fetestexcept(FE_ALL_EXCEPT));
    free(a);
  }
  return 0;
}
