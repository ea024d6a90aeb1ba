// The parts that need no device: cutting, the ledger's regions, the copy queue.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "pipeline/copy_pool.hpp"
#include "pipeline/copy_queue.hpp"
#include "pipeline/cut.hpp"
#include "pipeline/host_copy.hpp"
#include "pipeline/job.hpp"
#include "pipeline/ledger.hpp"
#include "pipeline/scheduling.hpp"

namespace gemmhoist::pipeline {
namespace {

TEST(Cut, PartsCoverTheRectangleOnceWithinTheLimit) {
  for (const std::int64_t width : {1, 31, 32, 33, 1000, 4097}) {
    for (const std::int64_t height : {1, 2, 63, 700}) {
      for (const std::int64_t limit : {1, 31, 64, 1000, 100000}) {
        for (const std::int64_t lines : {1, 32}) {
          const Grid grid = cut(width, height, limit, lines);
          std::int64_t area = 0;
          for (std::int64_t i = 0; i < grid.parts(); ++i) {
            const Part p = part(grid, i);
            ASSERT_GT(p.width, 0);
            ASSERT_GT(p.height, 0);
            ASSERT_LE(p.width * p.height, limit);
            ASSERT_LE(p.x + p.width, width);
            ASSERT_LE(p.y + p.height, height);
            area += p.width * p.height;
          }
          // Parts start on a grid of their own size, so that they cannot overlap: equal area is cover.
          EXPECT_EQ(area, width * height) << width << ' ' << height << ' ' << limit << ' ' << lines;
        }
      }
    }
  }
}

struct Seen {
  std::vector<Region> regions;
  static void visit(const Region& region, void* context) {
    static_cast<Seen*>(context)->regions.push_back(region);
  }
};

TEST(Ledger, LeftRegionsAreMerged) {
  Ledger ledger;
  ledger.clear(8);
  for (int strip = 0; strip < 2; ++strip) {
    for (int j = 0; j < 4; ++j) ledger.add({strip * 10, 10}, {j * 5, 5});
  }
  Seen all;
  ledger.for_each_left(Seen::visit, &all);
  ASSERT_EQ(all.regions.size(), 1U);
  EXPECT_EQ(all.regions[0].rows, (plan::Range{0, 20}));
  EXPECT_EQ(all.regions[0].cols, (plan::Range{0, 20}));
}

TEST(Ledger, WrittenTilesAreLeftOut) {
  for (unsigned mask = 0; mask < 256; ++mask) {
    Ledger ledger;
    ledger.clear(8);
    bool missing[20][20] = {};
    for (int i = 0; i < 8; ++i) {
      Tile* tile = ledger.add({i / 4 * 10, 10}, {i % 4 * 5, 5});
      if ((mask >> i & 1) != 0) {
        ASSERT_TRUE(tile->begin());
        EXPECT_FALSE(tile->begin());
        tile->end();
      } else {
        for (int r = 0; r < 10; ++r) {
          for (int c = 0; c < 5; ++c) missing[i / 4 * 10 + r][i % 4 * 5 + c] = true;
        }
      }
    }
    EXPECT_EQ(ledger.written(), __builtin_popcount(mask));
    Seen seen;
    ledger.for_each_left(Seen::visit, &seen);
    for (const Region& region : seen.regions) {
      for (std::int64_t r = region.rows.begin; r < region.rows.end(); ++r) {
        for (std::int64_t c = region.cols.begin; c < region.cols.end(); ++c) {
          ASSERT_TRUE(missing[r][c]) << "twice, or written already";
          missing[r][c] = false;
        }
      }
    }
    for (const auto& row : missing) {
      for (const bool left : row) ASSERT_FALSE(left) << "forgotten";
    }
  }
}

TEST(CopyQueue, ThreadsShareEveryPieceOnce) {
  constexpr std::int64_t kElements = 40000;
  CopyQueue queue;
  CopyPool pool;
  ASSERT_EQ(pool.start(queue, 3, true), 3);
  std::vector<float> source(kElements), destination(kElements);
  Gate gate;
  for (int round = 0; round < 300; ++round) {
    for (std::int64_t i = 0; i < kElements; ++i)
      source[static_cast<std::size_t>(i)] = static_cast<float>(round + i);
    CopyTask task;
    task.gate = &gate;
    task.source = source.data();
    task.destination = destination.data();
    task.source_pitch = task.destination_pitch = 200;
    task.pieces = cut(200, 200, 1000);
    CopyQueue::Ticket ticket{};
    ASSERT_TRUE(queue.publish(task, ticket));
    while (!queue.complete(ticket)) {
      const std::uint32_t seen = queue.completions();
      if (!queue.complete(ticket)) queue.await_completion(seen, 0);
    }
    ASSERT_EQ(source, destination) << round;
  }
  pool.stop();
}

TEST(CopyQueue, ClosedGateMovesNothing) {
  CopyQueue queue;
  Gate gate;
  gate.close();
  float source[4] = {1, 2, 3, 4}, destination[4] = {};
  CopyTask task;
  task.gate = &gate;
  task.source = source;
  task.destination = destination;
  task.source_pitch = task.destination_pitch = 4;
  task.pieces = cut(4, 1, 4);
  CopyQueue::Ticket ticket{};
  ASSERT_TRUE(queue.publish(task, ticket));
  EXPECT_FALSE(queue.complete(ticket));
  Tile tile;
  CopyTask back = task;
  back.kind = CopyKind::write_back;
  back.pieces = cut(4, 1, 1);
  back.tiles = &tile;
  ASSERT_TRUE(queue.publish(back, ticket));
  queue.finish_all();
  EXPECT_TRUE(queue.complete(ticket));
  EXPECT_EQ(destination[0], 0);
  EXPECT_EQ(tile.state.load(), TileState::pending);  // what was not written is left for the fallback to make
}

TEST(CopyQueue, AFullRingRefuses) {
  CopyQueue queue;
  Gate gate;
  float value = 1;
  CopyTask task;
  task.gate = &gate;
  task.source = task.destination = &value;
  task.source_pitch = task.destination_pitch = 1;
  task.pieces = cut(1, 1, 1);
  CopyQueue::Ticket ticket{};
  for (std::uint32_t i = 0; i < CopyQueue::kTasks; ++i) ASSERT_TRUE(queue.publish(task, ticket));
  EXPECT_FALSE(queue.publish(task, ticket));
  EXPECT_TRUE(queue.work(CopyQueue::kCaller));
  EXPECT_TRUE(queue.publish(task, ticket));
}

// Every alignment and both ends of a line; what lies between and after the lines stays.
TEST(HostCopy, StreamedLinesAreCopied) {
  constexpr std::int64_t kPitch = 150, kHeight = 3, kRoom = kPitch * kHeight + 40;
  std::vector<float> source(kRoom);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  for (std::int64_t offset = 0; offset < 17; ++offset) {
    for (const std::int64_t width : {1, 3, 15, 16, 17, 33, 100, 128, 150}) {
      std::vector<float> destination(kRoom, -1.0F), expected(kRoom, -1.0F);
      stream_lines(destination.data() + offset, kPitch, source.data() + 1, kPitch, width, kHeight);
      copy_lines(expected.data() + offset, kPitch, source.data() + 1, kPitch, width, kHeight);
      ASSERT_EQ(destination, expected) << offset << ", " << width;
      ASSERT_EQ(expected[static_cast<std::size_t>(offset + kPitch)], static_cast<float>(1 + kPitch));
    }
  }
}

std::vector<int> own_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cpus.push_back(i);
  }
  return cpus;
}

TEST(Scheduling, ThreadsOfAPoolKeepApart) {
  const std::vector<int> all = own_cpus();
  if (all.empty()) GTEST_SKIP() << "more CPUs than cpu_set_t holds";
  const std::size_t groups = std::max<std::size_t>(all.size() / 4, 1);
  std::vector<int> together;
  for (std::size_t i = 0; i < groups; ++i) {
    std::thread([&] {
      keep_apart(static_cast<int>(i));
      const std::vector<int> mine = own_cpus();
      EXPECT_GE(mine.size(), std::min<std::size_t>(all.size(), 4));
      together.insert(together.end(), mine.begin(), mine.end());
    }).join();
  }
  EXPECT_EQ(together, all);  // each CPU in one group
  EXPECT_EQ(own_cpus(), all);
}

TEST(Scheduling, AShortSliceChangesNothingElse) {
  std::thread([] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 3), 0);
    const int policy = sched_getscheduler(0);
    prefer_short_slice();
    EXPECT_EQ(sched_getscheduler(0), policy);
    EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))), 3);
  }).join();
}

TEST(CopyPool, LeavesTwoProcessors) {
  EXPECT_EQ(default_copy_threads(1), 0);
  EXPECT_EQ(default_copy_threads(2), 0);
  EXPECT_EQ(default_copy_threads(8), 6);
  EXPECT_EQ(default_copy_threads(128), 12);
}

TEST(Jobs, AreAFixedPool) {
  std::vector<Job*> taken;
  while (Job* job = take_job(GemmCall{}, Precision::fp32)) taken.push_back(job);
  EXPECT_GE(taken.size(), 32U);
  let_go(*taken.back());
  taken.back() = take_job(GemmCall{}, Precision::fp32);
  EXPECT_NE(taken.back(), nullptr);
  for (Job* job : taken) let_go(*job);
}

}  // namespace
}  // namespace gemmhoist::pipeline
