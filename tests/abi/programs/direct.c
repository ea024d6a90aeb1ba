/* One call through the name that CALL says, bound by the static and the dynamic linker. */
#include <stdio.h>

void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                 int);
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
            const int*, const float*, const int*, const float*, float*, const int*);
void sgemm(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
           const int*, const float*, const int*, const float*, float*, const int*);
int gemmhoist_stat(const char* name, unsigned long* value);

int main(void) {
  const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, one = 1, zero = 0;
  float c[4] = {0};
  const int two = 2;
#if CALL == 0
  cblas_sgemm(102, 111, 111, two, two, two, one, a, two, b, two, zero, c, two);
#elif CALL == 1
  sgemm_("n", "Not transposed", &two, &two, &two, &one, a, &two, b, &two, &zero, c, &two);
#else
  sgemm("N", "n", &two, &two, &two, &one, a, &two, b, &two, &zero, c, &two);
#endif
  unsigned long cblas = 0, fortran = 0, cpu = 0;
  gemmhoist_stat("calls_cblas", &cblas);
  gemmhoist_stat("calls_fortran", &fortran);
  gemmhoist_stat("calls_cpu", &cpu);
  printf("%g %g %g %g cblas %lu fortran %lu cpu %lu\n", c[0], c[1], c[2], c[3], cblas, fortran, cpu);
  return 0;
}
