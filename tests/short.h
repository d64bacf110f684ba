// The suites that are slow run tests in a short form: those of sanitizers, of a build that is not
// optimised, and of an emulated processor (CHOIR_SHORT_TESTS). Long loops skip some of their
// rounds. The release runs them all.
#pragma once

#if defined(__SANITIZE_ADDRESS__) // which sees what a failure leaves behind
enum { SHORT = 1, STRIDE = 3 };
#elif defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__) || defined(CHOIR_SHORT_TESTS)
enum { SHORT = 1, STRIDE = 7 };
#else
enum { SHORT = 0, STRIDE = 1 };
#endif
