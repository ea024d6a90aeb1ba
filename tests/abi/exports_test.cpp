// What the library shows to the dynamic linker: names, needs, flags, and the jump at the end of each
// spelling.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "abi/process.hpp"

namespace gemmhoist::test {
namespace {

const std::set<std::string> kServed = {
    "cblas_sgemm",       "sgemm_",         "sgemm",
    "cblas_sgemm64_",    "cblas_sgemm_64", "sgemm_64_",
    "scipy_cblas_sgemm", "scipy_sgemm_",   "scipy_cblas_sgemm64_",
    "scipy_sgemm_64_",
};
const std::set<std::string> kOwn = {
    "gemmhoist_version",         "gemmhoist_stat",      "gemmhoist_stat_name",
    "gemmhoist_set_thread_mode", "gemmhoist_gpu_state",
};

std::set<std::string> words_after(const std::string& text, const std::regex& pattern) {
  std::set<std::string> words;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    words.insert((*match)[1]);
  }
  return words;
}

TEST(Exports, AreTheReviewedList) {
  std::set<std::string> expected = kServed;
  expected.insert(kOwn.begin(), kOwn.end());

  std::ifstream map(std::getenv("GEMMHOIST_TEST_EXPORTS_MAP"));
  ASSERT_TRUE(map);
  std::stringstream text;
  text << map.rdbuf();
  const std::string all = text.str();
  EXPECT_EQ(words_after(all.substr(all.find("global:")), std::regex(R"((\w+);)")), expected);

  const Result nm = run({"nm", "-D", "--defined-only", library()});
  if (nm.status == 127) GTEST_SKIP() << "nm is not installed here";
  EXPECT_EQ(words_after(nm.out, std::regex(R"(\b[A-Z] (\w+)\b)")), expected);
}

TEST(Exports, NeedsLibcAlone) {
  const Result readelf = run({"readelf", "-d", library()});
  if (readelf.status == 127) GTEST_SKIP() << "readelf is not installed here";
  for (const std::string& needed : words_after(readelf.out, std::regex(R"(\(NEEDED\).*\[([^\]]+)\])"))) {
    // libdl and libpthread are parts of libc since 2.34 and were before, wherever they stood; libm is not,
    // and its loading would be most of what a preload costs. Without optimisation, g++ calls even ceil and
    // sqrt.
#ifdef __OPTIMIZE__
    const std::regex allowed(R"((libc|libdl|libpthread|ld-linux.*)\.so\.\d+)");
#else
    const std::regex allowed(R"((libc|libm|libdl|libpthread|ld-linux.*)\.so\.\d+)");
#endif
    EXPECT_TRUE(std::regex_match(needed, allowed)) << needed;
  }
  EXPECT_EQ(words_after(readelf.out, std::regex(R"(\(SONAME\).*\[([^\]]+)\])")),
            std::set<std::string>{"libgemmhoist.so.0"});
  EXPECT_EQ(readelf.out.find("STATIC_TLS"), std::string::npos);
  EXPECT_NE(readelf.out.find("NODELETE"), std::string::npos);
  EXPECT_EQ(readelf.out.find("TEXTREL"), std::string::npos);
}

// Every thread of every host pays for our thread-local storage out of its stack.
TEST(Exports, ThreadLocalStorageIsAFewBytes) {
  const Result readelf = run({"readelf", "-lW", library()});
  if (readelf.status == 127) GTEST_SKIP() << "readelf is not installed here";
  std::smatch tls;
  const std::regex line(R"(TLS\s+0x\w+\s+0x\w+\s+0x\w+\s+0x\w+\s+0x(\w+))");
  if (!std::regex_search(readelf.out, tls, line)) return;
  EXPECT_LE(std::stoul(tls[1], nullptr, 16), 256u);
}

TEST(Exports, SpellingsEndInAJump) {
  if (std::getenv("GEMMHOIST_TEST_INSTRUMENTED") != nullptr) GTEST_SKIP() << "sanitizers keep frames";
  const Result objdump = run({"objdump", "-d", "--no-show-raw-insn", library()});
  if (objdump.status == 127) GTEST_SKIP() << "objdump is not installed here";
  const std::regex tail_jump(R"(\s(jmp\s+\*%r|br\s+x))");
  const auto body_of = [&](std::string::size_type begin) {
    return objdump.out.substr(begin, objdump.out.find("\n\n", begin) - begin);
  };
  for (const std::string& name : kServed) {
    const auto begin = objdump.out.find("<" + name + ">:");
    ASSERT_NE(begin, std::string::npos) << name;
    const std::string body = body_of(begin);
    EXPECT_TRUE(std::regex_search(body, tail_jump)) << name;
    // Never through a frame of the forwarder's own; and nothing is called before it either, where the
    // compiler was asked to inline: a small product takes 90 ns.
    const bool optimized = std::getenv("GEMMHOIST_TEST_OPTIMIZED") != nullptr;
    EXPECT_EQ(body.find(optimized ? "call   " : "call   *"), std::string::npos) << name;
  }
  // What is not settled there is settled behind it, and jumps too.
  const std::regex behind(R"(<\S*(cblas|fortran)_examined\S*>:)");
  std::size_t found = 0;
  for (std::sregex_iterator at(objdump.out.begin(), objdump.out.end(), behind), end; at != end;
       ++at, ++found) {
    const std::string body = body_of(static_cast<std::string::size_type>(at->position()));
    EXPECT_TRUE(std::regex_search(body, tail_jump)) << at->str();
    EXPECT_EQ(body.find("call   *"), std::string::npos) << at->str();
  }
  EXPECT_EQ(found, kServed.size());
}

}  // namespace
}  // namespace gemmhoist::test
