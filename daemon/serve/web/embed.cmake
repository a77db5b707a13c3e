# Writes the page's files into a C++ source: cmake -DROOT=daemon/serve/web -DOUT=web_files.cc -P embed.cmake
file(GLOB paths "${ROOT}/*.html" "${ROOT}/*.css" "${ROOT}/*.js")
list(FILTER paths EXCLUDE REGEX "/report\\.js$")  # of the report's own file
set(rows "")
foreach(path ${paths})
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" text)
  string(APPEND rows "    {\"${name}\", R\"web(${text})web\"},\n")
endforeach()
file(WRITE "${OUT}" "// Generated from daemon/serve/web/.
#include \"serve/page.h\"
namespace culprit::serve {
std::span<const PageFile> page_files() {
  static constexpr PageFile k_files[] = {
${rows}  };
  return k_files;
}
}  // namespace culprit::serve
")
