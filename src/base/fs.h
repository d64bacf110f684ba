// Each call by which Choir reads or changes files and folders, and nothing else: no buffer, no
// text, errno as the system sets it. All files go through here, so that tests can let the n-th
// call fail, and can write down the calls that change something: what a disk holds after a power
// cut follows from that list (tests/train/checkpoint/crash_test.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

// A path counts from folder, an open one, or from where the process is: AT_FDCWD. Of a path the
// last name alone is never followed where it is a link, but by open without O_NOFOLLOW.
int chi_fs_open(int directory, const char *path, int flags); // closed on exec
int chi_fs_create(int directory, const char *path); // a file that is not there yet, to write to
int chi_fs_stat_at(int directory, const char *path, struct stat *out); // at what has the name
int chi_fs_stat(int fd, struct stat *out);
ssize_t chi_fs_read(int fd, const struct iovec to[], int n, off_t offset);
ssize_t chi_fs_write(int fd, const void *data, size_t bytes); // at the end of a created file
int chi_fs_set_mode(int fd, mode_t mode);
int chi_fs_sync(int fd); // a file or a folder
int chi_fs_close(int fd); // closed even if it fails
int chi_fs_rename(int directory, const char *from, const char *to);
int chi_fs_make_directory(int directory, const char *path);
int chi_fs_remove(int directory, const char *path);
int chi_fs_remove_directory(int directory, const char *path);
int chi_fs_free_bytes(int directory, uint64_t *bytes); // that a user's files may still take

// For tests: the n-th call from now fails with the error number given; 0: none.
void chi_fs_fail(int n, int error_number);
bool chi_fs_failed(void); // whether it has, since it was asked for

// A call that changed something, after it worked.
typedef enum {
	CHI_FS_OPEN, // path as fd, which may be synced
	CHI_FS_CREATE, // path as fd
	CHI_FS_WRITE, // bytes of data to fd
	CHI_FS_SYNC, // fd
	CHI_FS_RENAME, // path to to
	CHI_FS_MAKE_DIRECTORY, // path
	CHI_FS_REMOVE, // path
	CHI_FS_REMOVE_DIRECTORY // path
} chi_fs_operation_kind;
typedef struct {
	chi_fs_operation_kind kind;
	int directory; // from which path and to count
	const char *path, *to;
	int fd;
	const void *data;
	size_t bytes;
} chi_fs_operation;
// For tests, while nothing else is being written: fn is called for each; NULL: no more.
void chi_fs_record(void (*fn)(const chi_fs_operation *o, void *user), void *user);
