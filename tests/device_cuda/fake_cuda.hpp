// The controls of the fake driver: C functions that it exports beside the driver's own, found by dlsym.
//
// The environment variable FAKE_CUDA sets the same before main, for programs that know nothing of it: a
// comma-separated list such as "version=11080", "init=100", "fail=17:719:sticky", "hang=1".
#pragma once

#include <cstddef>

extern "C" {
// Everything as after loading, the environment's settings included. Nothing may be in use.
void fake_cuda_reset();
// Settings: "version", "devices", "arch", "memory" (bytes), "mode" (compute mode), "pitch" (largest of a 2-D
// copy), "shared" (bytes a block may opt in to), "init" (what cuInit answers), "ranges" (0: the driver does
// not tell address ranges), "hang" (1: no stream and no event is ever reached).
void fake_cuda_set(const char* setting, long long value);
// The k-th driver call from now (1: the next) answers `code`; with `sticky` every later one too. k = 0: none.
void fake_cuda_fail(long k, int code, int sticky);
// The same for the k-th call of one function ("cuMemAlloc_v2").
void fake_cuda_fail_function(const char* function, long k, int code, int sticky);
// Driver calls since the last reset, and their names, one a line.
long fake_cuda_calls();
std::size_t fake_cuda_log(char* text, std::size_t capacity);
// How many are alive: "contexts", "allocations", "registrations", "modules", "streams", "events"; "blocking
// streams": those that wait for the legacy default stream, and it for them.
long fake_cuda_live(const char* what);
// True where a call of another thread has broken a capture in GLOBAL mode since the last reset.
int fake_cuda_capture_broken();
}
