/* libblas.so.3 in a folder of its own: nothing but its list of needed libraries, ours before OpenBLAS. A
 * program that was linked against libblas.so.3 finds it through LD_LIBRARY_PATH (or as a Debian alternative)
 * and gets our products and OpenBLAS' everything else, without any preload: the loader looks a symbol up in
 * the order of that list. */
#include "gemmhoist/gemmhoist.h"

/* A linker that drops libraries without use (--as-needed, many a distribution's default) must see one. */
__attribute__((used, visibility("hidden")))
const char* (*const gemmhoist_blas_shim_needs)(void) = gemmhoist_version;
