# Makes OUTPUT of the sources in SOURCE: the page, or the reason why there is none, in one line. Works
# in FOLDER, with NODE and NPM. Never fails: the program works without its page.
function(give_up reason)
  message(WARNING "hdetach report will make no page: ${reason}")
  file(WRITE ${OUTPUT} "${reason}\n")
endfunction()

# Only packages that are missing or others than before are fetched.
function(install_packages problem)
  file(SHA256 ${SOURCE}/package-lock.json wanted)
  set(stamp ${FOLDER}/node_modules/.hdetach-installed)
  if(EXISTS ${stamp})
    file(READ ${stamp} installed)
    if(installed STREQUAL wanted)
      return()
    endif()
  endif()
  if(NOT NPM)
    if(NOT EXISTS ${SOURCE}/node_modules)
      set(${problem} "npm was not found when hdetach was built" PARENT_SCOPE)
    else()
      file(REMOVE_RECURSE ${FOLDER}/node_modules)
      file(CREATE_LINK ${SOURCE}/node_modules ${FOLDER}/node_modules SYMBOLIC)
    endif()
    return()
  endif()
  if(IS_SYMLINK ${FOLDER}/node_modules)
    file(REMOVE ${FOLDER}/node_modules)  # the link, not what it leads to
  endif()
  set(log ${FOLDER}/npm.log)
  # A machine without a network should know it in seconds.
  execute_process(COMMAND ${NPM} ci --no-audit --no-fund --prefer-offline --fetch-retries=1
                          --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
                  WORKING_DIRECTORY ${FOLDER} TIMEOUT 300 RESULT_VARIABLE result
                  OUTPUT_FILE ${log} ERROR_FILE ${log})
  if(NOT result EQUAL 0)
    file(REMOVE_RECURSE ${FOLDER}/node_modules)
    set(${problem} "npm ci could not fetch the packages of the page (see ${log})" PARENT_SCOPE)
    return()
  endif()
  file(WRITE ${stamp} ${wanted})
endfunction()

set(again "then configure and build hdetach again: ./run build")
if(NOT NODE)
  give_up("node and npm were not found when hdetach was built; install them (Debian: apt-get install nodejs npm), ${again}")
  return()
endif()

# What is no longer in the source goes too.
file(GLOB old LIST_DIRECTORIES true ${FOLDER}/*)
list(FILTER old EXCLUDE REGEX "/(node_modules|npm\\.log|build\\.log|screenshots)$")
if(old)
  file(REMOVE_RECURSE ${old})
endif()
file(COPY ${SOURCE}/ DESTINATION ${FOLDER} PATTERN node_modules EXCLUDE PATTERN dist EXCLUDE)

set(problem "")
install_packages(problem)
if(problem MATCHES "^npm was")
  give_up("${problem}; install it (Debian: apt-get install npm), ${again}")
  return()
elseif(problem)
  give_up("${problem}; connect the machine or set npm's registry, ${again}")
  return()
endif()

set(log ${FOLDER}/build.log)
execute_process(COMMAND ${NODE} build.mjs ${OUTPUT}.new WORKING_DIRECTORY ${FOLDER} TIMEOUT 300
                RESULT_VARIABLE result OUTPUT_FILE ${log} ERROR_FILE ${log})
if(NOT result EQUAL 0)
  file(REMOVE ${OUTPUT}.new)
  give_up("web/build.mjs failed (see ${log}); it needs Node.js 18 or later (Debian: apt-get install nodejs npm), ${again}")
  return()
endif()
file(RENAME ${OUTPUT}.new ${OUTPUT})
