// Extents of a product as the tools for kernels take them: MxNxK.
#pragma once

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace gemmhoist::bench {

struct Extents {
  std::int32_t m, n, k;
};

// Throws std::invalid_argument, naming the text that is none. `otherwise`: where there are no texts.
inline std::vector<Extents> parse_extents(const std::vector<std::string>& texts,
                                          const std::vector<Extents>& otherwise) {
  if (texts.empty()) return otherwise;
  std::vector<Extents> list;
  for (const std::string& text : texts) {
    Extents extents{};
    char rest = 0;
    if (std::sscanf(text.c_str(), "%dx%dx%d%c", &extents.m, &extents.n, &extents.k, &rest) != 3 ||
        extents.m < 1 || extents.n < 1 || extents.k < 1)
      throw std::invalid_argument("--shape " + text + ": expected MxNxK");
    list.push_back(extents);
  }
  return list;
}

}  // namespace gemmhoist::bench
