# find_package(culprit): the SDK for plugins. Headers only: no library of Culprit is needed.
#   culprit::plugin                          its include folder
#   culprit_add_plugin(NAME SOURCE...)       NAME.so, which exports the entry alone
get_filename_component(culprit_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT EXISTS "${culprit_prefix}/include/culprit/plugin.h")
  set(culprit_FOUND FALSE)
  set(culprit_NOT_FOUND_MESSAGE "${culprit_prefix}/include/culprit/plugin.h is missing")
  return()
endif()

if(NOT TARGET culprit::plugin)
  add_library(culprit::plugin INTERFACE IMPORTED)
  set_target_properties(culprit::plugin PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${culprit_prefix}/include"
    INTERFACE_COMPILE_FEATURES "c_std_11;cxx_std_11")
endif()

function(culprit_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE culprit::plugin)
  set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()
