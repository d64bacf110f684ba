// Shortens tests in slow builds: those with sanitizers or without optimization, and on an emulated
// processor (CHOIR_SHORT_TESTS). Long loops then skip rounds. A release build runs all of them.
#pragma once

#if defined(__has_feature) // clang's way to say what gcc has macros for
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) // finds leaks after a failure, so it skips less
enum { SHORT = 1, STRIDE = 3 };
#elif defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__) || defined(CHOIR_SHORT_TESTS)
enum { SHORT = 1, STRIDE = 7 };
#else
enum { SHORT = 0, STRIDE = 1 };
#endif

// The stride of long loops that are run by one thread, or whose expected values are: there, the
// thread sanitizer has little to find and takes long.
#if defined(__SANITIZE_THREAD__)
enum { SERIAL_STRIDE = 7 };
#else
enum { SERIAL_STRIDE = 1 };
#endif
