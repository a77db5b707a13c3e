// Makes the library a part of the programs, at build time:
//   compile_rules FOLDER TEXTS TABLES FILE...
// Writes the texts of the rule files (paths below FOLDER) into the C++ source TEXTS, and what a start needs
// of them into TABLES (core/rules/library_tables.h). A rule with an error ends the build, with its file and
// line.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "core/rules/library.h"
#include "core/rules/library_tables.h"

namespace culprit::rules {

// This program is linked without the library that it makes.
std::span<const LibraryFile> library() { return {}; }
std::string_view library_tables() { return {}; }

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (out.flush()) return true;
  std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
  return false;
}

std::string source_of(std::span<const RuleText> files, const std::string& tables) {
  std::string out = "// Generated from rules/.\n#include \"core/rules/library.h\"\n\n";
  out += "asm(\".pushsection .rodata\\n.balign 16\\nculprit_rule_tables:\\n.incbin \\\"" + tables +
         "\\\"\\nculprit_rule_tables_end:\\n.byte 0\\n.popsection\");\n"
         "extern \"C\" const char culprit_rule_tables[], culprit_rule_tables_end[];\n\n"
         "namespace culprit::rules {\n\n"
         "std::string_view library_tables() { return {culprit_rule_tables, culprit_rule_tables_end}; }\n\n"
         "std::span<const LibraryFile> library() {\n  static constexpr LibraryFile kFiles[] = {\n";
  for (const RuleText& file : files)
    out += "    {\"" + file.file + "\",\n     {R\"lua(" + file.text +
           ")lua\", " +  // clang counts no long text
           std::to_string(file.text.size()) + "}},\n";
  return out + "  };\n  return kFiles;\n}\n\n}  // namespace culprit::rules\n";
}

int compile_library(const std::string& folder, const std::string& texts, const std::string& tables,
                    std::span<char*> names) {
  std::vector<RuleText> files;
  for (const char* name : names) {
    std::ifstream in(folder + "/" + name, std::ios::binary);
    files.push_back({name, {std::istreambuf_iterator<char>(in), {}}});
    if (!in) return std::fprintf(stderr, "%s/%s: cannot be read\n", folder.c_str(), name), 1;
  }
  const auto set = Ruleset::load(files, {.proven_files = files.size()});
  if (!set) {
    for (const RuleError& error : set.error()) std::fputs(format_error(error).c_str(), stderr);
    return 1;
  }
  const std::vector<RuleError> open = unstated(**set, files);
  for (const RuleError& error : open) std::fputs(format_error(error).c_str(), stderr);
  if (!open.empty()) return 1;
  const auto made = make_tables(**set);
  if (!made) return std::fprintf(stderr, "%s\n", made.error().text.c_str()), 1;
  return write(tables, *made) && write(texts, source_of(files, tables)) ? 0 : 1;
}

}  // namespace
}  // namespace culprit::rules

int main(int count, char** arguments) {
  if (count < 5) return std::fputs("compile_rules FOLDER TEXTS TABLES FILE...\n", stderr), 2;
  return culprit::rules::compile_library(arguments[1], arguments[2], arguments[3],
                                         {arguments + 4, static_cast<size_t>(count) - 4});
}
