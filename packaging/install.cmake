# What an installation holds, for packages of any kind: DESTDIR=… cmake --install BUILD --prefix /usr.
# Man pages and completions are made where their tools are there: they say what the programs say.
# The units and the manual say /usr/bin, and Debian's folder of libraries hangs on this prefix.
if(CMAKE_INSTALL_PREFIX_INITIALIZED_TO_DEFAULT)
  set(CMAKE_INSTALL_PREFIX /usr CACHE PATH "Where it is installed" FORCE)
endif()
include(GNUInstallDirs)
set(CULPRIT_PACKAGING ${PROJECT_SOURCE_DIR}/packaging)

install(TARGETS culprit culprit_shared
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET culpritd)
  install(TARGETS culpritd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# Started by our programs, not by people.
install(TARGETS culprit_plugin_host culprit_capture_program culprit_end_tasks_program
  culprit_node_check_program culprit_simulate
  RUNTIME DESTINATION lib/culprit)
# Loaded by its path into others' processes, never linked: not among the libraries of the system.
install(TARGETS culprit_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/culprit)
# As source, for each MPI has a binary interface of its own, and a package must not ask for one.
install(DIRECTORY sdk/mpi sdk/tracer DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit/tracers)
# As it lies there, for PYTHONPATH: a job has a Python of its own, mostly one of no package.
install(DIRECTORY sdk/python/culprit DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(FILES sdk/python/README.md sdk/python/pyproject.toml
  DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit/python)
# Detectors of our own, next to those that an operator drops into /etc/culprit/plugins.d.
install(TARGETS culprit_plugin_gpu_health culprit_plugin_net_health culprit_plugin_host_health
  LIBRARY DESTINATION lib/culprit/plugins.d)
# The SDK needs nothing else of an installation, and no build: cmake --install BUILD --component sdk.
install(DIRECTORY sdk/include/culprit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/culprit-config-version.cmake
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES sdk/cmake/culprit-config.cmake ${CMAKE_BINARY_DIR}/culprit-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_DATADIR}/cmake/culprit COMPONENT sdk)
# From the folder of a .pc file up to the prefix: an installation may lie anywhere, and be moved.
file(RELATIVE_PATH culprit_sdk_up /${CMAKE_INSTALL_DATADIR}/pkgconfig /)
file(RELATIVE_PATH culprit_library_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" culprit_sdk_up ${culprit_sdk_up})
string(REGEX REPLACE "/$" "" culprit_library_up ${culprit_library_up})
configure_file(${CULPRIT_PACKAGING}/culprit-plugin.pc.in ${CMAKE_BINARY_DIR}/culprit-plugin.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/culprit-plugin.pc
  DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT sdk)
set(sdk_documents ${CMAKE_INSTALL_DATADIR}/doc/culprit-dev/examples)
install(DIRECTORY examples/plugin_c examples/plugin_cpp DESTINATION ${sdk_documents} COMPONENT sdk)
include(${CULPRIT_PACKAGING}/installed-links.cmake)
culprit_installed_readme(${PROJECT_SOURCE_DIR}/sdk/README.md ${CMAKE_BINARY_DIR}/sdk-readme/README.md
  ${sdk_documents})
install(FILES ${CMAKE_BINARY_DIR}/sdk-readme/README.md DESTINATION ${sdk_documents} COMPONENT sdk)
configure_file(${CULPRIT_PACKAGING}/culprit.pc.in ${CMAKE_BINARY_DIR}/culprit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/culprit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY rules DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit
  FILES_MATCHING PATTERN "*.lua" PATTERN "culprit.lua" EXCLUDE)
# Templates of webhooks, for alert.template.
install(DIRECTORY ${CULPRIT_PACKAGING}/alerts DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit
  FILES_MATCHING PATTERN "*.json")
install(FILES rules/culprit.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit)  # annotations for editors
# For those who scrape and draw: nothing here is read by the programs.
install(DIRECTORY ${CULPRIT_PACKAGING}/prometheus ${CULPRIT_PACKAGING}/grafana
  DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit FILES_MATCHING PATTERN "*.yml" PATTERN "*.json")
install(DIRECTORY ${CULPRIT_PACKAGING}/systemd/drop-ins/
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILES_MATCHING PATTERN "*.conf")
# For schedulers that start a job again by its exit code.
install(DIRECTORY ${CULPRIT_PACKAGING}/recipes DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The least rights of a collector that acts in a cluster.
install(DIRECTORY ${CULPRIT_PACKAGING}/kubernetes DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  FILES_MATCHING PATTERN "*.c" PATTERN "*.cpp" PATTERN "*.toml" PATTERN "plugin_c*" EXCLUDE)

# What an operator reads where no source tree is, and what a collector's first hour needs.
include(${CULPRIT_PACKAGING}/installed-documents.cmake)
culprit_installed_documents(${CMAKE_BINARY_DIR}/documents ${CMAKE_INSTALL_DOCDIR})
install(PROGRAMS examples/collector/make-certificates DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit)

# Made by packaging/sbom, which needs a finished build.
install(FILES ${CMAKE_BINARY_DIR}/sbom.spdx.json DESTINATION ${CMAKE_INSTALL_DATADIR}/culprit OPTIONAL)

# The programs look in /etc whatever the prefix is.
install(FILES ${CULPRIT_PACKAGING}/config/culpritd.toml DESTINATION /etc/culprit)
install(FILES ${CULPRIT_PACKAGING}/config/conf.d/README DESTINATION /etc/culprit/conf.d)
install(DIRECTORY DESTINATION /etc/culprit/rules.d)
install(DIRECTORY DESTINATION /etc/culprit/plugins.d)

install(FILES ${CULPRIT_PACKAGING}/systemd/culpritd.service
  ${CULPRIT_PACKAGING}/systemd/culpritd-kmsg.socket ${CULPRIT_PACKAGING}/systemd/culprit-capture.socket
  ${CULPRIT_PACKAGING}/systemd/culprit-capture@.service ${CULPRIT_PACKAGING}/systemd/culprit-end-tasks.socket
  ${CULPRIT_PACKAGING}/systemd/culprit-end-tasks@.service DESTINATION lib/systemd/system)
install(FILES ${CULPRIT_PACKAGING}/sysusers/culprit.conf DESTINATION lib/sysusers.d)
install(FILES ${CULPRIT_PACKAGING}/tmpfiles/culprit.conf DESTINATION lib/tmpfiles.d)

find_package(Python3 COMPONENTS Interpreter)
find_program(SCDOC scdoc)
if(Python3_FOUND AND SCDOC AND TARGET culpritd)
  set(manual ${CMAKE_BINARY_DIR}/manual)
  add_custom_command(OUTPUT ${manual}/done
    COMMAND ${Python3_EXECUTABLE} ${CULPRIT_PACKAGING}/completions/generate
      ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${manual}/completions
    COMMAND ${Python3_EXECUTABLE} ${CULPRIT_PACKAGING}/man/generate
      ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${manual}
    COMMAND ${CMAKE_COMMAND} -E touch ${manual}/done
    DEPENDS culprit culprit_simulate culpritd ${CULPRIT_PACKAGING}/completions/generate
      ${CULPRIT_PACKAGING}/man/generate
      ${CULPRIT_PACKAGING}/man/culprit.1.scd ${CULPRIT_PACKAGING}/man/culpritd.8.scd
      ${CULPRIT_PACKAGING}/man/culpritd.toml.5.scd.in
    VERBATIM)
  add_custom_target(manual ALL DEPENDS ${manual}/done)
  install(FILES ${manual}/culprit.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${manual}/culpritd.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
  install(FILES ${manual}/culpritd.toml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
  install(FILES ${manual}/completions/culprit
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${manual}/completions/_culprit DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${manual}/completions/culprit.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# All that an installation holds, and no test: packaging/build-deb.
add_custom_target(installed_parts)
add_dependencies(installed_parts culprit culprit_simulate culprit_shared culprit_plugin_host
  culprit_capture_program culprit_end_tasks_program culprit_node_check_program culprit_nccl
  culprit_plugin_gpu_health culprit_plugin_net_health culprit_plugin_host_health)
foreach(part culpritd manual)
  if(TARGET ${part})
    add_dependencies(installed_parts ${part})
  endif()
endforeach()
