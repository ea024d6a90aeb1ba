/* Preloaded into peers' programs, beside the library. It writes the library's counters down when the program
 * ends, so that a suite that passed is known to have passed on the route that was asked for; and it lends
 * Netlib's C suite a variable that only the reference BLAS defines. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Netlib's C suite reads and writes it: set while it calls with row-major data. */
int RowMajorStrg;
__attribute__((visibility("default"))) extern int RowMajorStrg;

typedef int stat_function(const char* name, uint64_t* value);
typedef const char* stat_name_function(size_t index);

__attribute__((destructor)) static void write_counters(void) {
  const char* folder = getenv("PEER_COUNTERS");
  /* By name first: NumPy loads its BLAS, and the library behind it, where RTLD_DEFAULT does not look. */
  void* library = dlopen("libgemmhoist.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) library = RTLD_DEFAULT;
  stat_function* stat = (stat_function*)(intptr_t)dlsym(library, "gemmhoist_stat");
  stat_name_function* stat_name = (stat_name_function*)(intptr_t)dlsym(library, "gemmhoist_stat_name");
  if (folder == NULL || stat == NULL || stat_name == NULL) return;
  char path[4096];
  snprintf(path, sizeof path, "%s/%ld", folder, (long)getpid());
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  const char* name;
  for (size_t i = 0; (name = stat_name(i)) != NULL; ++i) {
    uint64_t value = 0;
    if (stat(name, &value) == 0) fprintf(file, "%s %" PRIu64 "\n", name, value);
  }
  fclose(file);
}
