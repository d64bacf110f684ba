// The suites that are slow, those of sanitizers and of a build that is not optimised, run tests in
// a short form: long loops skip some of what they go through. The release goes through it whole.
#pragma once

#if defined(__SANITIZE_ADDRESS__) // which sees what a failure leaves behind
enum { SHORT = 1, STRIDE = 3 };
#elif defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
enum { SHORT = 1, STRIDE = 7 };
#else
enum { SHORT = 0, STRIDE = 1 };
#endif
