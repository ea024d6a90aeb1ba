// FencedFloats: an array that ends where a page without access begins, and starts as NaN.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <limits>
#include <new>

namespace gemmhoist::kernels::testing {

class FencedFloats {
 public:
  explicit FencedFloats(std::size_t count) : count_(count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t body = (count * sizeof(float) + page - 1) / page * page;
    mapped_ = body + page;
    base_ = static_cast<char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + body, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = reinterpret_cast<float*>(base_ + body) - count;
    for (std::size_t i = 0; i < count; ++i) data_[i] = std::numeric_limits<float>::quiet_NaN();
  }
  ~FencedFloats() { munmap(base_, mapped_); }
  FencedFloats(const FencedFloats&) = delete;
  FencedFloats& operator=(const FencedFloats&) = delete;

  float* data() { return data_; }
  std::size_t size() const { return count_; }
  float& operator[](std::size_t i) { return data_[i]; }

 private:
  std::size_t count_, mapped_;
  char* base_;
  float* data_;
};

}  // namespace gemmhoist::kernels::testing
