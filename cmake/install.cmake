# What `cmake --install` gives: headers, library, CMake package, pkg-config
# file, and with the command its shell completions.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)

install(TARGETS holdfast EXPORT holdfastTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/holdfast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT holdfastTargets NAMESPACE holdfast:: DESTINATION ${package_dir})

configure_package_config_file(cmake/holdfastConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/holdfastConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/holdfastConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/holdfastConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/holdfastConfigVersion.cmake DESTINATION ${package_dir})

# Relative, so that `cmake --install --prefix` may choose another place.
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/holdfast.pc.in ${CMAKE_CURRENT_BINARY_DIR}/holdfast.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET holdfast_command)
  install(TARGETS holdfast_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set(completions apps/holdfast/completions)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${completions}/holdfast.bash)
    install(FILES ${completions}/holdfast.bash RENAME holdfast
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${completions}/_holdfast)
    install(FILES ${completions}/_holdfast
      DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  endif()
endif()
