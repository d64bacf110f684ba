// What tests of a trace's files share: an empty folder for each test, and Python that reads files
// by code that is not Choir's.
#pragma once

// For cmocka: the test runs in a folder of its own, which is removed afterwards.
int directory_enter(void **state);
int directory_leave(void **state);
// Entries of a folder, of which one's name comes out in last, unless it is NULL; -1: no folder.
int directory_entries(const char *directory, char last[256]);
// The exit status (of system()) of a script of tests/trace.
int directory_python(const char *python, const char *script, const char *arguments);
// Records the scalars that tensorboard_reader.py expects.
void directory_scalars(void);
