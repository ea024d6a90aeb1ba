#include "device/cuda/kernel_modules.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device/cuda/cuda_device.hpp"
#include "fake_driver.hpp"

namespace gemmhoist::device::cuda {
namespace {

using kernels::Image;
using test::FakeDriver;

Image image(const char* group, std::int32_t arch, std::int32_t ptx_arch = 0, const char* data = "fake:") {
  return {group, data, std::strlen(data) + 1, arch, ptx_arch};
}

std::vector<std::string> groups_in_order(const std::vector<Image>& images, std::int32_t arch) {
  std::vector<std::string> names;
  for (const std::size_t i : image_order(images, arch)) names.emplace_back(images[i].group);
  return names;
}

TEST(ImageOrder, NearestMachineCodeFirstThenPtxAndNothingElse) {
  const std::vector<Image> images = {image("sm_75", 75),       image("sm_80", 80),  image("sm_86", 86),
                                     image("sm_89", 89),       image("sm_90a", 90), image("sm_100", 100),
                                     image("sm_120", 120, 120)};
  using Names = std::vector<std::string>;
  EXPECT_EQ(groups_in_order(images, 75), (Names{"sm_75"}));
  EXPECT_EQ(groups_in_order(images, 80), (Names{"sm_80"}));
  EXPECT_EQ(groups_in_order(images, 87), (Names{"sm_86", "sm_80"}));
  EXPECT_EQ(groups_in_order(images, 89), (Names{"sm_89", "sm_86", "sm_80"}));
  EXPECT_EQ(groups_in_order(images, 90), (Names{"sm_90a"}));
  EXPECT_EQ(groups_in_order(images, 103), (Names{"sm_100"}));
  EXPECT_EQ(groups_in_order(images, 121), (Names{"sm_120"}));
  EXPECT_EQ(groups_in_order(images, 130), (Names{"sm_120"})) << "by its PTX";
  EXPECT_EQ(groups_in_order(images, 70), Names{});
}

TEST(ImageOrder, CodeForOneCapabilityRunsOnNoOther) {
  const std::vector<Image> images = {image("sm_80", 80, 80), image("sm_100a", 100)};
  EXPECT_EQ(groups_in_order(images, 103), std::vector<std::string>{"sm_80"});
}

// Loads on the fake driver, in a context that the fixture makes and ends.
class LoadKernels : public ::testing::Test {
 protected:
  LoadKernels() {
    fake.reset();
    static_cast<void>(fake.table.init(0));
    static_cast<void>(fake.table.ctx_create(&context, 0, 0));
  }
  ~LoadKernels() override { static_cast<void>(fake.table.ctx_destroy(context)); }

  static KernelDescriptor kernel(const char* name, std::int32_t min_arch, std::int32_t shared_bytes = 0) {
    return {name, KernelRole::gemm, Precision::fp32, min_arch, 16, 16, 16, 1, 256, shared_bytes, 1};
  }
  std::vector<std::string> load(const std::vector<KernelDescriptor>& registry,
                                const std::vector<Image>& images, std::int32_t arch = 90) {
    loaded = {};
    status = load_kernels(fake.table, {arch, 227 * 1024}, registry, images, loaded);
    std::vector<std::string> names;
    for (const KernelDescriptor& found : loaded.descriptors) names.emplace_back(found.name);
    return names;
  }

  FakeDriver& fake = FakeDriver::load();
  Context context = nullptr;
  LoadedKernels loaded;
  Status status;
};

using Names = std::vector<std::string>;

TEST_F(LoadKernels, TakesWhatTheDeviceCanRunInTheOrderOfTheRegistry) {
  const std::vector<KernelDescriptor> registry = {
      kernel("next_sm100", 100), kernel("big_sm80", 80, 96 * 1024), kernel("huge_sm80", 80, 512 * 1024),
      kernel("small_sm75", 75)};
  EXPECT_EQ(load(registry, {image("sm_90a", 90, 0, "fake:small_sm75 big_sm80 huge_sm80 next_sm100")}),
            (Names{"big_sm80", "small_sm75"}));
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(loaded.functions.size(), 2u);
}

TEST_F(LoadKernels, LooksInOlderImagesForWhatTheBestOneLacks) {
  const std::vector<KernelDescriptor> registry = {kernel("a", 75), kernel("b", 75)};
  EXPECT_EQ(load(registry, {image("sm_80", 80, 0, "fake:a b"), image("sm_86", 86, 0, "fake:b")}, 86),
            (Names{"a", "b"}));
  EXPECT_EQ(loaded.modules.size(), 2u);
}

TEST_F(LoadKernels, LoadsNoImageThatIsNotNeeded) {
  const std::vector<KernelDescriptor> registry = {kernel("a", 75)};
  EXPECT_EQ(load(registry, {image("sm_80", 80, 0, "fake:a"), image("sm_86", 86, 0, "fake:a")}, 86),
            Names{"a"});
  EXPECT_EQ(fake.live("modules"), 1);
}

TEST_F(LoadKernels, PassesOverImagesThatTheDriverCannotTake) {
  const std::vector<KernelDescriptor> registry = {kernel("a", 75)};
  for (const char* refusal : {"fake:error=209", "fake:error=200", "fake:error=218", "fake:error=222"}) {
    EXPECT_EQ(load(registry, {image("sm_86", 86, 0, refusal), image("sm_80", 80, 0, "fake:a")}, 86),
              Names{"a"})
        << refusal;
  }
}

TEST_F(LoadKernels, IsUnavailableWhereTheDriverIsTooOldForEveryImage) {
  EXPECT_EQ(load({kernel("a", 75)}, {image("sm_90a", 90, 0, "fake:error=222")}), Names{});
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_EQ(status.native(), 222);
}

TEST_F(LoadKernels, KeepsNoModuleInWhichItFoundNothing) {
  load({kernel("a", 75)}, {image("sm_90a", 90, 0, "fake:b")});
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_EQ(fake.live("modules"), 0);
}

TEST_F(LoadKernels, ReportsLackOfMemoryAsSuch) {
  load({kernel("a", 75)}, {image("sm_90a", 90, 0, "fake:error=2")});
  EXPECT_EQ(status.code(), StatusCode::out_of_memory);
}

TEST_F(LoadKernels, LoadsTheCodeOfEveryKernelBeforeItsFirstLaunch) {
  load({kernel("a", 75), kernel("b", 75)}, {image("sm_90a", 90, 0, "fake:a b")});
  const auto log = fake.log();
  EXPECT_EQ(std::count(log.begin(), log.end(), "cuFuncLoad"), 2);

  DriverTable older = fake.table;  // a driver before 12.4
  older.func_load = nullptr;
  LoadedKernels by_attribute;
  const std::vector<KernelDescriptor> registry = {kernel("a", 75)};
  const std::vector<Image> images = {image("sm_90a", 90, 0, "fake:a")};
  EXPECT_TRUE(load_kernels(older, {90, 227 * 1024}, registry, images, by_attribute).ok());
  EXPECT_EQ(fake.log().back(), "cuFuncGetAttribute");
}

}  // namespace
}  // namespace gemmhoist::device::cuda
