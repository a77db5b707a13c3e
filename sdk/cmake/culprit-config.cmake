# find_package(culprit): the SDK for plugins. Headers only: no library of Culprit is needed. It is found where
# it is installed, at any prefix (CMAKE_PREFIX_PATH), and in a clone (-Dculprit_ROOT=CLONE/sdk).
#   culprit::plugin                          its include folder
#   culprit_add_plugin(NAME SOURCE...)       NAME.so, which exports the entry alone
set(culprit_include "")
foreach(up "../../.." "..")  # PREFIX/share/cmake/culprit, CLONE/sdk/cmake
  get_filename_component(culprit_folder "${CMAKE_CURRENT_LIST_DIR}/${up}/include" ABSOLUTE)
  if(NOT culprit_include AND EXISTS "${culprit_folder}/culprit/plugin.h")
    set(culprit_include "${culprit_folder}")
  endif()
endforeach()
if(NOT culprit_include)
  set(culprit_FOUND FALSE)
  set(culprit_NOT_FOUND_MESSAGE "no include/culprit/plugin.h belongs to ${CMAKE_CURRENT_LIST_FILE}")
  return()
endif()

if(NOT TARGET culprit::plugin)
  add_library(culprit::plugin INTERFACE IMPORTED)
  set_target_properties(culprit::plugin PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${culprit_include}"
    INTERFACE_COMPILE_FEATURES "c_std_11;cxx_std_11")
endif()

function(culprit_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE culprit::plugin)
  set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()
