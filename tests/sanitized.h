// Whether a sanitizer watches, under which everything takes five to fifteen times as long: long
// loops skip some of what they go through there, and the release goes through it whole.
#pragma once

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
