/* A BLAS for tests: counts its calls. FAKE_INT is its integer; each name that is defined is exported. */
#include <stdint.h>

__attribute__((visibility("default"))) long fake_blas_calls;

static void product(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                    const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  ++fake_blas_calls;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a[ta ? l + i * lda : i + l * lda] * b[tb ? j + l * ldb : l + j * ldb];
      c[i + j * ldc] = alpha * sum + (beta == 0 ? 0 : beta * c[i + j * ldc]);
    }
}

#ifdef FAKE_CBLAS
__attribute__((visibility("default"))) void FAKE_CBLAS(int order, int ta, int tb, FAKE_INT m, FAKE_INT n,
                                                       FAKE_INT k, float alpha, const float* a, FAKE_INT lda,
                                                       const float* b, FAKE_INT ldb, float beta, float* c,
                                                       FAKE_INT ldc);
void FAKE_CBLAS(int order, int ta, int tb, FAKE_INT m, FAKE_INT n, FAKE_INT k, float alpha, const float* a,
                FAKE_INT lda, const float* b, FAKE_INT ldb, float beta, float* c, FAKE_INT ldc) {
  if (order == 102)
    product(ta != 111, tb != 111, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else
    product(tb != 111, ta != 111, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
}
__attribute__((visibility("default"))) double cblas_ddot(FAKE_INT n, const double* x, FAKE_INT incx,
                                                         const double* y, FAKE_INT incy);
double cblas_ddot(FAKE_INT n, const double* x, FAKE_INT incx, const double* y, FAKE_INT incy) {
  double sum = 0;
  for (FAKE_INT i = 0; i < n; ++i) sum += x[i * incx] * y[i * incy];
  return sum;
}
#endif

#ifdef FAKE_FORTRAN
__attribute__((visibility("default"))) void FAKE_FORTRAN(
    const char* ta, const char* tb, const FAKE_INT* m, const FAKE_INT* n, const FAKE_INT* k,
    const float* alpha, const float* a, const FAKE_INT* lda, const float* b, const FAKE_INT* ldb,
    const float* beta, float* c, const FAKE_INT* ldc, uint64_t ta_length, uint64_t tb_length);
void FAKE_FORTRAN(const char* ta, const char* tb, const FAKE_INT* m, const FAKE_INT* n, const FAKE_INT* k,
                  const float* alpha, const float* a, const FAKE_INT* lda, const float* b,
                  const FAKE_INT* ldb, const float* beta, float* c, const FAKE_INT* ldc, uint64_t ta_length,
                  uint64_t tb_length) {
  if (ta_length != 1 || tb_length != 1) return; /* as a Fortran compiler's bounds check would see it */
  product((*ta & 0xdf) != 'N', (*tb & 0xdf) != 'N', *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);
}
__attribute__((visibility("default"))) double ddot_(const FAKE_INT* n, const double* x, const FAKE_INT* incx,
                                                    const double* y, const FAKE_INT* incy);
double ddot_(const FAKE_INT* n, const double* x, const FAKE_INT* incx, const double* y,
             const FAKE_INT* incy) {
  double sum = 0;
  for (FAKE_INT i = 0; i < *n; ++i) sum += x[i * *incx] * y[i * *incy];
  return sum;
}
#endif
