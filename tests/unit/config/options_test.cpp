#include "config/options.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "config/environment.hpp"
#include "config/messages.hpp"
#include "config/table.hpp"
#include "os/os.hpp"

namespace gemmhoist::config {
namespace {

bool accepts(const char* name, const char* value) {
  Options options;
  return set_option(options, name, value);
}

TEST(SetOption, EveryChoice) {
  Options o;
  ASSERT_TRUE(set_option(o, "GEMMHOIST_ROUTE", "gpu"));
  EXPECT_EQ(o.route, RouteMode::gpu);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_ROUTE", "cpu"));
  EXPECT_EQ(o.route, RouteMode::cpu);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_ROUTE", "auto"));
  EXPECT_EQ(o.route, RouteMode::automatic);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_PRECISION", "bf16x6"));
  EXPECT_EQ(o.precision, Precision::bf16x6);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_PRECISION", "tf32"));
  EXPECT_EQ(o.precision, Precision::tf32);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_LOG", "summary"));
  EXPECT_EQ(o.log, LogLevel::summary);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_LOG", "calls"));
  EXPECT_EQ(o.log, LogLevel::calls);
  for (const char* bad : {"", "GPU", "gpu ", " gpu", "gp", "gpuu", "auto|cpu", "|", "0"})
    EXPECT_FALSE(accepts("GEMMHOIST_ROUTE", bad)) << bad;
}

TEST(SetOption, IntegersAreWholeAndInRange) {
  Options o;
  ASSERT_TRUE(set_option(o, "GEMMHOIST_PINNED_MIB", "128"));
  EXPECT_EQ(o.pinned_mib, 128);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_DEVICE_MIB", "1"));
  EXPECT_EQ(o.device_mib, 1);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_HOST_THREADS", "1024"));
  EXPECT_EQ(o.host_threads, 1024);
  ASSERT_TRUE(set_option(o, "GEMMHOIST_DEADLINE_MS", "86400000"));
  EXPECT_EQ(o.deadline_ms, 86400000);
  for (const char* bad : {"", "abc", "12abc", "0x20", "-1", "+64", " 64", "64 ", "6.4e1", "1e2", "15",
                          "16385", "99999999999999999999", "18446744073709551680", "6\n4"})
    EXPECT_FALSE(accepts("GEMMHOIST_PINNED_MIB", bad)) << bad;
  EXPECT_TRUE(accepts("GEMMHOIST_PINNED_MIB", "16"));
  EXPECT_TRUE(accepts("GEMMHOIST_PINNED_MIB", "16384"));
  EXPECT_TRUE(accepts("GEMMHOIST_PINNED_MIB", "000064"));
}

TEST(SetOption, ABadValueChangesNothing) {
  Options o;
  o.pinned_mib = 100;
  EXPECT_FALSE(set_option(o, "GEMMHOIST_PINNED_MIB", "7"));
  EXPECT_EQ(o.pinned_mib, 100);
  EXPECT_FALSE(set_option(o, "GEMMHOIST_ROUT", "gpu"));
  EXPECT_FALSE(set_option(o, "ROUTE", "gpu"));
  EXPECT_EQ(o.route, RouteMode::automatic);
}

TEST(SetOption, DeviceLists) {
  for (const char* good : {"all", "0", "63", "0,1", "3,0,2"})
    EXPECT_TRUE(accepts("GEMMHOIST_DEVICES", good)) << good;
  for (const char* bad : {"", ",", "0,", ",0", "0,,1", "1,1", "64", "-1", "ALL", "all,0", "0 1", "0;1"})
    EXPECT_FALSE(accepts("GEMMHOIST_DEVICES", bad)) << bad;
}

TEST(SetOption, PathsHaveALimit) {
  EXPECT_TRUE(accepts("GEMMHOIST_TRACE", std::string(kLongestPath, 'x').c_str()));
  EXPECT_FALSE(accepts("GEMMHOIST_TRACE", std::string(kLongestPath + 1, 'x').c_str()));
  EXPECT_TRUE(accepts("GEMMHOIST_TRACE", ""));
}

// The defaults that the table tells people are those of the struct.
TEST(Table, DefaultsAreInForce) {
  for (const Row& row : rows()) {
    Options standard, set;
    if (row.spec.default_value[0] == '\0') continue;
    ASSERT_TRUE(set_option(set, row.spec.name, row.spec.default_value)) << row.spec.name;
    EXPECT_EQ(set.route, standard.route);
    EXPECT_EQ(set.precision, standard.precision);
    EXPECT_STREQ(set.devices, standard.devices);
    EXPECT_EQ(set.host_threads, standard.host_threads);
    EXPECT_EQ(set.pinned_mib, standard.pinned_mib);
    EXPECT_EQ(set.device_mib, standard.device_mib);
    EXPECT_EQ(set.log, standard.log);
    EXPECT_EQ(set.deadline_ms, standard.deadline_ms);
  }
}

TEST(Table, SpecsAreCompleteAndNamesDiffer) {
  std::set<std::string> names;
  for (const OptionSpec& spec : option_specs()) {
    EXPECT_EQ(std::string(spec.name).rfind("GEMMHOIST_", 0), 0u);
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    const std::string doc = spec.doc;
    EXPECT_TRUE(doc.size() > 20 && doc.back() == '.') << spec.name;
  }
  EXPECT_EQ(names.size(), 12u);
  EXPECT_EQ(find_row("GEMMHOIST_NO"), nullptr);
}

// Runs read_environment and collects what it says.
struct Reading {
  Options options;
  TextStorage storage{};
  std::string said;

  explicit Reading(std::vector<const char*> environment) {
    environment.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    read_environment(environment.data(), options, storage, ends[1]);
    close(ends[1]);
    char text[4096];
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
      said.append(text, static_cast<std::size_t>(got));
    close(ends[0]);
  }
};

TEST(ReadEnvironment, NothingSetNothingSaid) {
  const Reading r(
      {"PATH=/bin", "GEMMHOIST=1", "XGEMMHOIST_ROUTE=gpu", "GEMMHOIST_TEST_ANYTHING=1", "GEMMHOIST_SIM_X=1"});
  EXPECT_EQ(r.said, "");
  EXPECT_EQ(r.options.route, RouteMode::automatic);
  EXPECT_EQ(r.options.pinned_mib, 64);
}

TEST(ReadEnvironment, TakesValuesAndCopiesTexts) {
  char trace[] = "GEMMHOIST_TRACE=/tmp/t.json";
  const Reading r({"GEMMHOIST_ROUTE=gpu", trace, "GEMMHOIST_DEVICES=1,0", "GEMMHOIST_LOG_FILE=l"});
  trace[sizeof trace - 2] = '?';  // as setenv and putenv may, later
  EXPECT_EQ(r.said, "");
  EXPECT_EQ(r.options.route, RouteMode::gpu);
  EXPECT_STREQ(r.options.trace, "/tmp/t.json");
  EXPECT_STREQ(r.options.devices, "1,0");
  EXPECT_STREQ(r.options.log_file, "l");
}

TEST(ReadEnvironment, FirstOfEqualNamesCountsAsForGetenv) {
  const Reading r({"GEMMHOIST_ROUTE=cpu", "GEMMHOIST_ROUTE=gpu"});
  EXPECT_EQ(r.options.route, RouteMode::cpu);
}

TEST(ReadEnvironment, ABadValueIsOneLineAndTheDefaultStays) {
  EXPECT_EQ(Reading({"GEMMHOIST_PINNED_MIB=abc"}).said,
            "gemmhoist: GEMMHOIST_PINNED_MIB=abc is not an integer from 16 to 16384 MiB; using 64\n");
  EXPECT_EQ(Reading({"GEMMHOIST_ROUTE=gpuu"}).said,
            "gemmhoist: GEMMHOIST_ROUTE=gpuu is not one of auto, cpu, gpu; using auto\n");
  EXPECT_EQ(Reading({"GEMMHOIST_DEVICES="}).said,
            "gemmhoist: GEMMHOIST_DEVICES= is not \"all\" or a comma-separated list of different ordinals "
            "from 0 to 63; using 0\n");
  EXPECT_EQ(Reading({"GEMMHOIST_LOG=a\nb"}).said,
            "gemmhoist: GEMMHOIST_LOG=a?b is not one of off, summary, calls; using off\n");
  const std::string longest = "GEMMHOIST_TRACE=" + std::string(5000, 'x');
  const Reading r({longest.c_str(), "GEMMHOIST_HOST_THREADS=-2"});
  EXPECT_EQ(r.said,
            "gemmhoist: GEMMHOIST_HOST_THREADS=-2 is not an integer from 0 to 1024; using 0\n"
            "gemmhoist: GEMMHOIST_TRACE=" +
                std::string(80, 'x') + "... is a path of more than 1000 bytes; not set\n");
  EXPECT_STREQ(r.options.trace, "");
}

TEST(ReadEnvironment, AnUnknownNameIsOneLineWithTheNearest) {
  EXPECT_EQ(Reading({"GEMMHOIST_ROUT=gpu"}).said,
            "gemmhoist: there is no setting GEMMHOIST_ROUT; did you mean GEMMHOIST_ROUTE?\n");
  EXPECT_EQ(Reading({"GEMMHOIST_DEVICE=0"}).said,
            "gemmhoist: there is no setting GEMMHOIST_DEVICE; did you mean GEMMHOIST_DEVICES?\n");
  const std::string far = Reading({"GEMMHOIST_SOMETHING_ELSE=1"}).said;
  for (const OptionSpec& spec : option_specs()) EXPECT_NE(far.find(spec.name), std::string::npos) << far;
  EXPECT_EQ(far.back(), '\n');
  const std::string endless = "GEMMHOIST_" + std::string(3000, 'A') + "=1";
  EXPECT_LT(Reading({endless.c_str()}).said.size(), 801u);
  const Reading many({"GEMMHOIST_A=", "GEMMHOIST_B=", "GEMMHOIST_C=", "GEMMHOIST_D=", "GEMMHOIST_E=",
                      "GEMMHOIST_F=", "GEMMHOIST_G=", "GEMMHOIST_H=", "GEMMHOIST_I=", "GEMMHOIST_J="});
  EXPECT_EQ(std::count(many.said.begin(), many.said.end(), '\n'), 8);
}

// The one reading of the process: many threads at once, on the smallest stacks, from a fresh process each
// time.
void* read_options(void* answer) {
  *static_cast<const Options**>(answer) = &options();
  return nullptr;
}

int child_reads_options() {
  setenv("GEMMHOIST_PINNED_MIB", "77", 1);
  constexpr int kThreads = 8;
  pthread_t threads[kThreads];
  const Options* answers[kThreads] = {};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(sysconf(_SC_THREAD_STACK_MIN)));
  for (int i = 0; i < kThreads; ++i)
    if (pthread_create(&threads[i], &attributes, read_options, &answers[i]) != 0) return 10;
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  for (const Options* answer : answers)
    if (answer != &options() || answer->pinned_mib != 77) return 11;
  setenv("GEMMHOIST_PINNED_MIB", "99", 1);  // too late
  return options().pinned_mib == 77 ? 0 : 12;
}

TEST(OptionsOfTheProcess, AreReadOnceByWhoeverComesFirst) {
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(child_reads_options());
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
}

}  // namespace
}  // namespace gemmhoist::config
