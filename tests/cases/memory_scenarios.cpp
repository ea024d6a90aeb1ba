// Memory: operands in every kind of mapping, and products larger than the device.
#include <alloca.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "cases/exact_product.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

constexpr Extents kPanel{100, 90, 80};  // small enough for a thread's stack

// A file with `count` floats of `values`, mapped as asked, and gone from its directory.
float* mapped_file(const float* values, std::int64_t count, int protection, int flags) {
  char path[] = "/tmp/gemmhoist-case-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) return nullptr;
  unlink(path);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  const bool written = write(file, values, bytes) == static_cast<ssize_t>(bytes);
  void* mapping = mmap(nullptr, bytes, protection, flags, file, 0);
  close(file);
  return written && mapping != MAP_FAILED ? static_cast<float*>(mapping) : nullptr;
}

float* anonymous(std::int64_t count, int flags) {
  void* mapping = mmap(nullptr, static_cast<std::size_t>(count) * sizeof(float), PROT_READ | PROT_WRITE,
                       flags | MAP_ANONYMOUS, -1, 0);
  return mapping == MAP_FAILED ? nullptr : static_cast<float*>(mapping);
}

std::string multiply_at(const Extents& extents, const Operands& operands, const char* where) {
  for (const float beta : {0.0F, 0.5F}) {
    for (std::int64_t i = 0; i < extents.c_size(); ++i) operands.c[i] = 6;  // as fill_exact
    multiply(exact_call(extents, operands, beta));
    if (auto wrong = check_exact(extents, operands, beta); !wrong.empty()) return where + (": " + wrong);
  }
  return {};
}

std::string kinds_of_mappings() {
  for (const Extents& extents : {Extents{8, 8, 8}, Extents{big(), big() - 1, big() / 2}}) {
    Operands plain{anonymous(extents.a_size(), MAP_PRIVATE), anonymous(extents.b_size(), MAP_PRIVATE),
                   anonymous(extents.c_size(), MAP_PRIVATE)};
    fill_exact(extents, plain);
    Operands there = plain;
    there.a = mapped_file(plain.a, extents.a_size(), PROT_READ, MAP_PRIVATE);
    there.b = mapped_file(plain.b, extents.b_size(), PROT_READ, MAP_SHARED);
    if (there.a == nullptr || there.b == nullptr) return "no file mapping";
    if (auto wrong = multiply_at(extents, there, "read-only file"); !wrong.empty()) return wrong;
    there.c = mapped_file(plain.c, extents.c_size(), PROT_READ | PROT_WRITE, MAP_SHARED);
    if (there.c == nullptr) return "no shared file mapping";
    if (auto wrong = multiply_at(extents, there, "C in a shared file"); !wrong.empty()) return wrong;
    there = {anonymous(extents.a_size(), MAP_SHARED), anonymous(extents.b_size(), MAP_SHARED),
             anonymous(extents.c_size(), MAP_SHARED)};
    fill_exact(extents, there);
    if (auto wrong = multiply_at(extents, there, "shared memory"); !wrong.empty()) return wrong;
    there = {anonymous(extents.a_size(), MAP_PRIVATE | MAP_LOCKED), plain.b, plain.c};
    if (there.a == nullptr) continue;  // more than this process may lock
    std::memcpy(there.a, plain.a, static_cast<std::size_t>(extents.a_size()) * sizeof(float));
    if (auto wrong = multiply_at(extents, there, "locked memory"); !wrong.empty()) return wrong;
  }
  return {};
}

std::string on_the_stack() {
  const auto array = [](std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); };
  const Operands operands{static_cast<float*>(alloca(array(kPanel.a_size()))),
                          static_cast<float*>(alloca(array(kPanel.b_size()))),
                          static_cast<float*>(alloca(array(kPanel.c_size())))};
  fill_exact(kPanel, operands);
  return multiply_at(kPanel, operands, "stack");
}

std::string all_mappings() {
  if (auto wrong = kinds_of_mappings(); !wrong.empty()) return wrong;
  return on_the_stack();
}

// Read-only pages, remapped and gone between calls: nothing may be kept about an address.
std::string mappings_that_change() {
  const Extents extents{big(), big(), 64};
  for (int round = 0; round < 10; ++round) {
    const Operands operands{anonymous(extents.a_size(), MAP_PRIVATE),
                            anonymous(extents.b_size(), MAP_PRIVATE),
                            anonymous(extents.c_size(), MAP_PRIVATE)};
    fill_exact(extents, operands);
    multiply(exact_call(extents, operands));
    if (auto wrong = check_exact(extents, operands); !wrong.empty()) return wrong;
    munmap(operands.a, static_cast<std::size_t>(extents.a_size()) * sizeof(float));
    munmap(operands.b, static_cast<std::size_t>(extents.b_size()) * sizeof(float));
    munmap(operands.c, static_cast<std::size_t>(extents.c_size()) * sizeof(float));
  }
  return {};
}

// The driver makes the device smaller than each of these.
std::string larger_than_the_device() {
  const std::int64_t n = 4 * big();
  for (const Extents& extents :
       {Extents{n, n, big() / 2}, Extents{n, big() / 2, n}, Extents{big() / 2, n, n}, Extents{n, n, 3}}) {
    if (auto wrong = exact_product(extents, 0.5F); !wrong.empty()) return wrong;
  }
  return {};
}

// Under the limit on locked memory that the driver sets.
std::string little_locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur != 64 << 10) return "the limit is not 64 KiB";
  for (int i = 0; i < 3; ++i) {
    if (auto wrong = big_right(); !wrong.empty()) return wrong;
  }
  return {};
}

constexpr Scenario kScenarios[] = {
    {"all mappings", all_mappings},
    {"mappings that change", mappings_that_change},
    {"larger than the device", larger_than_the_device},
    {"little locked memory", little_locked_memory},
};

}  // namespace

std::span<const Scenario> memory_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
