// Folders: what is in them, making and removing them, and saying that one is in use. What is done
// to a folder is on the disk when it was synced, and not before. Whatever is in an open folder is
// reached by its name there and through no link: a folder may come from a stranger. Threads: any.
#pragma once

#include "base/glob.h"
#include "choir/status.h"

#include <stdbool.h>
#include <stdint.h>

// A folder that is there, or is made now; not those that it lies in.
choir_status chi_directory_make(const char *path);
// The same; one that is made now is on the disk, by its name, when this returns.
choir_status chi_directory_make_synced(const char *path);

typedef struct chi_directory chi_directory; // open
// Follows links in path, which is the caller's own. NULL: CHOIR_NOT_FOUND or CHOIR_IO.
chi_directory *chi_directory_open(const char *path);
// The folder of this name in another; CHOIR_CORRUPT: it is a link, or no folder. in NULL: name is
// a path, of which only the last name must be no link.
chi_directory *chi_directory_open_in(const chi_directory *in, const char *name);
void chi_directory_close(chi_directory *f); // NULL is fine
const char *chi_directory_path(const chi_directory *f);
int chi_directory_descriptor(const chi_directory *f); // for files in it (file.c)

// The names in it, in the order of bytes.
choir_status chi_directory_list(const chi_directory *f, chi_glob *names);
// Whether something of this name is there, be it a link that leads nowhere.
choir_status chi_directory_has(const chi_directory *f, const char *name, bool *has);
choir_status chi_directory_make_in(const chi_directory *f, const char *name); // new
choir_status chi_directory_sync(const chi_directory *f);
choir_status chi_directory_rename(
		const chi_directory *f, const char *from, const char *to); // not synced
// The folder of this name with the files in it, which must be no folders; of links in it only the
// links go. That nothing is called so is fine; CHOIR_CORRUPT: it is a link, or no folder.
choir_status chi_directory_remove(const chi_directory *f, const char *name);
// Bytes that may still be written there; UINT64_MAX where the system does not say.
uint64_t chi_directory_free_bytes(const chi_directory *f);

// A folder that is in use. The lock is the system's on the file ".lock" in it: it ends with the
// process, however that ends, so a dead one keeps nobody out; the file stays.
typedef struct chi_directory_lock chi_directory_lock;
// CHOIR_STATE, with who has it: another process, or this one; CHOIR_CORRUPT: what is called so is
// a link, no file, or holds anything but what a lock of Choir's has, and is left as it is.
chi_directory_lock *chi_directory_lock_new(const chi_directory *f);
void chi_directory_lock_free(chi_directory_lock *l);
// Whether it still keeps others out of f: CHOIR_STATE once its file is gone, or is another.
choir_status chi_directory_lock_check(const chi_directory_lock *l, const chi_directory *f);
