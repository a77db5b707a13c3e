# Writes the texts of the rule files into a C++ source:
#   cmake -DROOT=rules -DOUT=rule_library.cc -DFILES=a.lua|b/c.lua -P embed_library.cmake
string(REPLACE "|" ";" files "${FILES}")
set(rows "")
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" text)
  string(APPEND rows "    {\"${file}\",\n")
  string(APPEND rows "     R\"lua(${text})lua\"},\n")
endforeach()
file(WRITE "${OUT}" "// Generated from rules/.
#include \"core/rules/library.h\"

namespace culprit::rules {

std::span<const LibraryFile> library() {
  static constexpr LibraryFile kFiles[] = {
${rows}  };
  return kFiles;
}

}  // namespace culprit::rules
")
