# Makes OUTPUT, one object file of OBJECTS and what they call in LIBRARIES, whose only global names are the functions of
# HEADER: a host's own C++, another version of Lockstep's libraries among it, never meets the names inside.
file(READ ${HEADER} header)
string(REGEX MATCHALL "lockstep_[a-z0-9_]+\\(" functions "${header}")
list(REMOVE_DUPLICATES functions)
string(REPLACE "(" "" functions "${functions}")
list(TRANSFORM functions PREPEND -Wl,-u,)

# What no function of the header reaches is left out, the formats that liblockstep_c_readers reads among it. Groups of
# sections would be exchanged for the host's by name; as sections of their own they stay.
execute_process(COMMAND ${COMPILER} -r -nostdlib -Wl,--gc-sections -Wl,--force-group-allocation ${functions}
                        -o ${OUTPUT} ${OBJECTS} ${LIBRARIES} COMMAND_ERROR_IS_FATAL ANY)

# Names that are unique in a whole process (letter u) cannot be made local; they get names that nobody else has.
execute_process(COMMAND ${NM} --defined-only ${OUTPUT} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " u [^\n]+" unique "${names}")
set(renamed)
foreach(name IN LISTS unique)
  string(SUBSTRING "${name}" 3 -1 name)
  string(APPEND renamed "${name} liblockstep_c_${name}\n")
endforeach()
file(WRITE ${OUTPUT}.renamed "${renamed}")
execute_process(COMMAND ${OBJCOPY} --redefine-syms=${OUTPUT}.renamed --wildcard --keep-global-symbol=lockstep_*
                        --strip-unneeded ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
