// Each call by which Choir reads or changes files and folders, and nothing else: no buffer, no
// text, errno as the system sets it. All files go through here, so that tests can let the n-th
// call fail, and can write down the calls that change something: what a disk holds after a power
// cut follows from that list (tests/train/crash_test.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

// A path counts from folder, an open one, or from where the process is: AT_FDCWD. Of a path the
// last name alone is never followed where it is a link, but by open without O_NOFOLLOW.
int chi_disk_open(int folder, const char *path, int flags); // closed on exec
int chi_disk_create(int folder, const char *path); // a file that is not there yet, to write to
int chi_disk_look(int folder, const char *path, struct stat *out); // at what has the name
int chi_disk_stat(int fd, struct stat *out);
ssize_t chi_disk_read(int fd, const struct iovec to[], int n, off_t offset);
ssize_t chi_disk_write(int fd, const void *data, size_t bytes); // at the end of a created file
int chi_disk_set_mode(int fd, mode_t mode);
int chi_disk_sync(int fd); // a file or a folder
int chi_disk_close(int fd); // closed even if it fails
int chi_disk_rename(int folder, const char *from, const char *to);
int chi_disk_make_folder(int folder, const char *path);
int chi_disk_remove(int folder, const char *path);
int chi_disk_remove_folder(int folder, const char *path);
int chi_disk_room(int folder, uint64_t *bytes); // that a user's files may still take

// For tests: the n-th call from now fails with the error number given; 0: none.
void chi_disk_fail(int n, int error_number);
bool chi_disk_failed(void); // whether it has, since it was asked for

// A call that changed something, after it worked.
typedef enum {
	CHI_DISK_OPEN, // path as fd, which may be synced
	CHI_DISK_CREATE, // path as fd
	CHI_DISK_WRITE, // bytes of data to fd
	CHI_DISK_SYNC, // fd
	CHI_DISK_RENAME, // path to to
	CHI_DISK_MAKE_FOLDER, // path
	CHI_DISK_REMOVE, // path
	CHI_DISK_REMOVE_FOLDER // path
} chi_disk_kind;
typedef struct {
	chi_disk_kind kind;
	int folder; // from which path and to count
	const char *path, *to;
	int fd;
	const void *data;
	size_t bytes;
} chi_disk_operation;
// For tests, while nothing else is being written: fn is called for each; NULL: no more.
void chi_disk_record(void (*fn)(const chi_disk_operation *o, void *user), void *user);
