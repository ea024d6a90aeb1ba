#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "decide/decide.hpp"

namespace gemmhoist::decide {
namespace {

constexpr double kFlops1000 = 2e9;  // of 1000 cubed

MachineProfile threads(int n) {
  MachineProfile p;
  p.host_threads = n;
  return p;
}

TEST(CpuPrior, FavoursTheCpu) {
  // OpenBLAS on 16 cores took so long; the prior must not promise less than that is worth.
  struct Seen {
    std::int64_t n;
    double seconds;
  };
  for (const Seen seen :
       {Seen{512, 0.47e-3}, {1024, 2.2e-3}, {2048, 16e-3}, {4096, 118e-3}, {8192, 939e-3}}) {
    const double predicted = predict_cpu_seconds(seen.n, seen.n, seen.n, threads(16));
    EXPECT_LT(predicted, seen.seconds);
    EXPECT_GT(predicted, seen.seconds / 10);
  }
}

TEST(CpuPrior, ThinProductsAreBoundByMemory) {
  const double rank_one = predict_cpu_seconds(8192, 8192, 1, threads(16));
  EXPECT_GE(rank_one, 4.0 * 8192 * 8192 / 300e9);
  EXPECT_GT(rank_one, 10 * 2.0 * 8192 * 8192 / (16 * 120e9));
}

TEST(CpuRateLearner, CountsFromTheSecondCallOn) {
  CpuRateLearner learner;
  const MachineProfile p = threads(4);
  const double prior = learner.predict(1000, 1000, 1000, p);
  EXPECT_DOUBLE_EQ(prior, predict_cpu_seconds(1000, 1000, 1000, p));
  learner.learn(1000, 1000, 1000, 0.5);  // made the BLAS' threads
  EXPECT_DOUBLE_EQ(learner.predict(1000, 1000, 1000, p), prior);
  learner.learn(1000, 1000, 1000, 0.01);
  EXPECT_NEAR(learner.predict(1000, 1000, 1000, p), 0.01, 1e-7);
}

TEST(CpuRateLearner, ASlowFirstCallLeavesNoTraceEither) {
  CpuRateLearner learner;
  learner.learn(1000, 1000, 1000, 0.01);
  learner.learn(1000, 1000, 1000, 0.5);
  EXPECT_NEAR(learner.predict(1000, 1000, 1000, threads(4)), 0.01, 1e-7);
}

TEST(CpuRateLearner, OneSlowCallHardlyMovesItManyDo) {
  CpuRateLearner learner;
  const MachineProfile p = threads(4);
  for (int i = 0; i < 5; ++i) learner.learn(1000, 1000, 1000, 0.01);
  learner.learn(1000, 1000, 1000, 10);
  EXPECT_LT(learner.predict(1000, 1000, 1000, p), 0.0112);
  for (int i = 0; i < 30; ++i) learner.learn(1000, 1000, 1000, 0.03);  // somebody else has half the machine
  EXPECT_NEAR(learner.predict(1000, 1000, 1000, p), 0.03, 1e-6);
  learner.learn(1000, 1000, 1000, 0.01);  // and has gone
  EXPECT_NEAR(learner.predict(1000, 1000, 1000, p), 0.01, 1e-6);
}

TEST(CpuRateLearner, NonsenseTeachesNothing) {
  CpuRateLearner learner;
  const MachineProfile p = threads(4);
  const double prior = learner.predict(1000, 1000, 1000, p);
  for (int i = 0; i < 4; ++i) {
    learner.learn(1000, 1000, 1000, 0);
    learner.learn(1000, 1000, 1000, -1);
    learner.learn(1000, 1000, 1000, std::numeric_limits<double>::quiet_NaN());
    learner.learn(1000, 1000, 1000, 1e-12);
    learner.learn(0, 1000, 1000, 1);
  }
  EXPECT_DOUBLE_EQ(learner.predict(1000, 1000, 1000, p), prior);
}

void teach(CpuRateLearner& learner, std::int64_t n, double rate) {
  const double size = static_cast<double>(n);
  for (int i = 0; i < 2; ++i) learner.learn(n, n, n, 2 * size * size * size / rate);
}

TEST(CpuRateLearner, InterpolatesBetweenNeighbours) {
  CpuRateLearner learner;
  const MachineProfile p = threads(64);
  teach(learner, 256, 1e11);
  teach(learner, 1024, 4e11);  // six doublings of the flops later
  const double rate = 2.0 * 512 * 512 * 512 / learner.predict(512, 512, 512, p);
  EXPECT_NEAR(rate, 2e11, 1e7);
}

TEST(CpuRateLearner, ExtrapolatesInTheCpusFavour) {
  CpuRateLearner learner;
  const MachineProfile p = threads(64);
  teach(learner, 1024, 4e11);
  const double smaller = 2.0 * 512 * 512 * 512 / learner.predict(512, 512, 512, p);
  EXPECT_NEAR(smaller, 4e11, 1e7);
  const double larger = 2.0 * 2048 * 2048 * 2048 / learner.predict(2048, 2048, 2048, p);
  EXPECT_GT(larger, 4e11);
  EXPECT_LE(larger, 64 * 120e9);
  // Far away, and for another thinness, the prior.
  EXPECT_DOUBLE_EQ(learner.predict(16, 16, 16, p), predict_cpu_seconds(16, 16, 16, p));
  EXPECT_DOUBLE_EQ(learner.predict(16384, 4, 16384, p), predict_cpu_seconds(16384, 4, 16384, p));
}

TEST(CpuRateLearner, SnapshotAndPreloadCarryWhatIsConfirmed) {
  CpuRateLearner learner, other;
  teach(learner, 1000, 3e11);
  learner.learn(4000, 4000, 4000, 1);  // once only
  MachineProfile p = threads(8);
  learner.snapshot(p.cpu);
  int learnt = 0;
  for (const auto& row : p.cpu.flops_per_s)
    for (const double rate : row) learnt += rate > 0;
  EXPECT_EQ(learnt, 1);
  EXPECT_NEAR(predict_cpu_seconds(1000, 1000, 1000, p), kFlops1000 / 3e11, 1e-9);
  teach(other, 1000, 5e11);  // fresher than the saved one
  other.preload(p.cpu);
  EXPECT_NEAR(other.predict(1000, 1000, 1000, p), kFlops1000 / 5e11, 1e-9);
  CpuRateLearner fresh;
  fresh.preload(p.cpu);
  EXPECT_NEAR(fresh.predict(1000, 1000, 1000, p), kFlops1000 / 3e11, 1e-9);
}

// --- looking again ---

// Calls of one size: the GPU serves them, but for those that look at the CPU. Seconds in all, and those
// looks.
struct Day {
  double seconds = 0;
  int looks = 0;
};
Day serve(CpuRateLearner& learner, int calls, double cpu_s, double gpu_s) {
  const MachineProfile p = threads(4);
  Day day;
  for (int i = 0; i < calls; ++i) {
    const double expected = learner.predict(1000, 1000, 1000, p);
    const bool looks = learner.look_again(1000, 1000, 1000, expected, gpu_s);
    if (looks) learner.learn_looking_again(1000, 1000, 1000, expected, cpu_s);
    day.seconds += looks ? cpu_s : gpu_s;
    day.looks += looks;
  }
  return day;
}

TEST(CpuRateLearner, LookingAgainCostsAHundredth) {
  // As expected; and where the CPU has become much slower, which a look has to find out at its own cost.
  for (const double slower : {1.0, 1.5, 20.0}) {
    for (const double ratio : {1.18, 1.5, 3.0, 7.9}) {
      CpuRateLearner learner;
      teach(learner, 1000, kFlops1000 / (0.01 * ratio));
      const Day day = serve(learner, 10000, 0.01 * ratio * slower, 0.01);
      EXPECT_GT(day.looks, 0) << ratio << ' ' << slower;
      const double last_s = 0.01 * (ratio * slower - 1);  // may not be paid for yet
      EXPECT_LE(day.seconds, 100 * 1.0101 + last_s) << ratio << ' ' << slower;
    }
  }
}

TEST(CpuRateLearner, LookingAgainFindsWhatABusyDayHid) {
  for (const double ratio : {1.18, 2.0, 7.9}) {
    CpuRateLearner learner;
    teach(learner, 1000, kFlops1000 / (0.01 * ratio));
    int calls = 0;
    while (serve(learner, 1, 0.005, 0.01).looks == 0) ASSERT_LT(++calls, 1000);
    // At once and wholly: one that is faster was not disturbed.
    EXPECT_NEAR(learner.predict(1000, 1000, 1000, threads(4)), 0.005, 1e-7) << ratio;
    EXPECT_NEAR(calls, 100 * (ratio - 1), 0.02 * 100 * (ratio - 1) + 2) << ratio;
  }
}

TEST(CpuRateLearner, LookingAgainSpeaksForTheCpuOrNotAtAll) {
  CpuRateLearner learner;
  const MachineProfile p = threads(4);
  teach(learner, 1000, kFlops1000 / 0.02);
  (void)serve(learner, 10000, 0.03, 0.01);  // its threads had gone to sleep
  EXPECT_NEAR(learner.predict(1000, 1000, 1000, p), 0.02, 1e-7);
}

TEST(CpuRateLearner, NoLookWhereTheCpuIsFarBehindOrNothingIsKnown) {
  CpuRateLearner learner;
  teach(learner, 1000, kFlops1000 / 0.1);
  EXPECT_EQ(serve(learner, 100000, 0.1, 0.01).looks, 0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(learner.look_again(1000, 1000, 1000, 0, 0));
    EXPECT_FALSE(learner.look_again(1000, 1000, 1000, 1, 0));
    EXPECT_FALSE(learner.look_again(1000, 1000, 1000, std::numeric_limits<double>::quiet_NaN(), 1));
  }
}

TEST(CpuRateLearner, SizesLookForThemselves) {
  CpuRateLearner learner;
  for (int i = 0; i < 100; ++i) (void)learner.look_again(1000, 1000, 1000, 0.03, 0.01);
  EXPECT_FALSE(learner.look_again(2000, 2000, 2000, 0.03, 0.01));
}

TEST(CpuRateLearner, ManyThreads) {
  CpuRateLearner learner;
  const MachineProfile p = threads(4);
  std::vector<std::thread> pool;
  for (int t = 0; t < 4; ++t) {
    pool.emplace_back([&learner, &p, t] {
      CpuRates rates;
      for (int i = 0; i < 2000; ++i) {
        learner.learn(1000, 1000, 1000, 0.01 + 0.001 * ((i + t) % 3));
        if (i % 100 == 0) learner.snapshot(rates);
        if (learner.predict(1000, 1000, 1000, p) <= 0) std::abort();
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_GE(learner.predict(1000, 1000, 1000, p), 0.01 * 0.999);
  EXPECT_LE(learner.predict(1000, 1000, 1000, p), 0.012 * 1.001);
}

TEST(CpuRateLearner, ExtremeSizesStayInTheTable) {
  CpuRateLearner learner;
  const std::int64_t huge = std::int64_t{1} << 40;
  for (int i = 0; i < 2; ++i) {
    learner.learn(1, 1, 1, 1e-8);
    learner.learn(huge, huge, huge, 1e25);
  }
  EXPECT_GT(learner.predict(1, 1, 1, threads(1)), 0);
  EXPECT_GT(learner.predict(huge, huge, huge, threads(1)), 0);
}

}  // namespace
}  // namespace gemmhoist::decide
