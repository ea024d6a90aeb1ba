/* A program that has the library's pkg-config line as its whole BLAS line. */
#include <stdio.h>

void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                 int);
void cblas_sgemv(int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void dgetrf_(const int*, const int*, double*, const int*, int*, int*);
void openblas_set_num_threads(int);

int main(void) {
  const float a[4] = {1, 2, 3, 4}, x[2] = {1, 1};
  float y[2] = {0}, c[4] = {0};
  double lu[4] = {4, 2, 2, 3};
  int two = 2, pivots[2], info = -1;
  openblas_set_num_threads(1);
  cblas_sgemm(102, 111, 111, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2);
  cblas_sgemv(102, 111, 2, 2, 1, a, 2, x, 1, 0, y, 1);
  dgetrf_(&two, &two, lu, &two, pivots, &info);
  printf("%g %g %g %d\n", c[0], y[0], lu[3], info);
  return 0;
}
