// Facts of a message instead of its wording.
#pragma once

#include <stdbool.h>

// Returns whether text contains all facts: names, values and numbers in any order, separated by
// stars in facts. So a test does not depend on the wording of a message. A number is found only as
// a whole: "16" is neither in "160" nor in "0.16". No text contains an empty fact.
bool text_holds(const char *text, const char *facts);
