// What tests of a trace's files share: an empty folder for each test, and Python that reads files
// by code that is not Choir's.
#pragma once

// For cmocka: the test runs in a folder of its own, which is removed afterwards.
int folder_enter(void **state);
int folder_leave(void **state);
// Entries of a folder, of which one's name comes out in last, unless it is NULL; -1: no folder.
int folder_entries(const char *folder, char last[256]);
// The exit status (of system()) of a script of tests/trace.
int folder_python(const char *python, const char *script, const char *arguments);
// Records the scalars that events.py expects.
void folder_scalars(void);
