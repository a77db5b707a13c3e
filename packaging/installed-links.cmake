# culprit_installed_readme(IN OUT FOLDER): a copy of a document of sdk/ for FOLDER of an installation. Links
# to what the SDK installs lead there; those to other parts of the source tree become plain text.
function(culprit_installed_readme in out folder)
  file(READ ${in} text)
  file(RELATIVE_PATH include /${folder} /${CMAKE_INSTALL_INCLUDEDIR})
  string(REPLACE "](include/" "](${include}/" text "${text}")
  file(RELATIVE_PATH package /${folder} /${CMAKE_INSTALL_DATADIR}/cmake/culprit)
  string(REPLACE "](cmake)" "](${package})" text "${text}")
  string(REPLACE "](../examples/plugin_" "](plugin_" text "${text}")
  set(elsewhere "\\.\\./[a-z]+/[^)\n]*|abi/[^)\n]*|[a-z]+/README\\.md")
  string(REGEX REPLACE "\\[([^]\n]*)\\]\\((${elsewhere})\\)" "\\1" text "${text}")
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()
