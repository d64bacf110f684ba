// flock's lock is the open file's, so users in one process exclude each other, too.
#include "base/directory.h"
#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct chi_directory {
	int fd;
	char path[];
};

static choir_status fail_errno(const char *path, const char *what)
{
	char text[128];
	const bool missing = errno == ENOENT || errno == ENOTDIR;
	return choir_fail(missing ? CHOIR_NOT_FOUND : CHOIR_IO, "%s: %s: %s", path, what,
			chi_text_errno(errno, text, sizeof text));
}

static choir_status fail_in(const chi_directory *f, const char *name, const char *what)
{
	const int number = errno;
	chi_text path = { 0 };
	chi_text_add(&path, "%s/%s", f->path, name);
	errno = number;
	const choir_status status = path.failed ? CHOIR_NO_MEMORY : fail_errno(path.data, what);
	chi_text_free(&path);
	return status;
}

static int descriptor(const chi_directory *f)
{
	return f == NULL ? AT_FDCWD : f->fd;
}

static chi_directory *new_directory(const chi_directory *in, const char *name)
{
	const size_t before = in == NULL ? 0 : strlen(in->path) + 1, length = strlen(name);
	chi_directory *f = chi_alloc(sizeof *f + before + length + 1);
	if (f == NULL)
		return NULL;
	if (before > 0) {
		memcpy(f->path, in->path, before - 1);
		f->path[before - 1] = '/';
	}
	memcpy(f->path + before, name, length + 1);
	return f;
}

static choir_status explain(const chi_directory *in, const char *name, const char *path)
{
	const int number = errno;
	struct stat s;
	if ((number == ELOOP || number == ENOTDIR) && chi_fs_stat_at(descriptor(in), name, &s) == 0 &&
			!S_ISDIR(s.st_mode))
		return choir_fail(CHOIR_CORRUPT, "%s: is %s; a directory is needed", path,
				S_ISLNK(s.st_mode) ? "a link" : "not a directory");
	errno = number;
	return fail_errno(path, "open the directory");
}

static chi_directory *open_directory(const chi_directory *in, const char *name, int flags)
{
	chi_directory *f = new_directory(in, name);
	if (f == NULL)
		return NULL;
	f->fd = chi_fs_open(descriptor(in), name, O_RDONLY | O_DIRECTORY | flags);
	if (f->fd >= 0)
		return f;
	if (flags == O_NOFOLLOW)
		explain(in, name, f->path);
	else
		fail_errno(f->path, "open the directory");
	chi_free(f);
	return NULL;
}

chi_directory *chi_directory_open(const char *path)
{
	return open_directory(NULL, path, 0);
}

chi_directory *chi_directory_open_in(const chi_directory *in, const char *name)
{
	return open_directory(in, name, O_NOFOLLOW);
}

void chi_directory_close(chi_directory *f)
{
	if (f == NULL)
		return;
	close(f->fd);
	chi_free(f);
}

const char *chi_directory_path(const chi_directory *f)
{
	return f->path;
}

int chi_directory_descriptor(const chi_directory *f)
{
	return f->fd;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

static choir_status read_names(const char *path, DIR *d, chi_glob *names)
{
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e && errno != 0)
			return fail_errno(path, "read the directory");
		if (!e)
			return CHOIR_OK;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			CHOIR_TRY(chi_glob_add_path(names, e->d_name));
	}
}

choir_status chi_directory_list(const chi_directory *f, chi_glob *names)
{
	// With a read position of its own.
	const int fd = chi_fs_open(f->fd, ".", O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		const choir_status status = fail_errno(f->path, "open the directory");
		if (fd >= 0)
			close(fd);
		return status;
	}
	const choir_status status = read_names(f->path, d, names);
	closedir(d);
	if (names->n > 0)
		qsort(names->path, names->n, sizeof *names->path, by_name);
	return status;
}

choir_status chi_directory_has(const chi_directory *f, const char *name, bool *has)
{
	struct stat s;
	*has = chi_fs_stat_at(f->fd, name, &s) == 0;
	return *has || errno == ENOENT ? CHOIR_OK : fail_in(f, name, "stat");
}

static choir_status make(const char *path, bool *made)
{
	struct stat s;
	char text[128];
	*made = chi_fs_make_directory(AT_FDCWD, path) == 0;
	if (*made)
		return CHOIR_OK;
	if (errno == EEXIST && stat(path, &s) == 0 && S_ISDIR(s.st_mode))
		return CHOIR_OK;
	return choir_fail(CHOIR_IO, "%s: make the directory: %s", path,
			chi_text_errno(errno, text, sizeof text));
}

choir_status chi_directory_make(const char *path)
{
	bool made;
	return make(path, &made);
}

choir_status chi_directory_make_private(const char *path)
{
	struct stat s;
	char text[128];
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return choir_fail(CHOIR_IO, "%s: make the directory: %s", path,
				chi_text_errno(errno, text, sizeof text));
	if (lstat(path, &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid() ||
			(s.st_mode & 0077) != 0)
		return choir_fail(CHOIR_STATE,
				"%s: is not a directory of this user with mode 0700; remove it", path);
	return CHOIR_OK;
}

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
	chi_directory *f = parent.failed ? NULL : chi_directory_open(parent.data);
	const choir_status status = f == NULL ? choir_error_status() : chi_directory_sync(f);
	chi_directory_close(f);
	chi_text_free(&parent);
	return status;
}

choir_status chi_directory_make_synced(const char *path)
{
	bool made;
	CHOIR_TRY(make(path, &made));
	return made ? sync_parent(path) : CHOIR_OK;
}

choir_status chi_directory_make_in(const chi_directory *f, const char *name)
{
	return chi_fs_make_directory(f->fd, name) == 0 ? CHOIR_OK
												   : fail_in(f, name, "make the directory");
}

choir_status chi_directory_sync(const chi_directory *f)
{
	// Some file systems cannot sync a directory and return EINVAL.
	if (chi_fs_sync(f->fd) != 0 && errno != EINVAL)
		return fail_errno(f->path, "fsync the directory");
	return CHOIR_OK;
}

choir_status chi_directory_rename(const chi_directory *f, const char *from, const char *to)
{
	return chi_fs_rename(f->fd, from, to) == 0 ? CHOIR_OK : fail_in(f, from, "rename");
}

static choir_status empty(const chi_directory *f)
{
	chi_glob names = { 0 };
	choir_status status = chi_directory_list(f, &names);
	for (size_t i = 0; status == CHOIR_OK && i < names.n; i++)
		if (chi_fs_remove(f->fd, names.path[i]) != 0)
			status = fail_in(f, names.path[i], "remove");
	chi_glob_free(&names);
	return status;
}

choir_status chi_directory_remove(const chi_directory *f, const char *name)
{
	bool has;
	CHOIR_TRY(chi_directory_has(f, name, &has));
	if (!has)
		return CHOIR_OK;
	chi_directory *inner = chi_directory_open_in(f, name);
	const choir_status status = inner == NULL ? choir_error_status() : empty(inner);
	chi_directory_close(inner);
	CHOIR_TRY(status);
	return chi_fs_remove_directory(f->fd, name) == 0 ? CHOIR_OK
													 : fail_in(f, name, "remove the directory");
}

uint64_t chi_directory_free_bytes(const chi_directory *f)
{
	uint64_t bytes;
	return chi_fs_free_bytes(f->fd, &bytes) == 0 ? bytes : UINT64_MAX;
}

static const char lock_name[] = ".lock";

struct chi_directory_lock {
	int fd;
};

enum { WHO = 128 };
static const char who_begins[] = "process ";

static choir_status in_use(const chi_directory *f, const char *who)
{
	char clean[2 * WHO];
	return choir_fail(CHOIR_STATE, "%s: is in use by %s", f->path,
			who[0] != '\0' ? chi_text_clean(who, clean, sizeof clean) : "another job");
}

// In another user's directory, only an empty file or an earlier lock's is written.
static choir_status check_own(const chi_directory *f, int fd, char who[WHO])
{
	struct stat s;
	if (chi_fs_stat(fd, &s) != 0)
		return fail_in(f, lock_name, "stat");
	if (!S_ISREG(s.st_mode))
		return choir_fail(
				CHOIR_CORRUPT, "%s/%s: is not a file; the lock needs one", f->path, lock_name);
	const struct iovec part = { who, WHO - 1 };
	const ssize_t n = chi_fs_read(fd, &part, 1, 0);
	if (n < 0)
		return fail_in(f, lock_name, "read");
	who[n] = '\0';
	const bool own = strncmp(who, who_begins, sizeof who_begins - 1) == 0 && s.st_size < WHO &&
			strcspn(who, "\n") + 1 == (size_t) s.st_size;
	who[strcspn(who, "\n")] = '\0';
	if (own || s.st_size == 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT,
			"%s/%s: is a file of %lld bytes that no lock wrote; the lock needs a file of its own",
			f->path, lock_name, (long long) s.st_size);
}

static choir_status take(const chi_directory *f, int *fd)
{
	char host[64] = "", who[WHO] = "";
	struct stat s;
	*fd = chi_fs_open(f->fd, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
	if (*fd < 0) {
		const int number = errno;
		if (number == ELOOP && chi_fs_stat_at(f->fd, lock_name, &s) == 0 && S_ISLNK(s.st_mode))
			return choir_fail(CHOIR_CORRUPT, "%s/%s: is a link; the lock needs a file of its own",
					f->path, lock_name);
		errno = number;
		return fail_in(f, lock_name, "open");
	}
	const bool locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
	if (!locked && errno != EWOULDBLOCK)
		return fail_in(f, lock_name, "lock");
	CHOIR_TRY(check_own(f, *fd, who));
	if (!locked)
		return in_use(f, who);
	gethostname(host, sizeof host - 1);
	const int n = snprintf(who, sizeof who, "%s%ld on %s\n", who_begins, (long) getpid(), host);
	// On a full disk the name is missing, but the lock holds.
	const bool said = ftruncate(*fd, 0) == 0 && pwrite(*fd, who, (size_t) n, 0) == n;
	(void) said;
	return CHOIR_OK;
}

chi_directory_lock *chi_directory_lock_new(const chi_directory *f)
{
	chi_directory_lock *l = chi_alloc(sizeof *l);
	if (l && take(f, &l->fd) != CHOIR_OK) {
		if (l->fd >= 0)
			close(l->fd);
		chi_free(l);
		l = NULL;
	}
	return l;
}

void chi_directory_lock_free(chi_directory_lock *l)
{
	if (!l)
		return;
	close(l->fd);
	chi_free(l);
}

choir_status chi_directory_lock_check(const chi_directory_lock *l, const chi_directory *f)
{
	struct stat mine, there;
	if (chi_fs_stat(l->fd, &mine) != 0)
		return fail_in(f, lock_name, "stat");
	const bool found = chi_fs_stat_at(f->fd, lock_name, &there) == 0;
	if (!found && errno != ENOENT)
		return fail_in(f, lock_name, "stat");
	if (found && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev)
		return CHOIR_OK;
	return choir_fail(CHOIR_STATE,
			"%s/%s: was removed or replaced while this job "
			"used the directory; another job may use it now",
			f->path, lock_name);
}
