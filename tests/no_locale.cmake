# std::to_string of a double is printf's %f: 0.000000 for 1e-9, and a decimal comma where the host's locale has one. The
# libraries write numbers by core/text.h; what libstdc++ makes of the other leaves its name in the object files.
foreach(library IN LISTS LIBRARIES)
  execute_process(COMMAND ${NM} -A ${library} OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]*__to_xstring[^\n]*" found "${symbols}")
  foreach(line IN LISTS found)
    string(REGEX REPLACE "^[^:]*:([^:]*):.*" "\\1" object "${line}")
    message(SEND_ERROR "${object} calls std::to_string of a double: use number_text or rounded_text")
  endforeach()
endforeach()
