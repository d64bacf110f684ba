// Folders, on top of the calls of disk.h. The lock is flock's: tied to the open file and not to
// the process, so that two users of a folder in one process exclude each other as well.
#include "base/folder.h"
#include "base/alloc.h"
#include "base/disk.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static choir_status fail_errno(const char *path, const char *what)
{
	char text[128];
	const bool missing = errno == ENOENT || errno == ENOTDIR;
	return choir_fail(missing ? CHOIR_NOT_FOUND : CHOIR_IO, "%s: %s: %s", path, what,
			chi_text_errno(errno, text, sizeof text));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

static choir_status read_names(const char *path, DIR *d, chi_paths *names)
{
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e && errno != 0)
			return fail_errno(path, "read the folder");
		if (!e)
			return CHOIR_OK;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			CHOIR_TRY(chi_paths_add_one(names, e->d_name));
	}
}

choir_status chi_folder_list(const char *path, chi_paths *names)
{
	const int fd = chi_disk_open(path, O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		const choir_status status = fail_errno(path, "open the folder");
		if (fd >= 0)
			close(fd);
		return status;
	}
	const choir_status status = read_names(path, d, names);
	closedir(d);
	if (names->n > 0)
		qsort(names->path, names->n, sizeof *names->path, by_name);
	return status;
}

bool chi_folder_has(const char *path)
{
	return access(path, F_OK) == 0;
}

// *made: it was not there before.
static choir_status make(const char *path, bool *made)
{
	struct stat s;
	char text[128];
	*made = chi_disk_make_folder(path) == 0;
	if (*made)
		return CHOIR_OK;
	if (errno == EEXIST && stat(path, &s) == 0 && S_ISDIR(s.st_mode))
		return CHOIR_OK;
	return choir_fail(
			CHOIR_IO, "%s: make the folder: %s", path, chi_text_errno(errno, text, sizeof text));
}

choir_status chi_folder_make(const char *path)
{
	bool made;
	return make(path, &made);
}

// The folder in which path is.
static choir_status sync_parent(const char *path)
{
	chi_text parent = { 0 };
	size_t length = strlen(path);
	while (length > 0 && path[length - 1] == '/')
		length--;
	while (length > 0 && path[length - 1] != '/')
		length--;
	while (length > 1 && path[length - 1] == '/')
		length--;
	chi_text_add(&parent, "%.*s", length == 0 ? 1 : (int) length, length == 0 ? "." : path);
	const choir_status status = parent.failed ? CHOIR_NO_MEMORY : chi_folder_sync(parent.data);
	chi_text_free(&parent);
	return status;
}

choir_status chi_folder_make_synced(const char *path)
{
	bool made;
	CHOIR_TRY(make(path, &made));
	return made ? sync_parent(path) : CHOIR_OK;
}

choir_status chi_folder_sync(const char *path)
{
	const int fd = chi_disk_open(path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fail_errno(path, "open the folder");
	// Some file systems cannot do this to a folder, and say EINVAL.
	choir_status status = CHOIR_OK;
	if (chi_disk_sync(fd) != 0 && errno != EINVAL)
		status = fail_errno(path, "fsync the folder");
	close(fd);
	return status;
}

choir_status chi_folder_rename(const char *from, const char *to)
{
	return chi_disk_rename(from, to) == 0 ? CHOIR_OK : fail_errno(from, "rename");
}

choir_status chi_folder_remove(const char *path)
{
	chi_paths names = { 0 };
	choir_status status = chi_folder_list(path, &names);
	for (size_t i = 0; status == CHOIR_OK && i < names.n; i++) {
		chi_text file = { 0 };
		chi_text_add(&file, "%s/%s", path, names.path[i]);
		if (file.failed)
			status = CHOIR_NO_MEMORY;
		else if (chi_disk_remove(file.data) != 0)
			status = fail_errno(file.data, "remove");
		chi_text_free(&file);
	}
	chi_paths_free(&names);
	if (status == CHOIR_OK && chi_disk_remove_folder(path) != 0)
		status = fail_errno(path, "remove the folder");
	return status;
}

uint64_t chi_folder_room(const char *path)
{
	uint64_t bytes;
	return chi_disk_room(path, &bytes) == 0 ? bytes : UINT64_MAX;
}

struct chi_folder_lock {
	int fd;
};

// The process that wrote the file, as far as it can be read: a help for people, no part of the
// lock.
static choir_status in_use(const char *folder, int fd)
{
	char who[64] = "";
	const ssize_t n = pread(fd, who, sizeof who - 1, 0);
	who[n > 0 ? strcspn(who, "\n") : 0] = '\0';
	char clean[128];
	return choir_fail(CHOIR_STATE, "%s: is in use by %s", folder,
			who[0] != '\0' ? chi_text_clean(who, clean, sizeof clean) : "another job");
}

static choir_status take(const char *folder, const char *path, int *fd)
{
	char host[64] = "", who[128];
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (*fd < 0)
		return fail_errno(path, "open");
	if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? in_use(folder, *fd) : fail_errno(path, "lock");
	gethostname(host, sizeof host - 1);
	const int n = snprintf(who, sizeof who, "process %ld on %s\n", (long) getpid(), host);
	// On a full disk nobody learns who it is, but the lock holds.
	const bool said = ftruncate(*fd, 0) == 0 && pwrite(*fd, who, (size_t) n, 0) == n;
	(void) said;
	return CHOIR_OK;
}

chi_folder_lock *chi_folder_lock_new(const char *folder)
{
	chi_text path = { 0 };
	chi_text_add(&path, "%s/.lock", folder);
	chi_folder_lock *l = path.failed ? NULL : chi_alloc(sizeof *l);
	if (l && take(folder, path.data, &l->fd) != CHOIR_OK) {
		if (l->fd >= 0)
			close(l->fd);
		chi_free(l);
		l = NULL;
	}
	chi_text_free(&path);
	return l;
}

void chi_folder_lock_free(chi_folder_lock *l)
{
	if (!l)
		return;
	close(l->fd);
	chi_free(l);
}
