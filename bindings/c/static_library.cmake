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

# Names that are unique in a whole process (letter u) could not be made local: lockstep_keep_names_apart() has compilers make
# none, and a test looks.
execute_process(COMMAND ${OBJCOPY} --wildcard --keep-global-symbol=lockstep_* --strip-unneeded ${OUTPUT}
                COMMAND_ERROR_IS_FATAL ANY)
