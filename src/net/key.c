// Files of keys.
#include "net/key.h"

#include "base/entropy.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static choir_status refused(const char *what, const char *path)
{
	char text[128];
	return choir_fail(errno == ENOENT ? CHOIR_NOT_FOUND
					: errno == EEXIST ? CHOIR_STATE
									  : CHOIR_IO,
			"key %s: %s: %s", path, what, chi_text_errno(errno, text, sizeof text));
}

static choir_status check(const char *path, const struct stat *s)
{
	if (!S_ISREG(s->st_mode) || s->st_uid != geteuid())
		return choir_fail(CHOIR_INVALID,
				"key %s: it is no file of user %ld; a file that belongs to this user is needed",
				path, (long) geteuid());
	if ((s->st_mode & 077) != 0)
		return choir_fail(CHOIR_INVALID,
				"key %s: its mode is %03o, so other users may use it; chmod 600 is needed", path,
				(unsigned) s->st_mode & 0777);
	if (s->st_size < CHI_KEY_MIN || s->st_size > CHI_KEY_MAX)
		return choir_fail(CHOIR_INVALID,
				"key %s: %lld bytes; %d to %d are needed (choir key FILE makes a key)", path,
				(long long) s->st_size, CHI_KEY_MIN, CHI_KEY_MAX);
	return CHOIR_OK;
}

choir_status chi_key_read(const char *path, chi_key *key)
{
	struct stat s;
	*key = (chi_key){ 0 };
	const int fd = chi_fs_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 && errno == ELOOP)
		return choir_fail(CHOIR_INVALID,
				"key %s: it is a link; the path of the file itself is needed", path);
	if (fd < 0)
		return refused("it cannot be opened", path);
	choir_status status = chi_fs_stat(fd, &s) == 0 ? check(path, &s) : refused("stat", path);
	const struct iovec to = { key->bytes, (size_t) s.st_size };
	if (status == CHOIR_OK && chi_fs_read(fd, &to, 1, 0) != (ssize_t) s.st_size)
		status = choir_fail(CHOIR_IO, "key %s: it cannot be read", path);
	if (status == CHOIR_OK)
		key->size = (size_t) s.st_size;
	chi_fs_close(fd);
	return status;
}

choir_status chi_key_make(const char *path)
{
	unsigned char bytes[CHI_KEY_MIN];
	CHOIR_TRY(chi_entropy(bytes, sizeof bytes));
	const int fd = chi_fs_create_private(AT_FDCWD, path);
	if (fd < 0)
		return refused("it cannot be made", path);
	choir_status status = CHOIR_OK;
	if (chi_fs_write(fd, bytes, sizeof bytes) != (ssize_t) sizeof bytes || chi_fs_sync(fd) != 0)
		status = refused("it cannot be written", path);
	chi_fs_close(fd);
	if (status != CHOIR_OK)
		chi_fs_remove(AT_FDCWD, path);
	explicit_bzero(bytes, sizeof bytes);
	return status;
}

uint64_t chi_key_job(const chi_key *key)
{
	return chi_hash_mix(chi_hash_bytes(key->bytes, key->size));
}

void chi_key_clear(chi_key *key)
{
	explicit_bzero(key, sizeof *key);
}
