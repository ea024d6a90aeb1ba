// The operating system, thin: what the library asks of Linux, each in one place. No function throws; those
// that can fail say so by a null or false result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmhoist::os {

// --- time ---
std::int64_t monotonic_ns() noexcept;

// --- processors ---
// CPUs this process may use: affinity as it was at load (see remember_affinity), capped by the cgroup quota.
int usable_cpus() noexcept;
void remember_affinity() noexcept;  // called once by the load hook, on the loading thread

// --- threads ---
// Starts a detached thread: all signals blocked but SEGV, BUS, FPE, ILL, TRAP; the remembered affinity;
// cancellation disabled; `stack_bytes` of stack; default floating-point environment; name as shown by ps (15
// characters). False where none can be had.
bool start_thread(const char* name, std::size_t stack_bytes, void (*body)(void*), void* argument) noexcept;

// Disables cancellation of the calling thread for a scope.
class NoCancellation {
 public:
  NoCancellation() noexcept;
  ~NoCancellation();
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int previous_;
};

// Default floating-point environment for a scope; the host's own (rounding, flush modes, traps, flags) after
// it.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() noexcept;
  ~DefaultFloatingPoint();
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  alignas(8) unsigned char saved_[64];
};

// Futex on a 32-bit word: waits while *word == expected, until the deadline (monotonic ns; <= 0: none).
void futex_wait(const std::uint32_t* word, std::uint32_t expected, std::int64_t deadline_ns) noexcept;
void futex_wake(const std::uint32_t* word, int count) noexcept;

// --- memory ---
// Anonymous memory, untouched, 2 MiB-aligned, on huge pages where the system has them, not inherited by a
// forked child; null on failure. `unmap` takes the same size.
void* map_arena(std::size_t bytes) noexcept;
void unmap(void* memory, std::size_t bytes) noexcept;

// --- fork ---
// True in a process forked (by whatever means) after `arm_fork_detection`: reads one word of a WIPEONFORK
// page, or, where the kernel lacks that (before 4.14), compares process ids. Arming again in a child starts
// afresh there.
void arm_fork_detection() noexcept;
bool forked_since_armed() noexcept;

// --- loader ---
void* load_library(
    const char* name_or_path) noexcept;  // RTLD_NOW | RTLD_LOCAL; null on failure, dlerror cleared
void* find_symbol(void* library, const char* symbol) noexcept;

// --- files ---
// Writes all of `text`: one write(2) unless the kernel takes less at a time. SIGPIPE and SIGXFSZ do not reach
// the host, errno is kept, no cancellation point; false on failure.
bool write_all(int fd, const char* text, std::size_t bytes) noexcept;
// Opens `path` for appending ("%p" is expanded), makes it where it is missing, writes `text` at once and
// closes it. Keeping it open would be cheaper (by about 3 us a line) but wrong: a host that closes every
// descriptor, as daemons do, would find our lines in whatever file of its own gets the number next.
bool append_to_file(const char* path, const char* text, std::size_t bytes) noexcept;
// Replaces `path` by `text` atomically (temporary file beside it, rename); false on failure. "%p" is
// expanded.
bool write_file_atomically(const char* path, const char* text, std::size_t bytes) noexcept;
// Expands "%p" to the process id; false when the result does not fit.
bool expand_path(const char* pattern, char* path, std::size_t capacity) noexcept;
// Reads a small file whole: its length, or -1 where it cannot be read or does not fit in `capacity`.
std::int64_t read_small_file(const char* path, char* text, std::size_t capacity) noexcept;

}  // namespace gemmhoist::os
