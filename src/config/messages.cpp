#include "config/messages.hpp"

#include <algorithm>
#include <cstddef>

#include "config/table.hpp"

namespace gemmhoist::config {
namespace {

constexpr std::size_t kShownValue = 80;  // bytes of a bad value that are quoted
constexpr std::size_t kLongestName = 40;

void append(os::Line& line, std::string_view text) noexcept {
  for (const char c : text) line.character(c);
}

void append_choices(os::Line& line, std::string_view choices) noexcept {
  for (const char c : choices) {
    if (c == '|') {
      line.text(", ");
    } else {
      line.character(c);
    }
  }
}

// Edits (insert, delete, replace one letter) that turn one name into the other: Wagner and Fischer's table,
// one row at a time.
int edit_distance(std::string_view a, std::string_view b) noexcept {
  int row[kLongestName + 1];
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

void explain_bad_value(os::Line& line, const char* name, const char* value) noexcept {
  const Row* row = find_row(name);
  line.text(name).character('=').quoted_value(value, kShownValue);
  if (row == nullptr) {
    line.text(" is no setting");
    return;
  }
  switch (row->kind) {
    case Kind::choice:
      line.text(" is not one of ");
      append_choices(line, row->spec.values);
      break;
    case Kind::integer:
      line.text(" is not an integer from ").integer(row->least).text(" to ").integer(row->most);
      if (row->spec.unit[0] != '\0') line.character(' ').text(row->spec.unit);
      break;
    case Kind::list:
      line.text(" is not \"all\" or a comma-separated list of different ordinals from 0 to 63");
      break;
    case Kind::path:
      line.text(" is a path of more than ").count(kLongestPath).text(" bytes");
      break;
  }
}

void explain_unknown_name(os::Line& line, std::string_view name) noexcept {
  constexpr int kNear = 3;  // edits; a third of the shortest name's own part would be a guess
  line.text("there is no setting ");
  append(line, name.substr(0, kShownValue));
  int best = kNear + 1;
  if (name.size() <= kLongestName)
    for (const Row& row : rows()) best = std::min(best, edit_distance(name, row.spec.name));
  if (best > kNear)
    line.text("; there are");
  else
    line.text("; did you mean");
  const char* separator = " ";
  for (const Row& row : rows()) {
    if (best <= kNear && edit_distance(name, row.spec.name) != best) continue;
    line.text(separator).text(row.spec.name);
    separator = best <= kNear ? " or " : ", ";
  }
  if (best <= kNear) line.character('?');
}

}  // namespace gemmhoist::config
