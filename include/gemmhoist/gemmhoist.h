/* gemmhoist: public C interface. Programs need none of it: the library serves cblas_sgemm and its siblings by
 * being preloaded or linked. This header is for those who want to look, or to steer one thread. */
#ifndef GEMMHOIST_GEMMHOIST_H
#define GEMMHOIST_GEMMHOIST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GEMMHOIST_VERSION_MAJOR 0
#define GEMMHOIST_VERSION_MINOR 1
#define GEMMHOIST_VERSION_PATCH 0

/* Version of the library in use, e.g. "0.1.0"; static. Never blocks, never starts the GPU. Since 0.1. */
const char* gemmhoist_version(void);

/* Value of a counter since the process (or, in a forked child, the child) began.
 *
 * name: a counter's name as gemmhoist_stat_name() lists them, e.g. "calls_gpu" (products finished on the
 * GPU), "calls_cpu" (products that the fallback served), "bytes_h2d". value: receives the count; untouched on
 * failure. Returns 0, or -1 when there is no such counter or an argument is NULL. Any thread, never blocks,
 * allocates nothing, never starts the GPU. Since 0.1.
 *
 *     uint64_t served;
 *     if (gemmhoist_stat("calls_gpu", &served) == 0) printf("%llu on the GPU\n", (unsigned long long)served);
 */
int gemmhoist_stat(const char* name, uint64_t* value);

/* Name of the index-th counter, static, or NULL past the last. Any thread. Since 0.1. */
const char* gemmhoist_stat_name(size_t index);

/* Where this thread's calls go. GEMMHOIST_ROUTE sets the default for all threads. */
enum gemmhoist_mode {
  GEMMHOIST_MODE_DEFAULT = 0, /* as GEMMHOIST_ROUTE says */
  GEMMHOIST_MODE_AUTO = 1,    /* decided call by call */
  GEMMHOIST_MODE_CPU = 2,     /* always the fallback */
  GEMMHOIST_MODE_GPU = 3      /* the GPU wherever one can be had, however small the product */
};

/* Sets the calling thread's mode. Returns 0, or -1 for an unknown mode (the old one stays). Never blocks;
 * never starts the GPU (the next product may). Since 0.1. */
int gemmhoist_set_thread_mode(int mode);

/* State of the GPU: "cold" (not wanted yet), "starting", "up", "absent", "lost", "backoff"; static. Any
 * thread, never blocks, never starts it. Since 0.1. */
const char* gemmhoist_gpu_state(void);

#ifdef __cplusplus
}
#endif

#endif /* GEMMHOIST_GEMMHOIST_H */
