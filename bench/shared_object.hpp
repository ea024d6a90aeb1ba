// SharedObject: a library found at run time, so that the benchmark builds and runs where peers are missing.
#pragma once

#include <string>
#include <vector>

namespace gemmhoist::bench {

// Loaded libraries stay loaded: CUDA's and OpenBLAS' cannot be unloaded safely.
class SharedObject {
 public:
  SharedObject() = default;
  // The first of `candidates` (paths or sonames) that loads. Empty candidates are skipped.
  explicit SharedObject(const std::vector<std::string>& candidates);

  bool loaded() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }    // of what was loaded, as the loader resolved it
  const std::string& error() const { return error_; }  // why nothing was

  // Fills `function` with the symbol's address; false where there is none.
  template <class Function>
  bool bind(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(find(symbol));
    return function != nullptr;
  }

 private:
  void* find(const char* symbol) const;

  void* handle_ = nullptr;
  std::string path_;
  std::string error_;
};

}  // namespace gemmhoist::bench
