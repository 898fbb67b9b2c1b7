# An installed tree that find_package(hdetach) understands.
include(CMakePackageConfigHelpers)
install(TARGETS hdetach EXPORT hdetachTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hdetach DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT hdetachTargets NAMESPACE hdetach:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hdetach)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hdetachConfig.cmake.in
  ${PROJECT_BINARY_DIR}/hdetachConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hdetach)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hdetachConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hdetachConfig.cmake ${PROJECT_BINARY_DIR}/hdetachConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hdetach)
