// Reads at offsets, so threads can share a reader.
#include "base/file.h"
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/crc32c.h"
#include "base/fs.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BUFFER_SIZE = 64 << 10, NAME_TRIES = 100 };

static choir_status fail_errno(choir_status status, const char *path, const char *what)
{
	char text[128];
	return choir_fail(status, "%s: %s: %s", path, what, chi_text_errno(errno, text, sizeof(text)));
}

struct chi_file {
	int fd;
	uint64_t size;
	struct timespec changed;
	char path[];
};

static choir_status check_regular(int fd, const char *path, struct stat *s)
{
	if (chi_fs_stat(fd, s) != 0)
		return fail_errno(CHOIR_IO, path, "stat");
	if (!S_ISREG(s->st_mode))
		return choir_fail(CHOIR_IO, "%s: is %s; a file is needed", path,
				S_ISDIR(s->st_mode) ? "a directory" : "a device, pipe or socket");
	return CHOIR_OK;
}

static void fail_open(const char *path, bool may_be_link)
{
	if (may_be_link && errno == ELOOP) {
		choir_fail(CHOIR_CORRUPT, "%s: is a link; a file is needed", path);
		return;
	}
	const bool missing = errno == ENOENT || errno == ENOTDIR;
	fail_errno(missing ? CHOIR_NOT_FOUND : CHOIR_IO, path, "open");
}

static chi_file *open_file(int directory, const char *name, const char *path, int flags)
{
	// Without O_NONBLOCK, opening a pipe would wait.
	int fd = chi_fs_open(directory, name, O_RDONLY | O_NONBLOCK | flags);
	if (fd < 0) {
		fail_open(path, flags == O_NOFOLLOW);
		return NULL;
	}
	struct stat s;
	size_t path_bytes = strlen(path) + 1;
	chi_file *f =
			check_regular(fd, path, &s) == CHOIR_OK ? chi_alloc(sizeof(*f) + path_bytes) : NULL;
	if (!f) {
		close(fd);
		return NULL;
	}
	f->fd = fd;
	f->size = (uint64_t) s.st_size;
	f->changed = s.st_mtim;
	memcpy(f->path, path, path_bytes);
	return f;
}

chi_file *chi_file_open(const char *path)
{
	return open_file(AT_FDCWD, path, path, 0);
}

chi_file *chi_file_open_in(const chi_directory *directory, const char *name)
{
	chi_text path = { 0 };
	chi_text_add(&path, "%s/%s", chi_directory_path(directory), name);
	chi_file *f = path.failed
			? NULL
			: open_file(chi_directory_descriptor(directory), name, path.data, O_NOFOLLOW);
	chi_text_free(&path);
	return f;
}

void chi_file_close(chi_file *f)
{
	if (!f)
		return;
	close(f->fd);
	chi_free(f);
}

const char *chi_file_path(const chi_file *f)
{
	return f->path;
}

uint64_t chi_file_size(const chi_file *f)
{
	return f->size;
}

choir_status chi_file_check(chi_file *f)
{
	struct stat s;
	if (chi_fs_stat(f->fd, &s) != 0)
		return fail_errno(CHOIR_IO, f->path, "stat");
	const uint64_t size = (uint64_t) s.st_size;
	if (size == f->size && s.st_mtim.tv_sec == f->changed.tv_sec &&
			s.st_mtim.tv_nsec == f->changed.tv_nsec)
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT,
			"%s: was changed while it was read: it had "
			"%llu bytes when it was opened, and has %llu",
			f->path, (unsigned long long) f->size, (unsigned long long) size);
}

choir_status chi_file_read_some(chi_file *f, uint64_t offset, void *to, size_t bytes, size_t *got)
{
	*got = 0;
	uint64_t max = offset < INT64_MAX ? INT64_MAX - offset : 0;
	if (bytes > max)
		bytes = (size_t) max;
	while (*got < bytes) {
		const struct iovec part = { (char *) to + *got, bytes - *got };
		const ssize_t n = chi_fs_read(f->fd, &part, 1, (off_t) (offset + *got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(CHOIR_IO, f->path, "read");
		if (n == 0)
			break;
		*got += (size_t) n;
	}
	return CHOIR_OK;
}

choir_status chi_file_read(chi_file *f, uint64_t offset, void *to, size_t bytes)
{
	size_t got;
	CHOIR_TRY(chi_file_read_some(f, offset, to, bytes, &got));
	if (got < bytes)
		return choir_fail(CHOIR_CORRUPT,
				"%s: has %zu bytes at offset %llu, but %zu are needed; the file is cut short",
				f->path, got, (unsigned long long) offset, bytes);
	return CHOIR_OK;
}

choir_status chi_file_read_parts(
		chi_file *f, uint64_t offset, const chi_file_part parts[], size_t n)
{
	struct iovec to[CHI_MAX_PARTS];
	for (size_t i = 0; i < n; i++)
		to[i] = (struct iovec){ parts[i].to, parts[i].bytes };
	const ssize_t result =
			offset <= INT64_MAX ? chi_fs_read(f->fd, to, (int) n, (off_t) offset) : 0;
	size_t got = result > 0 ? (size_t) result : 0;
	for (size_t i = 0; i < n; i++) {
		const size_t have = got < parts[i].bytes ? got : parts[i].bytes;
		got -= have;
		if (have < parts[i].bytes)
			CHOIR_TRY(chi_file_read(
					f, offset + have, (char *) parts[i].to + have, parts[i].bytes - have));
		offset += parts[i].bytes;
	}
	return CHOIR_OK;
}

void chi_file_fingerprint(const char *path, char *out, size_t size)
{
	enum { STEP = 1 << 20 };
	chi_error before;
	chi_error_save(&before);
	chi_file *f = chi_file_open(path);
	unsigned char *block = chi_alloc(STEP);
	uint32_t crc = 0;
	uint64_t at = 0;
	size_t got = f != NULL && block != NULL ? STEP : 0;
	while (got > 0 && chi_file_read_some(f, at, block, STEP, &got) == CHOIR_OK && got > 0) {
		crc = chi_crc32c(crc, block, got);
		at += got;
	}
	if (f != NULL && at == chi_file_size(f))
		snprintf(out, size, "a file of %llu bytes, CRC-32C %08x", (unsigned long long) at,
				(unsigned) crc);
	else
		snprintf(out, size, "unknown");
	chi_free(block);
	chi_file_close(f);
	chi_error_restore(&before);
}

struct chi_writer {
	int fd, directory;
	bool there;
	size_t used;
	chi_error failure;
	char *target;
	char *temporary;
	char *path;
	char buffer[BUFFER_SIZE];
};

static choir_status fail_writer(chi_writer *w, const char *what)
{
	fail_errno(CHOIR_IO, w->path, what);
	chi_error_save(&w->failure);
	return CHOIR_IO;
}

void chi_writer_abort(chi_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	if (w->directory >= 0)
		close(w->directory);
	if (w->there)
		chi_fs_remove(AT_FDCWD, w->temporary);
	chi_free(w->target);
	chi_free(w->temporary);
	chi_free(w->path);
	chi_free(w);
}

static size_t directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t) (slash - path) + 1 : 0;
}

// Opened first: after the rename only its fsync can fail.
static choir_status open_directory(chi_writer *w)
{
	size_t length = directory_length(w->target);
	char scratch = w->target[length];
	w->target[length] = '\0';
	const int flags = O_RDONLY | O_DIRECTORY;
	w->directory = chi_fs_open(AT_FDCWD, length ? w->target : ".", flags);
	w->target[length] = scratch;
	return w->directory < 0 ? fail_writer(w, "open its directory") : CHOIR_OK;
}

// ".NAME.tmp-PROCESS-NUMBER"; a dead process may have left that name.
static choir_status create_temporary(chi_writer *w, size_t capacity)
{
	static chi_atomic32 names;
	const char *name = w->target + directory_length(w->target);
	for (int i = 0; i < NAME_TRIES; i++) {
		snprintf(w->temporary, capacity, "%.*s.%.200s.tmp-%ld-%u", (int) (name - w->target),
				w->target, name, (long) getpid(), chi_atomic32_add(&names, 1));
		w->fd = chi_fs_create(AT_FDCWD, w->temporary);
		if (w->fd >= 0) {
			w->there = true;
			return CHOIR_OK;
		}
		if (errno != EEXIST)
			break;
	}
	return fail_writer(w, "create");
}

// Replaces only a regular file, not /dev/null, and keeps its mode.
static choir_status look_at_target(chi_writer *w, mode_t *mode)
{
	struct stat s;
	*mode = 0;
	const char *name = w->target + directory_length(w->target);
	if (*name == '\0')
		return choir_fail(CHOIR_INVALID, "%s: has no file name; the path of a file is needed",
				*w->path ? w->path : "\"\"");
	if (stat(w->target, &s) != 0)
		return CHOIR_OK;
	if (!S_ISREG(s.st_mode))
		return choir_fail(CHOIR_INVALID, "%s: is %s; only a regular file can be replaced", w->path,
				S_ISDIR(s.st_mode) ? "a directory" : "a device, pipe or socket");
	*mode = s.st_mode & 0777;
	return CHOIR_OK;
}

static choir_status open_writer(chi_writer *w, size_t capacity)
{
	mode_t mode;
	CHOIR_TRY(look_at_target(w, &mode));
	CHOIR_TRY(open_directory(w));
	CHOIR_TRY(create_temporary(w, capacity));
	if (mode && chi_fs_set_mode(w->fd, mode) != 0)
		return fail_writer(w, "change mode");
	return CHOIR_OK;
}

chi_writer *chi_writer_new(const char *path)
{
	chi_writer *w = chi_alloc(sizeof(*w));
	if (!w)
		return NULL;
	w->fd = w->directory = -1;
	// If path is a link, its target is replaced.
	char resolved[PATH_MAX];
	const char *target = realpath(path, resolved) ? resolved : path;
	size_t capacity = strlen(target) + 64;
	w->path = chi_strdup(path);
	w->target = chi_strdup(target);
	w->temporary = chi_alloc(capacity);
	if (w->path && w->target && w->temporary && open_writer(w, capacity) == CHOIR_OK)
		return w;
	chi_writer_abort(w);
	return NULL;
}

static chi_writer *grow_file(int directory, const char *name, const char *path)
{
	chi_writer *w = chi_alloc(sizeof(*w));
	if (!w)
		return NULL;
	w->fd = w->directory = -1;
	w->path = chi_strdup(path);
	if (w->path) {
		w->fd = chi_fs_create(directory, name);
		if (w->fd >= 0)
			return w;
		fail_writer(w, "create");
	}
	chi_writer_abort(w);
	return NULL;
}

chi_writer *chi_writer_new_growing(const char *path)
{
	return grow_file(AT_FDCWD, path, path);
}

chi_writer *chi_writer_new_growing_in(const chi_directory *directory, const char *name)
{
	chi_text path = { 0 };
	chi_text_add(&path, "%s/%s", chi_directory_path(directory), name);
	chi_writer *w =
			path.failed ? NULL : grow_file(chi_directory_descriptor(directory), name, path.data);
	chi_text_free(&path);
	return w;
}

static choir_status write_all(chi_writer *w, const char *data, size_t bytes)
{
	while (bytes > 0) {
		const ssize_t n = chi_fs_write(w->fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_writer(w, "write");
		data += n;
		bytes -= (size_t) n;
	}
	return CHOIR_OK;
}

static choir_status flush(chi_writer *w)
{
	size_t bytes = w->used;
	w->used = 0;
	return write_all(w, w->buffer, bytes);
}

static choir_status fail_again(const chi_writer *w)
{
	if (w->failure.status != CHOIR_OK)
		chi_error_restore(&w->failure);
	return w->failure.status;
}

choir_status chi_writer_write(chi_writer *w, const void *data, size_t bytes)
{
	CHOIR_TRY(fail_again(w));
	if (bytes > BUFFER_SIZE - w->used)
		CHOIR_TRY(flush(w));
	if (bytes >= BUFFER_SIZE)
		return write_all(w, data, bytes);
	if (bytes > 0)
		memcpy(w->buffer + w->used, data, bytes);
	w->used += bytes;
	return CHOIR_OK;
}

choir_status chi_writer_flush(chi_writer *w)
{
	CHOIR_TRY(fail_again(w));
	return flush(w);
}

static choir_status publish(chi_writer *w)
{
	CHOIR_TRY(fail_again(w));
	CHOIR_TRY(flush(w));
	if (chi_fs_sync(w->fd) != 0)
		return fail_writer(w, "fsync");
	int fd = w->fd;
	w->fd = -1;
	if (chi_fs_close(fd) != 0)
		return fail_writer(w, "close");
	if (!w->temporary)
		return CHOIR_OK;
	if (chi_fs_rename(AT_FDCWD, w->temporary, w->target) != 0)
		return fail_writer(w, "rename");
	w->there = false;
	if (chi_fs_sync(w->directory) != 0 && errno != EINVAL)
		return fail_writer(w, "fsync its directory");
	return CHOIR_OK;
}

choir_status chi_writer_commit(chi_writer *w)
{
	choir_status status = publish(w);
	chi_writer_abort(w);
	return status;
}
