#include "observe/trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "in_child.hpp"
#include "observe/counters.hpp"
#include "temporary_folder.hpp"

namespace gemmhoist::observe {
namespace {

using nlohmann::json;

constexpr std::int64_t kBase = 5'000'000'000'000;

void add_some(int copy_threads, int times) {
  for (int i = 0; i < times; ++i) {
    const std::int64_t t = kBase + i * 10'000;
    for (int thread = 0; thread < copy_threads; ++thread)
      add_span({"copy thread", -1, thread, "copy in", t, t + 1'500, 4096});
    add_span({"H2D stream", 0, 0, "upload", t + 1, t + 2'001, 1 << 20});
    add_span({"compute stream", 0, 1, "sgemm_fp32_128x256x16_s6_sm80", t, t + 7'000, 0});
    add_span({"H2D stream", 1, 0, "upload", t, t + 2'000, 1 << 20});
    add_span({"caller", -1, -1, "wait", t, t - 5, 0});  // a clock never runs backwards, but a bug might
  }
}

struct Events {
  std::vector<json> spans;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads;
  std::map<std::int64_t, std::string> processes;
  json other;

  explicit Events(const std::string& path) {
    const json whole = json::parse(read_text(path));
    other = whole["otherData"];
    for (const json& e : whole["traceEvents"]) {
      if (e["ph"] == "X") spans.push_back(e);
      if (e["name"] == "process_name") processes[e["pid"]] = e["args"]["name"];
      if (e["name"] == "thread_name") threads[{e["pid"], e["tid"]}] = e["args"]["name"];
    }
  }
  std::multiset<std::string> row_names() const {
    std::multiset<std::string> names;
    for (const auto& [ids, name] : threads) names.insert(processes.at(ids.first) + "/" + name);
    return names;
  }
};

TEST(Trace, OffByDefault) {
  const ChildResult r = in_child({}, [] {
    add_some(1, 1);
    write_trace();
    return trace_enabled() ? 1 : 0;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.error, "");
}

TEST(Trace, OneRowForEachCopyThreadStreamAndDevice) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const ChildResult r = in_child({{"GEMMHOIST_TRACE", path}}, [] {
    add_some(3, 10);
    write_trace();
    return trace_enabled() ? 0 : 1;
  });
  ASSERT_EQ(r.status, 0) << r.error;
  EXPECT_EQ(folder.entries(), 1u);
  const Events events(path);
  EXPECT_EQ(events.row_names(),
            (std::multiset<std::string>{"host/copy thread 0", "host/copy thread 1", "host/copy thread 2",
                                        "host/caller", "GPU 0/H2D stream 0", "GPU 0/compute stream 1",
                                        "GPU 1/H2D stream 0"}));
  ASSERT_EQ(events.spans.size(), 70u);
  double first = 1e18;
  for (const json& e : events.spans) {
    EXPECT_TRUE(events.threads.contains({e["pid"], e["tid"]}));
    EXPECT_GE(e["dur"].get<double>(), 0);
    first = std::min(first, e["ts"].get<double>());
  }
  EXPECT_EQ(first, 0);
  EXPECT_EQ(events.spans[0]["dur"], 1.5);  // microseconds
  EXPECT_EQ(events.spans[0]["args"]["bytes"], 4096);
  EXPECT_EQ(events.spans[3]["ts"], 0.001);
  EXPECT_FALSE(events.spans[4].contains("args"));
  EXPECT_EQ(events.other["base_ns"], std::to_string(kBase));
  EXPECT_EQ(events.other["dropped_spans"], 0);
}

TEST(Trace, ManyThreadsAtOnceLoseNothing) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  constexpr int kThreads = 8, kTimes = 3000;  // several blocks
  const ChildResult r = in_child({{"GEMMHOIST_TRACE", path}}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < kTimes; ++i) add_span({"copy thread", -1, t, "copy", i, i + 1, i + 1});
      });
    for (std::thread& thread : threads) thread.join();
    write_trace();
    return 0;
  });
  ASSERT_EQ(r.status, 0) << r.error;
  std::map<std::int64_t, std::int64_t> bytes;
  const Events events(path);
  for (const json& e : events.spans) bytes[e["tid"]] += e["args"]["bytes"].get<std::int64_t>();
  EXPECT_EQ(bytes.size(), std::size_t{kThreads});
  for (const auto& [tid, sum] : bytes) EXPECT_EQ(sum, std::int64_t{kTimes} * (kTimes + 1) / 2) << tid;
}

TEST(Trace, BeyondAMillionSpansAreDroppedAndCounted) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const ChildResult r = in_child({{"GEMMHOIST_TRACE", path}}, [] {
    for (int i = 0; i < (1 << 20) + 123; ++i) add_span({"copy thread", -1, 0, "c", i, i + 1, 0});
    write_trace();
    return 0;
  });
  ASSERT_EQ(r.status, 0);
  const std::string text = read_text(path);
  EXPECT_NE(text.find("\"dropped_spans\":123}}"), std::string::npos);
  EXPECT_NE(text.find("\"ts\":1048.575,"), std::string::npos);
  EXPECT_EQ(text.find("\"ts\":1048.576,"), std::string::npos);
}

TEST(Trace, AForkedChildDoesNotReplaceTheParentsFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const ChildResult r = in_child({{"GEMMHOIST_TRACE", path}}, [] {
    add_some(1, 2);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      reset_after_fork();
      add_span({"caller", -1, 0, "in the child", 1, 2, 0});
      write_trace();
      _exit(trace_enabled() ? 1 : 0);
    }
    int status = -1;
    waitpid(grandchild, &status, 0);
    if (access(getenv("GEMMHOIST_TRACE"), F_OK) == 0) return 2;
    write_trace();
    return WEXITSTATUS(status);
  });
  EXPECT_EQ(r.status, 0) << r.error;
  EXPECT_EQ(Events(path).spans.size(), 10u);
}

TEST(Trace, WithTheProcessIdInItsNameTheChildWritesItsOwn) {
  const TemporaryFolder folder;
  const ChildResult r = in_child({{"GEMMHOIST_TRACE", folder / "%p.json"}}, [] {
    add_some(1, 2);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      reset_after_fork();
      add_span({"caller", -1, 0, "in the child", 1, 2, 0});
      write_trace();
      _exit(0);
    }
    waitpid(grandchild, nullptr, 0);
    write_trace();
    return 0;
  });
  EXPECT_EQ(r.status, 0) << r.error;
  std::multiset<std::size_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.str())) {
    const Events events(entry.path());
    sizes.insert(events.spans.size());
    EXPECT_EQ(std::to_string(events.processes.begin()->first) + ".json", entry.path().filename());
  }
  EXPECT_EQ(sizes, (std::multiset<std::size_t>{1, 10}));
}

TEST(Trace, AFileThatCannotBeWrittenIsOneLine) {
  const ChildResult r = in_child({{"GEMMHOIST_TRACE", "/no/such/folder/t.json"}}, [] {
    add_some(1, 1);
    write_trace();
    write_trace();
    return 0;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.error, "gemmhoist: cannot write GEMMHOIST_TRACE=/no/such/folder/t.json\n");
}

}  // namespace
}  // namespace gemmhoist::observe
