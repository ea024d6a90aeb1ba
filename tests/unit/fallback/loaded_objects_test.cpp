#include "fallback/loaded_objects.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace gemmhoist::fallback {
namespace {

TEST(LoadedObjects, FindsTheObjectOfAnAddress) {
  const LoadedObject libc = object_of(dlsym(RTLD_DEFAULT, "fork"));
  ASSERT_TRUE(libc);
  EXPECT_NE(std::string(libc.path).find("libc"), std::string::npos);
  int on_the_stack = 0;
  EXPECT_FALSE(object_of(&on_the_stack));
}

TEST(LoadedObjects, TellsDefinitionsFromReferences) {
  const LoadedObject libc = object_of(dlsym(RTLD_DEFAULT, "fork"));
  EXPECT_TRUE(defines(libc, "fork"));
  EXPECT_TRUE(defines(libc, "qsort"));
  EXPECT_FALSE(defines(libc, "cblas_sgemm"));
  EXPECT_FALSE(defines(libc, "__tls_get_addr"));  // libc refers to it; the loader defines it
  EXPECT_TRUE(defines(object_of(dlsym(RTLD_DEFAULT, "__tls_get_addr")), "__tls_get_addr"));
  EXPECT_FALSE(defines(LoadedObject{}, "fork"));
}

TEST(LoadedObjects, ListsDefinersOnceEachAndEnds) {
  const LoadedObject first = object_defining("fork", 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first.base, object_of(dlsym(RTLD_DEFAULT, "fork")).base);
  EXPECT_FALSE(object_defining("fork", 1));
  EXPECT_FALSE(object_defining("no_such_symbol_anywhere", 0));
}

TEST(LoadedObjects, HoldsWhatIsLoadedAndKnowsItself) {
  EXPECT_NE(hold(object_of(dlsym(RTLD_DEFAULT, "fork"))), nullptr);
  EXPECT_EQ(hold(LoadedObject{}), nullptr);
  EXPECT_TRUE(is_ours(object_of(reinterpret_cast<const void*>(&object_defining))));
  EXPECT_FALSE(is_ours(object_of(dlsym(RTLD_DEFAULT, "fork"))));
}

}  // namespace
}  // namespace gemmhoist::fallback
