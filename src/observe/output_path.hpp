// Where a file option points, fixed while the working directory is still the one it was meant for.
#pragma once

#include <cstddef>

namespace gemmhoist::observe {

// Makes `path` absolute against the working directory of now, into `absolute`; false where it does not fit.
// "%p" stays.
bool make_absolute(const char* path, char* absolute, std::size_t capacity) noexcept;

// Whether a forked child may write there as well: its process id makes it another file.
bool names_process(const char* path) noexcept;

}  // namespace gemmhoist::observe
