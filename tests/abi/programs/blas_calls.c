/* A program that multiplies, for the tests of the exported names. It finds each function as the dynamic
 * linker would: first definition in the global scope. Built against one BLAS or another, and against none.
 * Usage:
 *
 *   blas_calls [counters] COMMAND [SPELLING [32|64]] ...
 *
 * "counters" prints the library's counters that are not zero at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*cblas_function)(int, int, int, int64_t, int64_t, int64_t, float, const float*, int64_t,
                               const float*, int64_t, float, float*, int64_t);
typedef void (*fortran_function)(const char*, const char*, const void*, const void*, const void*,
                                 const float*, const float*, const void*, const float*, const void*,
                                 const float*, float*, const void*);

struct target {
  void* function;
  int cblas, wide;
};

static struct target find(const char* spelling, const char* bits) {
  struct target t = {dlsym(RTLD_DEFAULT, spelling), strstr(spelling, "cblas") != NULL,
                     strcmp(bits, "64") == 0};
  if (t.function == NULL) {
    printf("no symbol %s\n", spelling);
    exit(3);
  }
  return t;
}

/* 32-bit integers as a compiler may pass them: with anything in the upper halves. */
static int64_t as_passed(const struct target* t, int64_t value) {
  return t->wide ? value : (int64_t)(((uint64_t)value & 0xffffffffu) | 0x7badcafe00000000u);
}

/* order, trans: CBLAS numbers; Fortran letters come from `trans` too (111 N, 112 T, 113 C, else X). */
static void gemm(const struct target* t, int order, int ta, int tb, int64_t m, int64_t n, int64_t k,
                 float alpha, const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                 int64_t ldc) {
  m = as_passed(t, m), n = as_passed(t, n), k = as_passed(t, k);
  lda = as_passed(t, lda), ldb = as_passed(t, ldb), ldc = as_passed(t, ldc);
  if (t->cblas) {
    ((cblas_function)t->function)(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else {
    const char* letters = "ntc";
    const char la = ta >= 111 && ta <= 113 ? letters[ta - 111] : 'X',
               lb = tb >= 111 && tb <= 113 ? letters[tb - 111] : 'X';
    ((fortran_function)t->function)(&la, &lb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
  }
}

static float value(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) * 0x1p-23f - 1;
}

static long wrong_elements(const struct target* t, int order, int ta, int tb, int m, int n, int k,
                           float alpha, float beta) {
  const int lda = (m > k ? m : k) + 3, ldb = (n > k ? n : k) + 1, ldc = (m > n ? m : n) + 2;
  const int side = lda + ldb + ldc;
  float *a = malloc(sizeof(float) * side * side), *b = malloc(sizeof(float) * side * side);
  float *c = malloc(sizeof(float) * side * side), *before = malloc(sizeof(float) * side * side);
  unsigned state = (unsigned)(m * 31 + n * 7 + k);
  for (int i = 0; i < side * side; ++i) {
    a[i] = value(&state), b[i] = value(&state), before[i] = c[i] = beta == 0 ? NAN : value(&state);
  }
  gemm(t, order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  long wrong = 0;
  for (int at = 0; at < side * side; ++at) {
    const int fast = at % ldc, slow = at / ldc;
    const int i = order == 102 ? fast : slow, j = order == 102 ? slow : fast;
    if (i >= m || j >= n) {
      wrong += memcmp(&c[at], &before[at], sizeof(float)) != 0;
      continue;
    }
    double sum = 0, magnitude = 0;
    for (int l = 0; l < k; ++l) {
      const int a_row = ta == 111 ? i : l, a_col = ta == 111 ? l : i, b_row = tb == 111 ? l : j,
                b_col = tb == 111 ? j : l;
      const double x = order == 102 ? a[a_row + a_col * lda] : a[a_row * lda + a_col];
      const double y = order == 102 ? b[b_row + b_col * ldb] : b[b_row * ldb + b_col];
      sum += x * y, magnitude += fabs(x * y);
    }
    const double old = beta == 0 ? 0 : (double)beta * before[at];
    const double bound = (k + 3) * 0x1p-24 * (fabs(alpha) * magnitude + fabs(old)) + (k + 3) * 0x1p-147;
    wrong += !(fabs(c[at] - (alpha * sum + old)) <= bound);
  }
  free(a), free(b), free(c), free(before);
  return wrong;
}

static int product(const struct target* t) {
  long wrong = 0;
  for (int order = t->cblas ? 101 : 102; order <= 102; ++order)
    for (int ta = 111; ta <= 113; ++ta)
      for (int tb = 111; tb <= 113; ++tb) {
        wrong += wrong_elements(t, order, ta, tb, 8, 8, 8, 1, 0);
        wrong += wrong_elements(t, order, ta, tb, 33, 7, 65, -1.5f, 0.5f);
        wrong += wrong_elements(t, order, ta, tb, 1, 45, 11, 2, -0.0f);
      }
  puts(wrong == 0 ? "right" : "wrong");
  return wrong != 0;
}

/* Large enough to go home in many tiles. */
static int large(const struct target* t) {
  puts(wrong_elements(t, 102, 112, 111, 700, 600, 20, -1.5f, 0.5f) == 0 ? "right" : "wrong");
  return 0;
}

static int once(const struct target* t) {
  puts(wrong_elements(t, 102, 111, 111, 8, 8, 8, 1, 0) == 0 ? "right" : "wrong");
  return 0;
}

/* Every argument that can be illegal alone, and every pair of them, in both orders. Prints what it asked
 * before each call; the reports come between. */
static int illegal(const struct target* t) {
  float a[64], b[64], c[64], before[64];
  for (int i = 0; i < 64; ++i) a[i] = b[i] = c[i] = before[i] = (float)i;
  for (int order = t->cblas ? 101 : 102; order <= 102; ++order)
    for (int first = 0; first < 9; ++first)
      for (int second = first; second < 9; ++second) {
        int v[9] = {order, 111, 112, 4, 5, 6, 7, 7, 7};
        for (int p = first; p <= second; p += second - first ? second - first : 1) {
          v[p] = p < 3 ? 7 : p < 6 ? -1 : 1;
          if (second == first) break;
        }
        if (!t->cblas && first == 0) continue; /* Fortran knows no order */
        printf("order %d, arguments %d and %d\n", order, first, second);
        fflush(stdout);
        gemm(t, v[0], v[1], v[2], v[3], v[4], v[5], 1, a, v[6], b, v[7], 2, c, v[8]);
        if (memcmp(c, before, sizeof c) != 0) puts("C was touched");
      }
  return once(t);
}

/* alpha = 0, k = 0, empty matrices; A and B are pages without access, or null. */
static int special(const struct target* t) {
  float* closed = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int bad = 0;
  float c[4] = {2, NAN, 2, 2};
  gemm(t, 102, 111, 111, 2, 2, 3, 0, closed, 2, closed, 3, 3, c, 2);
  bad += c[0] != 6 || !isnan(c[1]) || c[2] != 6;
  c[1] = NAN;
  gemm(t, 102, 112, 111, 2, 2, 3, 0, closed, 3, closed, 3, 0, c, 2);
  bad += c[0] != 0 || c[1] != 0 || c[3] != 0;
  const float bits[4] = {-0.0f, 1e-45f, NAN, 3};
  memcpy(c, bits, sizeof c);
  gemm(t, 102, 111, 113, 2, 2, 3, 0, closed, 2, closed, 2, 1, c, 2);
  bad += memcmp(c, bits, sizeof c) != 0;
  gemm(t, 102, 111, 111, 2, 2, 0, 1, NULL, 2, NULL, 1, 3, c, 2);
  bad += c[3] != 9 || !isnan(c[2]);
  gemm(t, 102, 111, 111, 2, 2, 0, 1, NULL, 2, NULL, 1, 0, c, 2);
  bad += c[2] != 0 || c[3] != 0;
  gemm(t, 102, 111, 111, 0, 2, 3, 1, NULL, 1, NULL, 3, 2, NULL, 1);
  gemm(t, 102, 111, 111, 2, 0, 3, 1, NULL, 2, NULL, 3, 2, NULL, 2);
  gemm(t, 102, 111, 111, 2, 2, 2, NAN, bits, 2, bits, 2, 0, c, 2);
  bad += !isnan(c[0]) || !isnan(c[3]);
  puts(bad ? "wrong" : "right");
  return bad != 0;
}

static struct target thread_target;
static long thread_wrong;
static pthread_barrier_t gate;

static void* in_thread(void* unused) {
  (void)unused;
  pthread_barrier_wait(&gate);
  errno = 77;
  for (int i = 0; i < 20; ++i)
    if (wrong_elements(&thread_target, 102, 111 + i % 3, 112, 5 + i, 9, 8, 1, 0.5f))
      __atomic_add_fetch(&thread_wrong, 1, __ATOMIC_SEQ_CST);
  if (errno != 77) __atomic_add_fetch(&thread_wrong, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static int threads(const struct target* t) {
  pthread_t all[16];
  thread_target = *t;
  pthread_barrier_init(&gate, NULL, 16);
  for (int i = 0; i < 16; ++i) pthread_create(&all[i], NULL, in_thread, NULL);
  for (int i = 0; i < 16; ++i) pthread_join(all[i], NULL);
  puts(thread_wrong == 0 ? "right" : "wrong");
  return thread_wrong != 0;
}

/* The child makes the first call of the process; then both count their own. */
static int forked(const struct target* t) {
  const pid_t child = fork();
  if (child == 0) _exit(wrong_elements(t, 102, 111, 111, 8, 8, 8, 1, 0) != 0);
  int status = 1;
  waitpid(child, &status, 0);
  puts(status == 0 && wrong_elements(t, 102, 111, 111, 8, 8, 8, 1, 0) == 0 ? "right" : "wrong");
  return 0;
}

static uint64_t counter(const char* name) {
  int (*stat)(const char*, uint64_t*) =
      (int (*)(const char*, uint64_t*))dlsym(RTLD_DEFAULT, "gemmhoist_stat");
  uint64_t count = 0;
  if (stat != NULL) stat(name, &count);
  return count;
}

/* Parent, then a child forked from it, then the parent again. The child's answer is that of its own counters.
 */
static int family(const struct target* t) {
  long wrong = wrong_elements(t, 102, 111, 112, 70, 60, 50, 1, 0.5f);
  const pid_t child = fork();
  if (child == 0) {
    wrong = wrong_elements(t, 102, 111, 112, 70, 60, 50, 1, 0.5f);
    _exit(wrong != 0 ? 1 : counter("calls_cpu") == 1 && counter("calls_gpu") == 0 ? 0 : 2);
  }
  int status = 1;
  waitpid(child, &status, 0);
  wrong += wrong_elements(t, 102, 112, 111, 70, 60, 50, -1, 0);
  printf("%s, child %d\n", wrong == 0 ? "right" : "wrong", WEXITSTATUS(status));
  return wrong != 0;
}

/* The first call of the process, on a thread with as little stack as a thread may have. */
static void* on_small_stack(void* unused) {
  (void)unused;
  thread_wrong = wrong_elements(&thread_target, 102, 111, 112, 70, 60, 50, 1, 0.5f);
  return NULL;
}

static int small_stack(const struct target* t) {
  pthread_attr_t attributes;
  pthread_t thread;
  thread_target = *t;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, 16384) != 0 ||
      pthread_create(&thread, &attributes, on_small_stack, NULL) != 0) {
    puts("no thread");
    return 1;
  }
  pthread_join(thread, NULL);
  puts(thread_wrong == 0 ? "right" : "wrong");
  return thread_wrong != 0;
}

static struct target exit_target;
static void at_exit(void) {
  puts(wrong_elements(&exit_target, 101 + !exit_target.cblas, 112, 111, 40, 30, 20, 1, 0) == 0 ? "right"
                                                                                               : "wrong");
}

static void print_counters(void) {
  int (*stat)(const char*, uint64_t*) =
      (int (*)(const char*, uint64_t*))dlsym(RTLD_DEFAULT, "gemmhoist_stat");
  const char* (*name)(size_t) = (const char* (*)(size_t))dlsym(RTLD_DEFAULT, "gemmhoist_stat_name");
  if (stat == NULL || name == NULL) return;
  for (size_t i = 0; name(i) != NULL; ++i) {
    uint64_t count = 0;
    if (stat(name(i), &count) == 0 && count != 0) printf("%s %llu\n", name(i), (unsigned long long)count);
  }
}

/* Libraries with "blas" in their names that are mapped, one a line. */
static int maps(const struct target* t) {
  once(t);
  FILE* file = fopen("/proc/self/maps", "r");
  char line[4096];
  while (fgets(line, sizeof line, file))
    if (strstr(line, "r-xp") && strstr(line, "blas")) fputs(strrchr(line, '/'), stdout);
  fclose(file);
  return 0;
}

int main(int argc, char** argv) {
  int counters = argc > 1 && strcmp(argv[1], "counters") == 0;
  argv += counters, argc -= counters;
  if (argc < 2) return 2;
  const char* command = argv[1];
  for (int at = 4; at + 1 < argc; ++at) /* open LIBRARY: privately, before all */
    if (strcmp(argv[at], "open") == 0 && dlopen(argv[at + 1], RTLD_NOW | RTLD_LOCAL) == NULL) {
      printf("%s\n", dlerror());
      return 4;
    }
  const struct target t = find(argc > 2 ? argv[2] : "cblas_sgemm", argc > 3 ? argv[3] : "32");
  int status = 2;
  if (strcmp(command, "product") == 0) status = product(&t);
  if (strcmp(command, "large") == 0) status = large(&t);
  if (strcmp(command, "once") == 0) status = once(&t);
  if (strcmp(command, "illegal") == 0) status = illegal(&t);
  if (strcmp(command, "special") == 0) status = special(&t);
  if (strcmp(command, "threads") == 0) status = threads(&t);
  if (strcmp(command, "fork") == 0) status = forked(&t);
  if (strcmp(command, "family") == 0) status = family(&t);
  if (strcmp(command, "small-stack") == 0) status = small_stack(&t);
  if (strcmp(command, "maps") == 0) status = maps(&t);
  if (strcmp(command, "atexit") == 0) {
    exit_target = t;
    atexit(at_exit);
    status = 7;
  }
  if (counters) print_counters();
  return status;
}
