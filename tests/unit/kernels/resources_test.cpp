// What the compiler says that the kernels use, against what their descriptors promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "core/checked.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::kernels {
namespace {

struct Usage {
  int arch = 0;
  int registers = -1;
  int stack = -1, spill_stores = -1, spill_loads = -1;
};

// Per multiprocessor, by the CUDA programming guide's table of compute capabilities.
struct SmLimits {
  int arch, threads, blocks, shared_bytes, block_overhead_bytes, block_shared_bytes;
};
constexpr int kRegisters = 65536;
constexpr SmLimits kLimits[] = {
    {75, 1024, 16, 64 * 1024, 0, 64 * 1024},      {80, 2048, 32, 164 * 1024, 1024, 163 * 1024},
    {86, 1536, 16, 100 * 1024, 1024, 99 * 1024},  {89, 1536, 24, 100 * 1024, 1024, 99 * 1024},
    {90, 2048, 32, 228 * 1024, 1024, 227 * 1024}, {100, 2048, 32, 228 * 1024, 1024, 227 * 1024},
    {120, 1536, 24, 100 * 1024, 1024, 99 * 1024},
};

std::multimap<std::string, Usage> read_reports() {
  std::multimap<std::string, Usage> usages;
  const char* paths = std::getenv("GEMMHOIST_TEST_KERNEL_REPORTS");  // set by the build, ':' between
  if (paths == nullptr) return usages;
  const std::regex entry("Compiling entry function '(\\w+)' for 'sm_(\\d+)a?'");
  const std::regex spills("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads");
  const std::regex registers("Used (\\d+) registers");
  std::stringstream list(paths);
  for (std::string path; std::getline(list, path, ':');) {
    std::ifstream report(path);
    EXPECT_TRUE(report.good()) << path;
    std::string name;
    Usage usage;
    std::smatch match;
    for (std::string line; std::getline(report, line);) {
      if (std::regex_search(line, match, entry)) {
        name = match[1];
        usage = {.arch = std::stoi(match[2])};
      } else if (std::regex_search(line, match, spills)) {
        usage.stack = std::stoi(match[1]);
        usage.spill_stores = std::stoi(match[2]);
        usage.spill_loads = std::stoi(match[3]);
      } else if (std::regex_search(line, match, registers)) {
        usage.registers = std::stoi(match[1]);
        usages.insert({name, usage});
      }
    }
  }
  return usages;
}

// Blocks that an SM holds at once; 0 where one block asks for more shared memory than a block may have.
int resident_blocks(const KernelDescriptor& kernel, const Usage& usage, const SmLimits& sm) {
  if (kernel.shared_bytes > sm.block_shared_bytes) return 0;
  // Registers are given to a warp, 256 at a time.
  const int warps = kernel.threads / 32;
  const int a_warp = static_cast<int>(round_up(usage.registers * 32, 256));
  int blocks = std::min({sm.blocks, sm.threads / kernel.threads, kRegisters / (a_warp * warps)});
  if (kernel.shared_bytes > 0)
    blocks = std::min(blocks, sm.shared_bytes / (kernel.shared_bytes + sm.block_overhead_bytes));
  return blocks;
}

const SmLimits& limits(int arch) {
  return *std::find_if(std::begin(kLimits), std::end(kLimits),
                       [&](const SmLimits& l) { return l.arch == arch; });
}

class CompilerReport : public ::testing::Test {
 protected:
  void SetUp() override {
    if (images().empty()) GTEST_SKIP() << "built without nvcc";
    usages_ = read_reports();
  }
  std::multimap<std::string, Usage> usages_;
};

TEST_F(CompilerReport, HasEveryKernelOnceForEachGroupThatContainsIt) {
  for (const KernelDescriptor& kernel : known()) {
    std::size_t expected = 0;
    for (const Image& image : images()) expected += contains(image, kernel);
    EXPECT_EQ(usages_.count(kernel.name), expected) << kernel.name;
  }
}

TEST_F(CompilerReport, NoKernelSpillsOrHasAStack) {
  for (const auto& [name, usage] : usages_) {
    SCOPED_TRACE(name + " sm_" + std::to_string(usage.arch));
    EXPECT_EQ(usage.stack, 0);
    EXPECT_EQ(usage.spill_stores, 0);
    EXPECT_EQ(usage.spill_loads, 0);
    EXPECT_LE(usage.registers, 255);
  }
}

TEST_F(CompilerReport, AsManyBlocksAnSmAsPromised) {
  for (const KernelDescriptor& kernel : all()) {
    const auto [first, last] = usages_.equal_range(kernel.name);
    for (auto it = first; it != last; ++it) {
      const auto& limit = limits(it->second.arch);
      const int blocks = resident_blocks(kernel, it->second, limit);
      if (blocks == 0) continue;  // the device leaves this kernel out
      EXPECT_GE(blocks, kernel.blocks_per_sm) << kernel.name << " sm_" << limit.arch;
    }
  }
}

}  // namespace
}  // namespace gemmhoist::kernels
