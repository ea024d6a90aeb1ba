// The BLAS libraries that a machine may have; a test that needs one which is absent skips by name.
#pragma once

#include <string>

#include "abi/process.hpp"

namespace gemmhoist::test {

inline std::string multiarch() {
#if defined(__aarch64__)
  return "/usr/lib/aarch64-linux-gnu/";
#else
  return "/usr/lib/x86_64-linux-gnu/";
#endif
}

// Empty where the file is not there; tests of the BLAS have their files in the same folders.
inline std::string directory_of(const std::string& file) {
  const std::string path = first_existing({multiarch() + file});
  return path.substr(0, path.rfind('/') + (path.empty() ? 1 : 0));
}

// Directories that hold a flavour of libblas.so.3 (or libblas64.so.3), for LD_LIBRARY_PATH.
inline std::string openblas_directory() {
  return first_existing(
      {multiarch() + "openblas-pthread", multiarch() + "openblas-openmp", multiarch() + "openblas-serial"});
}
inline std::string openblas64_directory() {
  return first_existing({multiarch() + "openblas64-pthread", multiarch() + "openblas64-openmp"});
}
inline std::string reference_directory() {
  return directory_of("blas/libblas.so.3");
}
inline std::string reference64_directory() {
  return directory_of("blas64/libblas64.so.3");
}

}  // namespace gemmhoist::test

// Skips the test that stands here when `path` is empty.
#define GEMMHOIST_NEEDS(path, what) \
  if ((path).empty()) GTEST_SKIP() << what << " is not installed here"
