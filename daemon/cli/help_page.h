// The help of a verb as text: two columns, wrapped to the width of the terminal. Pure; any thread.
#pragma once

#include <string>
#include <vector>

namespace culprit::cli {

struct HelpRow {
  std::string name;  // "-f, --format text|json", or a verb
  std::string text;
};

struct HelpSection {
  std::string title;
  std::vector<HelpRow> rows;
};

struct HelpPage {
  std::string about, usage;
  std::vector<HelpSection> sections;
  std::string footer;  // examples and additional text
};

// Indented lines of the footer below "Examples:" are commands. A command that is too long gets its comment in
// a line before it, and its lines end in a backslash, so that it can be pasted.
std::string help_text(const HelpPage& page, size_t width);

}  // namespace culprit::cli
