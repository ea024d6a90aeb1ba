/* A BLAS of one function under two names: loops and nothing else, so that it can be in use at any moment of a
 * process' life. Legal arguments only. */
#include <stddef.h>

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);
void sgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c,
            const int* ldc);

__attribute__((visibility("default"))) void cblas_sgemm(int order, int ta, int tb, int m, int n, int k,
                                                        float alpha, const float* a, int lda, const float* b,
                                                        int ldb, float beta, float* c, int ldc) {
  if (order == 101) {
    cblas_sgemm(102, tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
    return;
  }
  for (ptrdiff_t j = 0; j < n; ++j) {
    for (ptrdiff_t i = 0; i < m; ++i) {
      float sum = 0;
      for (ptrdiff_t p = 0; p < k; ++p) {
        sum += (ta == 111 ? a[i + p * lda] : a[p + i * lda]) * (tb == 111 ? b[p + j * ldb] : b[j + p * ldb]);
      }
      float* at = c + i + j * ldc;
      *at = alpha * sum + (beta == 0 ? 0 : beta * *at);
    }
  }
}

static int number(const char* letter) {
  return *letter == 'n' || *letter == 'N' ? 111 : 112;
}

__attribute__((visibility("default"))) void sgemm_(const char* ta, const char* tb, const int* m, const int* n,
                                                   const int* k, const float* alpha, const float* a,
                                                   const int* lda, const float* b, const int* ldb,
                                                   const float* beta, float* c, const int* ldc) {
  cblas_sgemm(102, number(ta), number(tb), *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);
}
