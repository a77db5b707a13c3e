# Writes the page's files into a C++ source: cmake -DROOT=daemon/serve/web -DOUT=web_files.cc -P embed.cmake
set(rows "")
foreach(name index.html page.css page.js)
  file(READ "${ROOT}/${name}" text)
  string(MAKE_C_IDENTIFIER "${name}" symbol)
  string(APPEND rows "extern const char* const k_${symbol} = R\"web(${text})web\";\n")
endforeach()
file(WRITE "${OUT}" "// Generated from daemon/serve/web/.
namespace culprit::serve::web {
${rows}}  // namespace culprit::serve::web
")
