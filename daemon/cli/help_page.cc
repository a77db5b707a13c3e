#include "cli/help_page.h"

#include <algorithm>
#include <string_view>

#include "cli/layout.h"

namespace culprit::cli {
namespace {

constexpr size_t kWidthLeast = 40;  // narrower terminals wrap the lines themselves
constexpr size_t kWidthMost = 110;  // longer lines are hard to read
constexpr size_t kNamesMost = 28;   // columns of names; a longer name gets a separate line
constexpr size_t kIndent = 2, kGap = 2;

void add_wrapped(std::string& out, std::string_view text, size_t width, size_t indent) {
  for (const std::string& line : wrap(text, width > indent ? width - indent : 1))
    out.append(indent, ' ').append(line).append("\n");
}

// The column of the texts: after the longest name that is not too long.
size_t column_of(const std::vector<HelpSection>& sections) {
  size_t column = 0;
  for (const HelpSection& section : sections)
    for (const HelpRow& row : section.rows)
      if (const size_t columns = columns_of(row.name); columns <= kNamesMost)
        column = std::max(column, columns);
  return kIndent + column + kGap;
}

void add_section(std::string& out, const HelpSection& section, size_t column, size_t width) {
  out.append("\n").append(section.title).append(":\n");
  for (const HelpRow& row : section.rows) {
    std::string text, whole = row.text;
    std::replace(whole.begin(), whole.end(), '\n', ' ');
    add_wrapped(text, whole, width, column);
    const std::string name = std::string(kIndent, ' ') + row.name;
    const bool beside = !row.text.empty() && columns_of(name) + kGap <= column;
    if (beside)
      out += padded(name, column) + text.substr(column);
    else
      out += name + "\n" + (row.text.empty() ? "" : text);
  }
}

// Start of a shell comment; npos: none.
size_t comment_of(std::string_view command) {
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote)
      quote = c == quote ? '\0' : quote;
    else if (c == '\'' || c == '"')
      quote = c;
    else if (c == '#' && i > 0 && command[i - 1] == ' ')
      return i;
  }
  return std::string_view::npos;
}

// The words of a command; a quoted word is one word.
std::vector<std::string_view> words_of(std::string_view command) {
  std::vector<std::string_view> out;
  char quote = 0;
  size_t begin = std::string_view::npos;
  for (size_t i = 0; i <= command.size(); ++i) {
    const bool ends = i == command.size() || (!quote && command[i] == ' ');
    if (!ends && begin == std::string_view::npos) begin = i;
    if (ends && begin != std::string_view::npos) {
      out.push_back(command.substr(begin, i - begin));
      begin = std::string_view::npos;
    }
    if (i == command.size()) break;
    const char c = command[i];
    if (quote)
      quote = c == quote ? '\0' : quote;
    else if (c == '\'' || c == '"')
      quote = c;
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(' ');
  return from == text.npos ? "" : text.substr(from, text.find_last_not_of(' ') + 1 - from);
}

void add_command(std::string& out, std::string_view line, size_t width) {
  if (columns_of(line) <= width) {
    out.append(line).append("\n");
    return;
  }
  const size_t comment = comment_of(line);
  if (comment != line.npos) {
    for (const std::string& part : wrap(trimmed(line.substr(comment + 1)), width - 4))
      out.append("  # ").append(part).append("\n");
    return add_command(out, "  " + std::string(trimmed(line.substr(0, comment))), width);
  }
  std::string part = "  ";
  bool first = true;
  for (const std::string_view word : words_of(line)) {
    if (!first && columns_of(part) + 1 + columns_of(word) + 2 > width) {
      out.append(part).append(" \\\n");
      part = "     ";
    } else if (!first) {
      part += ' ';
    }
    part += word;
    first = false;
  }
  out.append(part).append("\n");
}

void add_footer(std::string& out, std::string_view footer, size_t width) {
  std::string paragraph;
  bool examples = false;
  const auto flush = [&] {
    if (!paragraph.empty()) add_wrapped(out, paragraph, width, 0);
    paragraph.clear();
  };
  while (!footer.empty()) {
    const size_t end = std::min(footer.find('\n'), footer.size());
    const std::string_view line = footer.substr(0, end);
    footer.remove_prefix(std::min(end + 1, footer.size()));
    const bool indented = line.starts_with(' '),
               title = !indented && paragraph.empty() && line.ends_with(':') && line.size() < kWidthLeast;
    if (!indented && !title && !line.empty()) {
      paragraph.append(paragraph.empty() ? "" : " ").append(line);
      continue;
    }
    flush();
    if (title) examples = line.starts_with("Example");
    if (indented && examples)
      add_command(out, line, width);
    else if (indented)
      add_wrapped(out, trimmed(line), width, kIndent);
    else
      out.append(line).append("\n");
  }
  flush();
}

}  // namespace

std::string help_text(const HelpPage& page, size_t width) {
  width = std::clamp(width, kWidthLeast, kWidthMost);
  std::string about = page.about, out;
  std::replace(about.begin(), about.end(), '\n', ' ');
  if (!about.empty()) add_wrapped(out, about, width, 0);
  out += "\n";
  add_wrapped(out, "Usage: " + page.usage, width, 0);
  const size_t column = column_of(page.sections);
  for (const HelpSection& section : page.sections) add_section(out, section, column, width);
  if (!page.footer.empty() && !page.footer.starts_with('\n')) out += "\n";
  add_footer(out, page.footer, width);
  return out;
}

}  // namespace culprit::cli
