# Writes what the report's own file needs into a C++ source: one script made of the modules, the style
# sheet, and their hashes for a Content-Security-Policy. cmake -DROOT=daemon/serve/web -DOUT=report_page.cc
# -P bundle.cmake
cmake_minimum_required(VERSION 3.20)
# Each after those that it imports.
set(modules dom charts attempts phases spans timeline evidence stacks parts report)

# Each module becomes a function that returns its exports.
set(script "\"use strict\";\nconst modules = {};\n")
set(known "")
foreach(name ${modules})
  file(READ "${ROOT}/${name}.js" text)
  set(text "\n${text}")
  string(REGEX MATCHALL " from \"\\./[a-z]+\\.js\"" imports "${text}")
  foreach(import IN LISTS imports)
    string(REGEX REPLACE ".*\\./([a-z]+)\\.js.*" "\\1" from "${import}")
    if(NOT from IN_LIST known)
      message(FATAL_ERROR "${name}.js imports ${from}.js, which is not before it in bundle.cmake")
    endif()
  endforeach()
  string(REGEX MATCHALL "\nexport (async )?[a-z]+ [A-Za-z0-9_]+" exports "${text}")
  set(names "")
  foreach(export IN LISTS exports)
    string(REGEX REPLACE ".* ([A-Za-z0-9_]+)$" "\\1" export "${export}")
    list(APPEND names "${export}")
  endforeach()
  list(JOIN names ", " names)
  string(REGEX REPLACE "\nimport ({[^}]*}) from \"\\./([a-z]+)\\.js\";" "\nconst \\1 = modules.\\2;"
    text "${text}")
  string(REGEX REPLACE "\nexport " "\n" text "${text}")
  string(APPEND script "modules.${name} = (() => {${text}return { ${names} };\n})();\n")
  list(APPEND known ${name})
endforeach()
if(script MATCHES "\n(import|export) " OR script MATCHES "</script|<!--")
  message(FATAL_ERROR "the modules become no script: an import, an export or an end of a script is left")
endif()
file(READ "${ROOT}/page.css" style)

# The base64 form of the SHA-256 of a text, for the policy.
function(hash_of text out)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  string(APPEND hex "00")  # 33 bytes: 44 characters, and the last one is filling
  set(made "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}" ${at} 6 part)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${part} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 digit)
      string(APPEND made "${digit}")
    endforeach()
  endforeach()
  string(SUBSTRING "${made}" 0 43 made)
  set(${out} "sha256-${made}=" PARENT_SCOPE)
endfunction()
hash_of("${script}" script_hash)
hash_of("${style}" style_hash)

file(WRITE "${OUT}" "// Generated from daemon/serve/web/.
#include \"cli/report_page.h\"
namespace culprit::cli {
const ReportPage& report_page() {
  static constexpr ReportPage k_page = {
R\"web(${script})web\",
R\"web(${style})web\",
\"${script_hash}\", \"${style_hash}\"};
  return k_page;
}
}  // namespace culprit::cli
")
