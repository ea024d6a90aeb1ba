// Report: counts of checks done and failed, and the first failures of each kernel in words.
#pragma once

#include <cstdio>
#include <string>

namespace gemmhoist::gpu_kernels {

class Report {
 public:
  void check(bool ok, const std::string& what) {
    ++checks_;
    if (ok) return;
    ++failed_;
    constexpr int kShown = 20;  // the first tell what is wrong; a thousand more tell nothing
    if (failed_ <= kShown) std::printf("FAIL %s\n", what.c_str());
  }
  long checks() const { return checks_; }
  long failed() const { return failed_; }

 private:
  long checks_ = 0, failed_ = 0;
};

}  // namespace gemmhoist::gpu_kernels
