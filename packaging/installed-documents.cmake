# culprit_installed_documents(OUT FOLDER): copies of the documents for operators into OUT, to be installed in
# FOLDER. Links among them stay, as do those to examples; links to other parts of the source tree become text.
function(culprit_installed_documents out folder)
  set(docs ${PROJECT_SOURCE_DIR}/daemon/docs)
  # A name in the folder, and the document's place in the source tree.
  set(named rules.md rules/README.md categories.md rules/CATEGORIES.md sdk.md sdk/README.md
    sdk-python.md sdk/python/README.md sdk-nccl.md sdk/nccl/README.md sdk-mpi.md sdk/mpi/README.md)
  file(GLOB there RELATIVE ${docs} ${docs}/*.md ${docs}/*.png)
  set(names "#" "https://" "http://" examples/collector kubernetes/controller.yaml
    kubernetes/README.md ${there})
  foreach(name IN LISTS there)
    if(name MATCHES "\\.md$")
      list(APPEND named ${name} daemon/docs/${name})
    endif()
  endforeach()
  set(rest ${named})
  while(rest)
    list(POP_FRONT rest name document)
    list(APPEND names ${name})
  endwhile()
  while(named)
    list(POP_FRONT named name document)
    file(READ ${PROJECT_SOURCE_DIR}/${document} text)
    foreach(link rules/README.md=rules.md rules/CATEGORIES.md=categories.md sdk/README.md=sdk.md
        sdk/python/README.md=sdk-python.md sdk/nccl/README.md=sdk-nccl.md sdk/mpi/README.md=sdk-mpi.md
        examples/collector=examples/collector packaging/kubernetes=kubernetes daemon/docs/=)
      string(REGEX REPLACE "=.*" "" from ${link})
      string(REGEX REPLACE ".*=" "" to ${link})
      string(REGEX REPLACE "\\]\\((\\.\\./)+${from}" "](${to}" text "${text}")
    endforeach()
    string(REPLACE "](CATEGORIES.md" "](categories.md" text "${text}")
    foreach(kept IN LISTS names)  # marked, so that the others stand out
      string(REPLACE "](${kept}" "]@(${kept}" text "${text}")
    endforeach()
    string(REGEX REPLACE "\\[([^]\n]*)\\]\\([^)\n]*\\)" "\\1" text "${text}")
    string(REPLACE "]@(" "](" text "${text}")
    file(WRITE ${out}/${name} "${text}")
  endwhile()
  file(GLOB pictures ${docs}/*.png)
  install(FILES ${pictures} DESTINATION ${folder})
  install(DIRECTORY ${out}/ DESTINATION ${folder} FILES_MATCHING PATTERN "*.md")
endfunction()
