// `gemmhoist options`: the table of settings, from the rows that the library itself reads.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "config/options.hpp"

namespace gemmhoist::cli {
namespace {

std::string with_unit(const config::OptionSpec& spec, const std::string& text) {
  return spec.unit[0] != '\0' && !text.empty() ? text + " " + spec.unit : text;
}

void print_text() {
  for (const config::OptionSpec& spec : config::option_specs()) {
    const std::string standard = with_unit(spec, spec.default_value);
    std::printf("%s=%s\n    %s\n    default: %s\n", spec.name, with_unit(spec, spec.values).c_str(), spec.doc,
                standard.empty() ? "not set" : standard.c_str());
  }
}

std::string escape_bars(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

void print_markdown() {
  std::printf("| setting | values | default | what it does |\n| --- | --- | --- | --- |\n");
  for (const config::OptionSpec& spec : config::option_specs())
    std::printf("| `%s` | %s | %s | %s |\n", spec.name, escape_bars(with_unit(spec, spec.values)).c_str(),
                with_unit(spec, spec.default_value).c_str(), escape_bars(spec.doc).c_str());
}

}  // namespace

void add_options(CLI::App& app, int& status) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("options", "List every setting with its values, default and meaning");
  command->add_flag("--markdown", *markdown, "As a Markdown table");
  command->callback([markdown, &status] {
    if (*markdown)
      print_markdown();
    else
      print_text();
    status = 0;
  });
}

}  // namespace gemmhoist::cli
