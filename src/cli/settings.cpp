#include "cli/settings.hpp"

#include <string>
#include <utility>

#include "config/messages.hpp"
#include "config/options.hpp"
#include "config/table.hpp"
#include "os/line.hpp"

namespace gemmhoist::cli {

bool parse_setting(const std::string& text, std::pair<std::string, std::string>& setting,
                   std::string& error) {
  const std::string prefix = "GEMMHOIST_";
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    error = "a setting is NAME=VALUE, and '" + text + "' has no '='";
    return false;
  }
  std::string name = text.substr(0, equals);
  if (name.rfind(prefix, 0) != 0) name = prefix + name;
  const std::string value = text.substr(equals + 1);
  config::Options scratch;
  if (config::set_option(scratch, name.c_str(), value.c_str())) {
    setting = {name, value};
    return true;
  }
  os::Line line;
  if (config::find_row(name) == nullptr)
    config::explain_unknown_name(line, name);
  else
    config::explain_bad_value(line, name.c_str(), value.c_str());
  error = line.c_str();
  return false;
}

}  // namespace gemmhoist::cli
