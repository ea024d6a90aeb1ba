/* A program with an error routine of its own, which leaves the call by longjmp, as error handlers of
 * numerical environments do. Prints what it was told. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                 int);
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
            const int*, const float*, const int*, const float*, float*, const int*);
int xerbla_(const char* name, const int* parameter, size_t length);

static jmp_buf back;
static int times;

__attribute__((visibility("default"))) int xerbla_(const char* name, const int* parameter, size_t length) {
  ++times;
  printf("xerbla %.6s %d %d\n", name, *parameter, length >= 5 && length <= 8);
  longjmp(back, 1);
}

int main(void) {
  float a[16] = {1}, b[16] = {1}, c[16] = {5};
  const int four = 4, two = 2, bad = -1;
  const float one = 1;
  if (setjmp(back) == 0) cblas_sgemm(101, 111, 111, 4, 4, 4, 1, a, 2, b, 4, 1, c, 4);
  if (setjmp(back) == 0) cblas_sgemm(102, 111, 111, 4, 4, 4, 1, a, 4, b, 4, 1, c, 3);
  if (setjmp(back) == 0) sgemm_("T", "n", &four, &four, &bad, &one, a, &four, b, &four, &one, c, &four);
  if (setjmp(back) == 0) sgemm_("N", "N", &four, &four, &four, &one, a, &four, b, &two, &one, c, &four);
  cblas_sgemm(102, 111, 111, 4, 4, 4, 1, a, 4, b, 4, 1, c, 4);
  printf("%d reports, c %g\n", times, c[0]);
  return 0;
}
