/* A library that multiplies in its constructor, that is, inside dlopen. */
#include <stdio.h>

void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                 int);

__attribute__((constructor)) static void on_load(void) {
  const float a[1] = {3}, b[1] = {4};
  float c[1] = {0};
  cblas_sgemm(101, 111, 111, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1);
  printf("constructor: %g\n", c[0]);
}
