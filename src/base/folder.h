// Folders: what is in them, making and removing them, and saying that one is in use. What is done
// to a folder is on the disk when it was synced, and not before. Threads: any.
#pragma once

#include "base/paths.h"
#include "choir/status.h"

#include <stdbool.h>
#include <stdint.h>

// The names in it, in the order of bytes; CHOIR_NOT_FOUND: there is no such folder.
choir_status chi_folder_list(const char *path, chi_paths *names);
bool chi_folder_has(const char *path); // something of this name is there
// A folder that is there, or is made now; not those that it lies in.
choir_status chi_folder_make(const char *path);
// The same; one that is made now is on the disk, by its name, when this returns.
choir_status chi_folder_make_synced(const char *path);
choir_status chi_folder_sync(const char *path);
choir_status chi_folder_rename(const char *from, const char *to); // within one folder; not synced
// With the files in it, which must be no folders.
choir_status chi_folder_remove(const char *path);
// Bytes that may still be written there; UINT64_MAX where the system does not say.
uint64_t chi_folder_room(const char *path);

// A folder that is in use. The lock is the system's on a file in it: it ends with the process,
// however that ends, so a dead one keeps nobody out; the file stays.
typedef struct chi_folder_lock chi_folder_lock;
// CHOIR_STATE, with who has it: another process, or this one.
chi_folder_lock *chi_folder_lock_new(const char *path);
void chi_folder_lock_free(chi_folder_lock *l);
