// Directories, with a lock against a second user. chi_directory_sync brings changes to the disk.
// Links in untrusted directories are not followed. Threads: any.
#pragma once

#include "base/glob.h"
#include "choir/status.h"

#include <stdbool.h>
#include <stdint.h>

// Unless it exists; its parents must.
choir_status chi_directory_make(const char *path);
// For this user alone. CHOIR_STATE: an existing one is open to others.
choir_status chi_directory_make_private(const char *path);
choir_status chi_directory_make_synced(const char *path);

typedef struct chi_directory chi_directory;
// Follows links. NULL: CHOIR_NOT_FOUND or CHOIR_IO.
chi_directory *chi_directory_open(const char *path);
// Without following a last link. in NULL: name is a path. NULL: CHOIR_CORRUPT for a link or a
// file, CHOIR_NOT_FOUND or CHOIR_IO.
chi_directory *chi_directory_open_in(const chi_directory *in, const char *name);
void chi_directory_close(chi_directory *f);
const char *chi_directory_path(const chi_directory *f);
int chi_directory_descriptor(const chi_directory *f);

// In byte order.
choir_status chi_directory_list(const chi_directory *f, chi_glob *names);
choir_status chi_directory_has(const chi_directory *f, const char *name, bool *has);
choir_status chi_directory_make_in(const chi_directory *f, const char *name); // must not exist
choir_status chi_directory_sync(const chi_directory *f);
choir_status chi_directory_rename(
		const chi_directory *f, const char *from, const char *to); // does not sync
// With its files and links; it may be missing. CHOIR_CORRUPT: no directory, or it has directories.
choir_status chi_directory_remove(const chi_directory *f, const char *name);
uint64_t chi_directory_free_bytes(const chi_directory *f);

typedef struct chi_directory_lock chi_directory_lock;
// CHOIR_STATE names the process that holds the lock. CHOIR_CORRUPT: ".lock" is another file, which
// stays.
chi_directory_lock *chi_directory_lock_new(const chi_directory *f);
void chi_directory_lock_free(chi_directory_lock *l);
// CHOIR_STATE: the lock file was removed or replaced.
choir_status chi_directory_lock_check(const chi_directory_lock *l, const chi_directory *f);
