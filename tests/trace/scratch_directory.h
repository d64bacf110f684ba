// Shared by the tests of trace files: an empty folder per test, and Python scripts that read the
// files without Choir.
#pragma once

// For cmocka: runs the test in its own folder, which is removed afterwards.
int directory_enter(void **state);
int directory_leave(void **state);
// Returns the number of entries of a folder; -1: there is no folder. last, unless NULL, becomes
// the name of one.
int directory_entries(const char *directory, char last[256]);
// Runs a script of tests/trace; returns the exit status (of system()).
int directory_python(const char *python, const char *script, const char *arguments);
// Records the scalars that tensorboard_reader.py expects.
void directory_scalars(void);
