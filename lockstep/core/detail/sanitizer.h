// Which sanitizer a file is compiled for. GCC says so by macros of its own, Clang 14 by features alone.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define LOCKSTEP_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define LOCKSTEP_THREAD_SANITIZER 1
#endif
#endif
