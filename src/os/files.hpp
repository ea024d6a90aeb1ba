// AtomicFile: a file that appears whole or not at all.
#pragma once

#include <cstddef>

namespace gemmhoist::os {

// Longest path that the library writes to, terminator included, "%p" expanded. Callers may have 16 KiB of
// stack, so this is no PATH_MAX.
inline constexpr std::size_t kPathBytes = 1024;

// Written in pieces to a temporary file beside `pattern` ("%p": the process id), which takes its place by
// commit(). What exists there and is no regular file (/dev/stderr, a FIFO) is written to directly. Buffers
// are mapped: little stack, no heap.
class AtomicFile {
 public:
  AtomicFile() noexcept = default;
  ~AtomicFile();  // without commit(): nothing remains
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  bool open(const char* pattern) noexcept;
  bool append(const char* text, std::size_t bytes) noexcept;
  bool commit() noexcept;

 private:
  struct State;
  bool flush() noexcept;
  void discard() noexcept;
  State* state_ = nullptr;
};

}  // namespace gemmhoist::os
