#include "scenario.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <vector>

#include "dispatch/dispatch.hpp"
#include "fallback/fallback.hpp"
#include "support/product.hpp"

namespace gemmhoist::test {
namespace {

std::string value_of(const std::string& line, const std::string& key) {
  const std::string before = "\"" + key + "\":\"";
  const auto at = line.find(before);
  if (at == std::string::npos) return "";
  const auto begin = at + before.size();
  return line.substr(begin, line.find('"', begin) - begin);
}

std::vector<std::string> entries() {
  std::ifstream file(std::getenv("GEMMHOIST_LOG_FILE"));
  std::vector<std::string> found;
  for (std::string line; std::getline(file, line);) {
    if (value_of(line, "event") == "call")
      found.push_back(value_of(line, "route") + ":" + value_of(line, "reason"));
  }
  return found;
}

}  // namespace

std::string multiply(std::int64_t n, float beta) {
  ProductShape shape{n, n, n};
  shape.beta = beta;
  shape.pad_c = 1;
  Product product(shape);
  constexpr auto kSpelling = fallback::Spelling::cblas_sgemm;
  const fallback::Provider& provider = fallback::provider(kSpelling);
  const GemmCall call = product.call();
  dispatch::CpuTicket ticket;
  errno = 77;
  if (!dispatch::serve(kSpelling, provider, call, ticket)) {
    fallback::multiply(provider, call);
    errno = 77;
    if (ticket.timed) dispatch::cpu_call_done(kSpelling, call, ticket);
  }
  return errno == 77 ? product.check() : "errno has changed";
}

std::string bring_up() {
  for (int i = 0; i < 200 && state() != "up"; ++i) TRY(multiply());
  return state() == "up" ? "" : "otherwise: it does not come up: " + log_text();
}

std::string multiply_until(std::string_view wanted, double seconds) {
  const double end = now_s() + seconds;
  do {
    TRY(multiply());
    if (last_entry() == wanted) return "";
    sleep_ms(5);
  } while (now_s() < end);
  return "otherwise: never " + std::string(wanted) + ": " + log_text();
}

std::string state() {
  return dispatch::gpu_state_name();
}
long count(observe::Counter counter) {
  return static_cast<long>(observe::total(counter));
}
void sleep_ms(int milliseconds) {
  usleep(static_cast<useconds_t>(milliseconds) * 1000);
}
double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string log_text() {
  std::string text;
  for (const std::string& entry : entries()) text += entry + " ";
  return text;
}
std::string last_entry() {
  const auto all = entries();
  return all.empty() ? "" : all.back();
}
std::size_t log_size() {
  return entries().size();
}
std::string log_is(const std::string& pattern, std::size_t skip) {
  std::string text;
  const auto all = entries();
  for (std::size_t i = skip; i < all.size(); ++i) text += all[i] + " ";
  return std::regex_match(text, std::regex(pattern)) ? "" : "otherwise: the log is: " + text;
}

}  // namespace gemmhoist::test
