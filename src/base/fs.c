// The system's file calls.
#include "base/fs.h"
#include "base/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct {
	chi_atomic32 left;
	chi_atomic32 error_number, failed;
	void (*record)(const chi_fs_operation *o, void *user);
	void *user;
} hook;

void chi_fs_fail(int n, int error_number)
{
	chi_atomic32_store(&hook.error_number, (uint32_t) error_number);
	if (n > 0)
		chi_atomic32_store(&hook.failed, 0);
	chi_atomic32_store(&hook.left, n > 0 ? (uint32_t) n : 0);
}

void chi_fs_record(void (*fn)(const chi_fs_operation *o, void *user), void *user)
{
	hook.user = user;
	hook.record = fn;
}

bool chi_fs_failed(void)
{
	return chi_atomic32_load(&hook.failed) != 0;
}

static bool refused(void)
{
	uint32_t left = chi_atomic32_load(&hook.left);
	while (left > 0 && !chi_atomic32_change(&hook.left, left, left - 1))
		left = chi_atomic32_load(&hook.left);
	if (left != 1)
		return false;
	chi_atomic32_store(&hook.failed, 1);
	errno = (int) chi_atomic32_load(&hook.error_number);
	return true;
}

static void worked(chi_fs_operation o)
{
	if (hook.record)
		hook.record(&o, hook.user);
}

int chi_fs_open(int directory, const char *path, int flags)
{
	const int fd = refused() ? -1 : openat(directory, path, flags | O_CLOEXEC, 0666);
	if (fd >= 0)
		worked((chi_fs_operation){
				.kind = CHI_FS_OPEN, .directory = directory, .path = path, .fd = fd });
	return fd;
}

static int create(int directory, const char *path, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	const int fd = refused() ? -1 : openat(directory, path, flags, mode);
	if (fd >= 0)
		worked((chi_fs_operation){
				.kind = CHI_FS_CREATE, .directory = directory, .path = path, .fd = fd });
	return fd;
}

int chi_fs_create(int directory, const char *path)
{
	return create(directory, path, 0666);
}

int chi_fs_create_private(int directory, const char *path)
{
	return create(directory, path, 0600);
}

int chi_fs_stat_at(int directory, const char *path, struct stat *out)
{
	return refused() ? -1 : fstatat(directory, path, out, AT_SYMLINK_NOFOLLOW);
}

int chi_fs_stat(int fd, struct stat *out)
{
	return refused() ? -1 : fstat(fd, out);
}

ssize_t chi_fs_read(int fd, const struct iovec to[], int n, off_t offset)
{
	return refused() ? -1 : preadv(fd, to, n, offset);
}

ssize_t chi_fs_write(int fd, const void *data, size_t bytes)
{
	const ssize_t n = refused() ? -1 : write(fd, data, bytes);
	if (n > 0)
		worked((chi_fs_operation){
				.kind = CHI_FS_WRITE, .fd = fd, .data = data, .bytes = (size_t) n });
	return n;
}

int chi_fs_set_mode(int fd, mode_t mode)
{
	return refused() ? -1 : fchmod(fd, mode);
}

int chi_fs_sync(int fd)
{
	const int result = refused() ? -1 : fsync(fd);
	if (result == 0)
		worked((chi_fs_operation){ .kind = CHI_FS_SYNC, .fd = fd });
	return result;
}

int chi_fs_close(int fd)
{
	const int result = close(fd);
	return refused() ? -1 : result;
}

int chi_fs_rename(int directory, const char *from, const char *to)
{
	const int result = refused() ? -1 : renameat(directory, from, directory, to);
	if (result == 0)
		worked((chi_fs_operation){
				.kind = CHI_FS_RENAME, .directory = directory, .path = from, .to = to });
	return result;
}

int chi_fs_make_directory(int directory, const char *path)
{
	const int result = refused() ? -1 : mkdirat(directory, path, 0777);
	if (result == 0)
		worked((chi_fs_operation){
				.kind = CHI_FS_MAKE_DIRECTORY, .directory = directory, .path = path });
	return result;
}

int chi_fs_remove(int directory, const char *path)
{
	const int result = refused() ? -1 : unlinkat(directory, path, 0);
	if (result == 0)
		worked((chi_fs_operation){ .kind = CHI_FS_REMOVE, .directory = directory, .path = path });
	return result;
}

int chi_fs_remove_directory(int directory, const char *path)
{
	const int result = refused() ? -1 : unlinkat(directory, path, AT_REMOVEDIR);
	if (result == 0)
		worked((chi_fs_operation){
				.kind = CHI_FS_REMOVE_DIRECTORY, .directory = directory, .path = path });
	return result;
}

int chi_fs_free_bytes(int directory, uint64_t *bytes)
{
	struct statvfs s;
	const int result = refused() ? -1 : fstatvfs(directory, &s);
	*bytes = result != 0 ? 0 : (uint64_t) s.f_bavail * s.f_frsize;
	return result;
}
