#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "decide/decide.hpp"

namespace gemmhoist::decide {
namespace {

TEST(GpuTimes, NothingLearntCorrectsNothing) {
  const GpuTimeLearner learner;
  for (const double seconds : {0.0, 1e-6, 1e-3, 1.0, 1e6}) EXPECT_EQ(learner.correction(seconds), 1);
}

TEST(GpuTimes, FollowsWhatCallsOfASizeTake) {
  GpuTimeLearner learner;
  learner.learn(1e-3, 3e-3);
  EXPECT_GT(learner.correction(1e-3), 1.5);  // the first is believed by half
  for (int i = 0; i < 40; ++i) learner.learn(1e-3, 3e-3);
  EXPECT_NEAR(learner.correction(1e-3), 3, 0.01);
  for (int i = 0; i < 40; ++i) learner.learn(1e-3, 0.9e-3);
  EXPECT_NEAR(learner.correction(1e-3), 0.9, 0.01);
}

TEST(GpuTimes, ASmallCallsOverheadFadesWithSize) {
  GpuTimeLearner learner;
  for (int i = 0; i < 40; ++i) learner.learn(100e-6, 500e-6);
  EXPECT_NEAR(learner.correction(100e-6), 5, 0.05);
  EXPECT_NEAR(learner.correction(3.2e-3), 1.125, 0.02);  // five octaves up: 4 / 32
  EXPECT_NEAR(learner.correction(20e-6), 5, 0.05);       // smaller still: at least as bad
}

TEST(GpuTimes, EachSizeIsItsOwn) {
  GpuTimeLearner learner;
  for (int i = 0; i < 40; ++i) {
    learner.learn(100e-6, 500e-6);
    learner.learn(20e-3, 20e-3);
  }
  EXPECT_NEAR(learner.correction(20e-3), 1, 0.01);
  EXPECT_NEAR(learner.correction(100e-6), 5, 0.05);
}

TEST(GpuTimes, OutliersAndNonsenseAreBounded) {
  GpuTimeLearner learner;
  learner.learn(1e-3, 100);
  EXPECT_LE(learner.correction(1e-3), 4);
  GpuTimeLearner untouched;
  for (const double bad : {0.0, -1.0, std::nan("")}) {
    untouched.learn(bad, 1e-3);
    untouched.learn(1e-3, bad);
  }
  EXPECT_EQ(untouched.correction(1e-3), 1);
}

TEST(GpuTimes, AGpuThatStaysFarSlowerIsFoundOutWithinAFewCalls) {
  GpuTimeLearner learner;
  int calls = 0;
  for (; calls < 100 && learner.correction(1e-3) < 200; ++calls) learner.learn(1e-3, 0.3);
  EXPECT_LE(calls, 16);
}

TEST(GpuTimes, ForgivenessDrawsBackToTheEstimate) {
  GpuTimeLearner learner;
  for (int i = 0; i < 40; ++i) learner.learn(1e-3, 8e-3);
  for (int i = 0; i < 1000; ++i) learner.forgive(1e-3);
  EXPECT_NEAR(learner.correction(1e-3), 1, 0.01);
}

TEST(GpuTimes, ManyThreadsMayLearn) {
  GpuTimeLearner learner;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&learner] {
      for (int i = 0; i < 10000; ++i) learner.learn(1e-3, 2e-3);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(learner.correction(1e-3), 2, 0.01);
}

}  // namespace
}  // namespace gemmhoist::decide
