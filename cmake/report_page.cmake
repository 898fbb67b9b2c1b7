# The page of `hdetach report`, built from web/ by npm and put into the program. Without npm, or where
# it cannot fetch its packages, the file holds the reason instead, and the program gives it.
#
# web/ is copied into the build folder and built there: the source stays clean. A build that failed is
# tried again after the next configuration.
set(page_folder ${PROJECT_BINARY_DIR}/web)
set(page_file ${PROJECT_BINARY_DIR}/generated/report_page.html)
find_program(HDETACH_NODE NAMES node nodejs DOC "Node.js, which builds the page of hdetach report")
find_program(HDETACH_NPM npm DOC "npm, which fetches what that needs")
mark_as_advanced(HDETACH_NODE HDETACH_NPM)
if(NOT HDETACH_NODE)
  message(STATUS "node not found (Debian: nodejs npm): hdetach report makes no page")
endif()
if(EXISTS ${page_file})
  file(STRINGS ${page_file} page_is_there REGEX "@REPORT_DATA@" LIMIT_COUNT 1)
  if(NOT page_is_there)
    file(REMOVE ${page_file})
  endif()
endif()
set(web ${PROJECT_SOURCE_DIR}/web)
file(GLOB page_sources LIST_DIRECTORIES false CONFIGURE_DEPENDS ${web}/* ${web}/src/* ${web}/test/*)
add_custom_command(OUTPUT ${page_file}
  COMMAND ${CMAKE_COMMAND} -DNODE=${HDETACH_NODE} -DNPM=${HDETACH_NPM}
          -DSOURCE=${web} -DFOLDER=${page_folder} -DOUTPUT=${page_file}
          -P ${PROJECT_SOURCE_DIR}/cmake/build_page.cmake
  DEPENDS ${page_sources} ${PROJECT_SOURCE_DIR}/cmake/build_page.cmake
  COMMENT "Building the page of hdetach report" VERBATIM)
# Alone in its file, so that a new page compiles nothing else.
set_source_files_properties(report/page.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON OBJECT_DEPENDS ${page_file}
  COMPILE_DEFINITIONS HDETACH_PAGE_FILE="${page_file}")
