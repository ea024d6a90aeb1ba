#include "config/environment.hpp"

#include <cstring>
#include <string_view>

#include "config/messages.hpp"
#include "os/line.hpp"

namespace gemmhoist::config {
namespace {

constexpr std::string_view kPrefix = "GEMMHOIST_";
constexpr int kMostUnknown = 8;  // lines about unknown names

const char* find_value(const char* const* environment, std::string_view name) noexcept {
  for (; *environment != nullptr; ++environment)
    if (std::strncmp(*environment, name.data(), name.size()) == 0 && (*environment)[name.size()] == '=')
      return *environment + name.size() + 1;
  return nullptr;
}

void warn_bad_value(const Row& row, const char* value, int fd) noexcept {
  os::Line line;
  line.text("gemmhoist: ");
  explain_bad_value(line, row.spec.name, value);
  const char* standard = row.spec.default_value;
  if (standard[0] == '\0')
    line.text("; not set");
  else
    line.text("; using ").text(standard);
  line.write_to(fd);
}

bool is_reserved(std::string_view name) noexcept {
  for (const std::string_view prefix : kReservedPrefixes)
    if (name.starts_with(prefix)) return true;
  return false;
}

void warn_unknown_names(const char* const* environment, int fd) noexcept {
  int told = 0;
  for (; *environment != nullptr && told < kMostUnknown; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix) || is_reserved(name)) continue;
    if (find_row(name) != nullptr) continue;
    os::Line line;
    line.text("gemmhoist: ");
    explain_unknown_name(line, name);
    line.write_to(fd);
    ++told;
  }
}

}  // namespace

void read_environment(const char* const* environment, Options& options, TextStorage& storage,
                      int warnings_fd) noexcept {
  std::size_t texts = 0;
  for (const Row& row : rows()) {
    const char* value = find_value(environment, row.spec.name);
    if (value == nullptr) continue;
    if (!set_option(options, row.spec.name, value)) {
      warn_bad_value(row, value, warnings_fd);
    } else if (row.store_text != nullptr && texts < TextStorage::kTexts) {
      char* copy = storage.text[texts++];
      std::memcpy(copy, value, std::strlen(value) + 1);  // fits: checked by set_option
      row.store_text(options, copy);
    }
  }
  warn_unknown_names(environment, warnings_fd);
}

}  // namespace gemmhoist::config
