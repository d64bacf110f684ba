// All system calls on files; they set errno. Tests make them fail, or compute a disk's contents
// after a power cut (tests/train/checkpoint/crash_test.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

// Relative to directory or AT_FDCWD. Only chi_fs_open without O_NOFOLLOW follows a link at the
// end.
int chi_fs_open(int directory, const char *path, int flags); // close-on-exec
int chi_fs_create(int directory, const char *path);
int chi_fs_create_private(int directory, const char *path); // mode 0600
int chi_fs_stat_at(int directory, const char *path, struct stat *out);
int chi_fs_stat(int fd, struct stat *out);
ssize_t chi_fs_read(int fd, const struct iovec to[], int n, off_t offset);
ssize_t chi_fs_write(int fd, const void *data, size_t bytes);
int chi_fs_set_mode(int fd, mode_t mode);
int chi_fs_sync(int fd);
int chi_fs_close(int fd); // closed even on failure
int chi_fs_rename(int directory, const char *from, const char *to);
int chi_fs_make_directory(int directory, const char *path);
int chi_fs_remove(int directory, const char *path);
int chi_fs_remove_directory(int directory, const char *path);
int chi_fs_free_bytes(int directory, uint64_t *bytes);

// For tests: the n-th file call from here on fails with error_number; 0: none.
void chi_fs_fail(int n, int error_number);
bool chi_fs_failed(void);

typedef enum {
	CHI_FS_OPEN,
	CHI_FS_CREATE,
	CHI_FS_WRITE,
	CHI_FS_SYNC,
	CHI_FS_RENAME,
	CHI_FS_MAKE_DIRECTORY,
	CHI_FS_REMOVE,
	CHI_FS_REMOVE_DIRECTORY
} chi_fs_operation_kind;
typedef struct {
	chi_fs_operation_kind kind;
	int directory;
	const char *path, *to;
	int fd;
	const void *data;
	size_t bytes;
} chi_fs_operation;
// For tests: calls fn, unless NULL, for each change. Nothing else may be written meanwhile.
void chi_fs_record(void (*fn)(const chi_fs_operation *o, void *user), void *user);
