// The files of files.h.
#include "train/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];

const char *files_path(const char *name)
{
	static char path[512];
	if (directory[0] == '\0') {
		const char *temporary = getenv("TMPDIR");
		snprintf(
				directory, sizeof directory, "%.40s/choir-XXXXXX", temporary ? temporary : "/tmp");
		assert_non_null(mkdtemp(directory));
	}
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return path;
}

static int remove_one(const char *path, const struct stat *s, int flag, struct FTW *where)
{
	(void) s;
	(void) flag;
	(void) where;
	return remove(path);
}

void files_remove_directory(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void files_remove(void)
{
	files_remove_directory(directory);
	directory[0] = '\0';
}

int files_teardown(void **state)
{
	(void) state;
	files_remove();
	return 0;
}

int files_count(void)
{
	int n = 0;
	DIR *d = directory[0] != '\0' ? opendir(directory) : NULL;
	for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d != NULL)
		closedir(d);
	return n;
}

void files_write(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_true(size == 0 || fwrite(data, 1, size, f) == size);
	assert_int_equal(fclose(f), 0);
}

char *files_read(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*size = (size_t) ftell(f);
	rewind(f);
	char *data = malloc(*size + 1);
	assert_non_null(data);
	assert_true(fread(data, 1, *size, f) == *size);
	data[*size] = '\0';
	fclose(f);
	return data;
}

void files_write_safetensors(const char *path, const char *header, const void *data, size_t size)
{
	const uint64_t length = strlen(header);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	for (int i = 0; i < 8; i++)
		fputc((int) (length >> (8 * i) & 0xff), f);
	assert_true(fwrite(header, 1, length, f) == length);
	assert_true(size == 0 || fwrite(data, 1, size, f) == size);
	assert_int_equal(fclose(f), 0);
}
