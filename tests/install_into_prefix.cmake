# Installs the build in BUILD into PREFIX; what an earlier run of the install test left is removed first.
file(REMOVE_RECURSE ${BUILD}/install-test)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} COMMAND_ERROR_IS_FATAL ANY)
