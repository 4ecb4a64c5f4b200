# CMake toolchain: 64-bit ARM from another Debian or Ubuntu machine. Packages: g++-aarch64-linux-gnu, qemu-user.
#   cmake -S . -B build-aarch64 --toolchain cmake/aarch64-linux-gnu.cmake -DLOCKSTEP_HDF5=OFF ...
# Header-only packages (Highway, xxHash, JSON for Modern C++) serve as they are; HDF5 is needed for aarch64 or not at all.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# What ctest and add_custom_command run programs with.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
