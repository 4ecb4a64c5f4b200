# Fails when FILE, an archive or a library, shows a name that does not begin as NAMES says, or one that is unique in the
# whole process, which the loader would bind to another library's.
execute_process(COMMAND ${NM} ${OPTIONS} --defined-only --extern-only ${FILE} OUTPUT_VARIABLE listed
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " [A-Za-z] [^\n]+" names "${listed}")
if(NOT names)
  message(FATAL_ERROR "no name found in: ${listed}")
endif()
foreach(name IN LISTS names)
  if(NOT name MATCHES "^ [TDBRVW] (${NAMES})")
    message(FATAL_ERROR "${FILE} shows${name}, expected names of its own that begin with ${NAMES}")
  endif()
endforeach()
