// Files: whatever fails while one is written, the old one stays whole and nothing else is left.
#include "base/fs.h"
#include "base/file.h"
#include "base/directory.h"
#include "base/alloc.h"
#include "base/status.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// Each test runs in an empty folder of its own.
static char root[256];

static int enter_directory(void **state)
{
	(void) state;
	char name[] = "file_test.XXXXXX";
	chi_error_clear();
	return getcwd(root, sizeof(root)) && mkdtemp(name) ? chdir(name) : -1;
}

static int leave_directory(void **state)
{
	(void) state;
	chi_fs_fail(0, 0);
	char here[256], command[300];
	if (!getcwd(here, sizeof(here)) || chdir(root) != 0)
		return -1;
	snprintf(command, sizeof(command), "rm -r '%s'", here);
	return system(command);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static bool holds(const char *path, const char *text)
{
	char found[64] = "";
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	size_t length = fread(found, 1, sizeof(found) - 1, f);
	fclose(f);
	return length == strlen(text) && memcmp(found, text, length) == 0;
}

// Names in the current folder.
static int entries(void)
{
	int count = 0;
	DIR *directory = opendir(".");
	assert_non_null(directory);
	for (struct dirent *e; (e = readdir(directory));)
		count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(directory);
	return count;
}

// The lowest number that the next file would get: a leak raises it.
static int next_descriptor(void)
{
	int fd = dup(0);
	close(fd);
	return fd;
}

static choir_status save(const char *path, const char *text)
{
	chi_writer *w = chi_writer_new(path);
	if (!w)
		return choir_error_status();
	chi_writer_write(w, text, strlen(text));
	return chi_writer_commit(w);
}

static void assert_error(choir_status status, const char *text)
{
	assert_int_equal(choir_error_status(), status);
	assert_text_holds(choir_error(), text);
	chi_error_clear();
}

TEST_WITHIN(test_open, enter_directory, leave_directory)
{
	put("a", "0123456789");
	chi_file *f = chi_file_open("a");
	assert_non_null(f);
	assert_string_equal(chi_file_path(f), "a");
	assert_int_equal(chi_file_size(f), 10);
	chi_file_close(f);
	chi_file_close(NULL);
	assert_null(chi_file_open("missing"));
	assert_error(CHOIR_NOT_FOUND, "missing: open:*directory");
	assert_null(chi_file_open("a/b"));
	assert_error(CHOIR_NOT_FOUND, "a/b: open:*directory");
	assert_null(chi_file_open("."));
	assert_error(CHOIR_IO, ".:*directory");
	assert_int_equal(mkfifo("pipe", 0666), 0);
	assert_null(chi_file_open("pipe")); // at once
	assert_error(CHOIR_IO, "pipe:*socket");
	int before = next_descriptor();
	chi_alloc_fail(1, false);
	assert_null(chi_file_open("a"));
	chi_alloc_fail(0, false);
	assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	assert_int_equal(next_descriptor(), before);
}

TEST_WITHIN(test_read, enter_directory, leave_directory)
{
	put("a", "0123456789");
	chi_file *f = chi_file_open("a");
	char text[20] = "";
	assert_int_equal(chi_file_read(f, 3, text, 4), CHOIR_OK);
	assert_string_equal(text, "3456");
	assert_int_equal(chi_file_read(f, 10, text, 0), CHOIR_OK);
	assert_int_equal(chi_file_read(f, 8, text, 4), CHOIR_CORRUPT);
	assert_error(CHOIR_CORRUPT, "a:*2 bytes*offset 8*4");
	assert_int_equal(chi_file_read(f, UINT64_MAX - 2, text, 4), CHOIR_CORRUPT);
	assert_error(CHOIR_CORRUPT, "a:*0 bytes*18446744073709551613");
	size_t got = 99;
	assert_int_equal(chi_file_read_some(f, 7, text, 20, &got), CHOIR_OK);
	assert_int_equal(got, 3);
	assert_memory_equal(text, "789", 3);
	assert_int_equal(chi_file_read_some(f, 10, text, 20, &got), CHOIR_OK);
	assert_int_equal(got, 0);
	assert_int_equal(chi_file_read_some(f, INT64_MAX, text, 20, &got), CHOIR_OK);
	assert_int_equal(got, 0);
	assert_int_equal(truncate("a", 5), 0); // under our eyes: an error, no signal
	assert_int_equal(chi_file_read(f, 3, text, 4), CHOIR_CORRUPT);
	assert_error(CHOIR_CORRUPT, "a:*2 bytes*offset 3*4");
	chi_file_close(f);
}

TEST_WITHIN(test_read_parts, enter_directory, leave_directory)
{
	char a[4] = "", b[8] = "", c[4] = "";
	const chi_file_part parts[] = { { a, 2 }, { b, 0 }, { b, 5 }, { c, 3 } };

	put("parts", "0123456789abc");
	chi_file *f = chi_file_open("parts");
	assert_int_equal(chi_file_read_parts(f, 1, parts, 4), CHOIR_OK);
	assert_string_equal(a, "12");
	assert_string_equal(b, "34567");
	assert_string_equal(c, "89a");
	assert_int_equal(chi_file_read_parts(f, 3, parts, 4), CHOIR_OK);
	assert_string_equal(c, "abc");
	assert_int_equal(chi_file_read_parts(f, 4, parts, 4), CHOIR_CORRUPT);
	assert_error(CHOIR_CORRUPT, "parts:*0 bytes*offset 13");
	assert_int_equal(chi_file_read_parts(f, 13, parts, 4), CHOIR_CORRUPT);
	assert_int_equal(chi_file_read_parts(f, UINT64_MAX - 1, parts, 4), CHOIR_CORRUPT);
	assert_int_equal(chi_file_read_parts(f, 99, parts, 0), CHOIR_OK);
	chi_file_close(f);
}

TEST_WITHIN(test_write, enter_directory, leave_directory)
{
	enum { PIECES = 40 };
	static char piece[5000];
	mode_t mask = umask(027);
	chi_writer *w = chi_writer_new("new");
	umask(mask);
	assert_non_null(w);
	assert_int_equal(access("new", F_OK), -1); // not before it is whole
	for (int i = 0; i < PIECES; i++) {
		memset(piece, i, sizeof(piece));
		assert_int_equal(chi_writer_write(w, piece, sizeof(piece)), CHOIR_OK);
	}
	static char large[200000] = { 1, 2, 3 };
	assert_int_equal(chi_writer_write(w, large, sizeof(large)), CHOIR_OK);
	assert_int_equal(chi_writer_write(w, "end", 3), CHOIR_OK);
	assert_int_equal(chi_writer_write(w, NULL, 0), CHOIR_OK);
	assert_int_equal(chi_writer_commit(w), CHOIR_OK);
	struct stat s;
	assert_int_equal(stat("new", &s), 0);
	assert_int_equal(s.st_size, PIECES * sizeof(piece) + sizeof(large) + 3);
	assert_int_equal(s.st_mode & 0777, 0640);
	assert_int_equal(entries(), 1);
	chi_file *f = chi_file_open("new");
	static char found[sizeof(large)];
	for (int i = 0; i < PIECES; i++) {
		memset(piece, i, sizeof(piece));
		chi_file_read(f, (uint64_t) i * sizeof(piece), found, sizeof(piece));
		assert_memory_equal(found, piece, sizeof(piece));
	}
	assert_int_equal(chi_file_read(f, PIECES * sizeof(piece), found, sizeof(large)), CHOIR_OK);
	assert_memory_equal(found, large, sizeof(large));
	assert_int_equal(chi_file_read(f, PIECES * sizeof(piece) + sizeof(large), found, 3), CHOIR_OK);
	assert_memory_equal(found, "end", 3);
	chi_file_close(f);
}

TEST_WITHIN(test_abort, enter_directory, leave_directory)
{
	put("a", "old");
	int before = next_descriptor();
	chi_writer *w = chi_writer_new("a");
	chi_writer_write(w, "new", 3);
	assert_int_equal(entries(), 2);
	chi_writer_abort(w);
	chi_writer_abort(NULL);
	assert_true(holds("a", "old"));
	assert_int_equal(entries(), 1);
	assert_int_equal(next_descriptor(), before);
}

// Lets each system call of a save fail in turn. All but the last come before the new name is
// there.
static void fail_each(const char *old, int error_number)
{
	int before = next_descriptor(), failures = 0;
	bool saved = false;
	for (int n = 1; !saved; n++) {
		unlink("a");
		if (old)
			put("a", old);
		chi_error_clear();
		chi_fs_fail(n, error_number);
		saved = save("a", "new") == CHOIR_OK;
		chi_fs_fail(0, 0);
		assert_int_equal(next_descriptor(), before);
		if (saved)
			break;
		failures++;
		assert_int_equal(choir_error_status(), CHOIR_IO);
		assert_int_equal(strncmp(choir_error(), "a: ", 3), 0);
		assert_non_null(strstr(choir_error(), strerror(error_number)));
		if (strstr(choir_error(), "fsync its directory"))
			assert_true(holds("a", "new"));
		else
			assert_true(old ? holds("a", old) : access("a", F_OK) != 0);
		assert_int_equal(entries(), access("a", F_OK) == 0 ? 1 : 0);
	}
	assert_true(holds("a", "new"));
	assert_int_equal(failures, old ? 8 : 7);
}

TEST_WITHIN(test_each_call_fails, enter_directory, leave_directory)
{
	fail_each("old", ENOSPC);
	fail_each(NULL, ENOSPC);
	fail_each("old", EIO);
}

TEST_WITHIN(test_full_disk_message, enter_directory, leave_directory)
{
	chi_writer *w = chi_writer_new("weights.safetensors");
	chi_fs_fail(1, ENOSPC);
	assert_int_equal(chi_writer_write(w, "few", 3), CHOIR_OK); // buffered
	assert_int_equal(chi_writer_commit(w), CHOIR_IO);
	assert_error(CHOIR_IO, "weights.safetensors: write:*device");
	assert_int_equal(entries(), 0);
}

// A caller that looks only at the end learns the first failure all the same.
TEST_WITHIN(test_failure_stays, enter_directory, leave_directory)
{
	static char large[100000];
	chi_writer *w = chi_writer_new("a");
	chi_fs_fail(1, ENOSPC);
	assert_int_equal(chi_writer_write(w, large, sizeof(large)), CHOIR_IO);
	choir_fail(CHOIR_STATE, "something else");
	assert_int_equal(chi_writer_write(w, large, sizeof(large)), CHOIR_IO);
	assert_error(CHOIR_IO, "a: write:*device");
	assert_int_equal(chi_writer_commit(w), CHOIR_IO);
	assert_error(CHOIR_IO, "a: write:*device");
	assert_int_equal(entries(), 0);
}

// A signal in a write is no failure; nor is the name left by a dead process of the same number.
TEST_WITHIN(test_tries_again, enter_directory, leave_directory)
{
	chi_writer *w = chi_writer_new("a");
	chi_fs_fail(1, EINTR);
	chi_writer_write(w, "new", 3);
	assert_int_equal(chi_writer_commit(w), CHOIR_OK);
	assert_true(holds("a", "new"));
	chi_fs_fail(2, EEXIST); // the creation
	assert_int_equal(save("a", "newer"), CHOIR_OK);
	assert_true(holds("a", "newer"));
}

// A disk that is really full, as far as the process can tell: bytes fit, but not all.
TEST_WITHIN(test_real_limit, enter_directory, leave_directory)
{
	static char large[300000];
	put("a", "old");
	struct rlimit before, limit;
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 100000;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	chi_writer *w = chi_writer_new("a");
	choir_status written = w ? chi_writer_write(w, large, sizeof(large)) : CHOIR_INTERNAL;
	choir_status committed = w ? chi_writer_commit(w) : CHOIR_INTERNAL;
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, handler);
	assert_int_equal(written, CHOIR_IO);
	assert_int_equal(committed, CHOIR_IO);
	assert_error(CHOIR_IO, "a: write:*large");
	assert_true(holds("a", "old"));
	assert_int_equal(entries(), 1);
}

TEST_WITHIN(test_bad_targets, enter_directory, leave_directory)
{
	assert_null(chi_writer_new("no/such/a"));
	assert_error(CHOIR_IO, "no/such/a: open its directory:*directory");
	assert_null(chi_writer_new("/dev/full"));
	assert_error(CHOIR_INVALID, "/dev/full:*replaced");
	assert_null(chi_writer_new("."));
	assert_error(CHOIR_INVALID, ".:*replaced");
	assert_null(chi_writer_new(""));
	assert_error(CHOIR_INVALID, "\"\":");
	assert_null(chi_writer_new("missing/"));
	assert_error(CHOIR_INVALID, "missing/:");
	char name[300];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_not_equal(save(name, "new"), CHOIR_OK);
	assert_text_holds(choir_error(), "File name too long");
	name[255] = '\0'; // the longest name there is, to which nothing can be added
	assert_int_equal(save(name, "new"), CHOIR_OK);
	assert_true(holds(name, "new"));
	assert_int_equal(entries(), 1);
}

TEST_WITHIN(test_read_only_folder, enter_directory, leave_directory)
{
	if (geteuid() == 0)
		skip(); // who may do everything
	assert_int_equal(mkdir("closed", 0555), 0);
	assert_null(chi_writer_new("closed/a"));
	assert_error(CHOIR_IO, "closed/a: create:*denied");
}

TEST_WITHIN(test_keeps_mode_and_link, enter_directory, leave_directory)
{
	assert_int_equal(mkdir("directory", 0777), 0);
	put("directory/real", "old");
	assert_int_equal(chmod("directory/real", 0600), 0);
	assert_int_equal(symlink("directory/real", "link"), 0);
	assert_int_equal(save("link", "new"), CHOIR_OK);
	struct stat s;
	assert_int_equal(lstat("link", &s), 0);
	assert_true(S_ISLNK(s.st_mode));
	assert_true(holds("directory/real", "new"));
	assert_int_equal(stat("directory/real", &s), 0);
	assert_int_equal(s.st_mode & 0777, 0600);
}

TEST_WITHIN(test_out_of_memory, enter_directory, leave_directory)
{
	put("a", "old");
	int before = next_descriptor();
	for (uint64_t n = 1;; n++) {
		chi_alloc_fail(n, false);
		choir_status status = save("a", "new");
		bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(entries(), 1);
		assert_int_equal(next_descriptor(), before);
		if (!failed) {
			assert_int_equal(status, CHOIR_OK);
			assert_true(n > 1);
			break;
		}
		assert_int_equal(status, CHOIR_NO_MEMORY);
		assert_true(holds("a", "old"));
	}
	assert_true(holds("a", "new"));
}

// Files that others read while they grow.
static choir_status grow(const char *path, bool abort)
{
	chi_writer *w = chi_writer_new_growing(path);
	if (!w)
		return choir_error_status();
	choir_status status = chi_writer_write(w, "one", 3);
	if (status == CHOIR_OK)
		status = chi_writer_flush(w);
	if (status == CHOIR_OK) {
		assert_true(holds(path, "one"));
		status = chi_writer_write(w, "two", 3);
	}
	if (abort || status != CHOIR_OK)
		chi_writer_abort(w);
	return abort || status != CHOIR_OK ? status : chi_writer_commit(w);
}

TEST_WITHIN(test_growing, enter_directory, leave_directory)
{
	assert_int_equal(grow("a", false), CHOIR_OK);
	assert_true(holds("a", "onetwo"));
	assert_int_equal(grow("a", false), CHOIR_IO);
	assert_error(CHOIR_IO, "a: create:*exists");
	assert_int_equal(grow("b", true), CHOIR_OK);
	assert_true(holds("b", "one"));
	assert_int_equal(grow("none/a", false), CHOIR_IO);
	assert_error(CHOIR_IO, "none/a: create:*directory");
	const int before = next_descriptor();
	bool failed = true;
	for (int n = 1; failed; n++) {
		unlink("a");
		chi_fs_fail(n, ENOSPC);
		const choir_status status = grow("a", false);
		chi_fs_fail(0, 0);
		failed = status != CHOIR_OK;
		assert_true(!failed || status == CHOIR_IO);
		assert_true(failed || n == 6); // create, write, write, fsync, close
		assert_int_equal(next_descriptor(), before);
	}
	for (uint64_t n = 1; n <= 2; n++) {
		unlink("a");
		chi_alloc_fail(n, false);
		assert_int_equal(grow("a", false), CHOIR_NO_MEMORY);
		chi_alloc_fail(0, false);
	}
	assert_int_equal(next_descriptor(), before);
}

static void remove_in_new(const char *name, choir_status needed)
{
	chi_directory *f = chi_directory_open("new");
	assert_non_null(f);
	assert_int_equal(chi_directory_remove(f, name), needed);
	chi_directory_close(f);
}

TEST_WITHIN(test_folder, enter_directory, leave_directory)
{
	assert_int_equal(chi_directory_make("new"), CHOIR_OK);
	assert_int_equal(chi_directory_make("new"), CHOIR_OK); // it is there
	assert_int_equal(chi_directory_make("new/"), CHOIR_OK);
	assert_int_equal(chi_directory_make_synced("new"), CHOIR_OK);
	assert_int_equal(chi_directory_make_synced("new/synced//"), CHOIR_OK);
	remove_in_new("synced", CHOIR_OK);
	chi_fs_fail(2, EIO); // of its parent
	assert_int_equal(chi_directory_make_synced("new/synced"), CHOIR_IO);
	assert_true(chi_fs_failed());
	chi_fs_fail(0, 0);
	remove_in_new("synced", CHOIR_OK);
	assert_int_equal(chi_directory_make("no/new"), CHOIR_IO);
	assert_error(CHOIR_IO, "no/new: make the directory:*directory");
	put("file", "");
	assert_int_equal(chi_directory_make("file"), CHOIR_IO);
	assert_error(CHOIR_IO, "file: make the directory:*exists");
	chi_fs_fail(1, EDQUOT);
	assert_int_equal(chi_directory_make("other"), CHOIR_IO);
	assert_error(CHOIR_IO, "other: make the directory:*exceeded");
}

// A folder may come from a stranger: nothing in it is reached through a link.
TEST_WITHIN(test_links_in_a_folder, enter_directory, leave_directory)
{
	chi_glob names = { 0 };
	assert_int_equal(mkdir("new", 0777) | mkdir("other", 0777), 0);
	put("other/file", "kept");
	assert_int_equal(
			symlink("../other", "new/directory") | symlink("../other/file", "new/file"), 0);
	chi_directory *f = chi_directory_open("new");
	assert_non_null(f);
	assert_null(chi_directory_open_in(f, "directory"));
	assert_error(CHOIR_CORRUPT, "new/directory:*directory");
	assert_null(chi_directory_open_in(NULL, "new/directory"));
	assert_error(CHOIR_CORRUPT, "new/directory:*directory");
	assert_null(chi_directory_open_in(f, "none"));
	assert_error(CHOIR_NOT_FOUND, "new/none: open the directory:*directory");
	assert_null(chi_file_open_in(f, "file"));
	assert_error(CHOIR_CORRUPT, "new/file:");
	assert_null(chi_writer_new_growing_in(f, "file"));
	assert_error(CHOIR_IO, "new/file: create:*exists");
	assert_int_equal(chi_directory_remove(f, "directory"), CHOIR_CORRUPT);
	assert_int_equal(chi_directory_remove(f, "none"), CHOIR_OK);
	assert_true(holds("other/file", "kept"));
	assert_int_equal(chi_directory_list(f, &names), CHOIR_OK);
	assert_int_equal(names.n, 2);
	chi_glob_free(&names);
	chi_directory_close(f);
	f = chi_directory_open("."); // of links in what is removed only the links go
	assert_int_equal(unlink("new/directory"), 0);
	assert_int_equal(chi_directory_remove(f, "new"), CHOIR_OK);
	chi_directory_close(f);
	assert_true(holds("other/file", "kept"));
	assert_int_equal(access("new", F_OK), -1);
}
