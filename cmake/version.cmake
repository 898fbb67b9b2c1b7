# The commit goes into a header that only `info` reads, so a commit recompiles one file.
find_package(Git QUIET)
add_custom_target(hdetach_version
  COMMAND ${CMAKE_COMMAND} -DGIT=${GIT_EXECUTABLE} -DSOURCE=${PROJECT_SOURCE_DIR}
          -DVERSION=${PROJECT_VERSION} -DOUTPUT=${PROJECT_BINARY_DIR}/generated/hdetach_version.h
          -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/hdetach_version.h)
