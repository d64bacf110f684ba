// Fuzzes manifests of checkpoints. The checksum is corrected first, because it would refuse nearly
// all inputs. An accepted manifest is printed and read again: it must be the same, with its
// tensors ordered by name, and nothing in it longer than the file.
#include "fuzz.h"

#include "base/crc32c.h"
#include "base/json.h"
#include "train/checkpoint/manifest.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { TAIL = 22 }; // ,"crc32c":"01234567"}\n

static char directory[64], path[96];

static void remove_directory(void)
{
	unlink(path);
	rmdir(directory);
}

// Returns a directory with data as its manifest, in shared memory if possible.
static chi_directory *put_manifest(const void *data, size_t size)
{
	if (path[0] == '\0') {
		snprintf(directory, sizeof directory, "%s/choir-fuzz-XXXXXX",
				access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		demand(mkdtemp(directory) != NULL && atexit(remove_directory) == 0, "no folder");
		snprintf(path, sizeof path, "%s/manifest.json", directory);
	}
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	demand(fd >= 0 && write(fd, data, size) == (ssize_t) size, "no file");
	close(fd);
	chi_directory *f = chi_directory_open(directory);
	demand(f != NULL, "no folder");
	return f;
}

static choir_status read_bytes(const void *data, size_t size, chi_manifest *m)
{
	chi_directory *f = put_manifest(data, size);
	chi_error_clear();
	const choir_status status = chi_manifest_read(f, m);
	chi_directory_close(f);
	return status;
}

static void check_file(const chi_manifest_file *f, size_t size)
{
	demand(f->n <= size, "more tensors than bytes");
	for (size_t i = 0; i < f->n; i++)
		demand(strlen(f->tensor[i].name) < size, "a name longer than the file");
	for (size_t i = 1; i < f->n; i++)
		demand(strcmp(f->tensor[i - 1].name, f->tensor[i].name) <= 0, "tensors out of order");
}

static void check_same(const chi_manifest *a, const chi_manifest *b)
{
	demand(a->save == b->save && a->step == b->step && a->replicas == b->replicas,
			"other numbers");
	demand(a->pairs == b->pairs, "other metadata");
	for (size_t i = 0; i < a->pairs; i++)
		demand(strcmp(a->pair[i].key, b->pair[i].key) == 0 &&
						strcmp(a->pair[i].value, b->pair[i].value) == 0,
				"other metadata");
	for (int k = 0; k < CHI_CHECKPOINT_FILES; k++) {
		const chi_manifest_file *f = &a->file[k], *g = &b->file[k];
		demand(f->bytes == g->bytes && f->header == g->header && f->n == g->n, "another file");
		for (size_t i = 0; i < f->n; i++)
			demand(strcmp(f->tensor[i].name, g->tensor[i].name) == 0, "another tensor");
	}
}

static void check(const chi_manifest *m, size_t size)
{
	chi_text text = { 0 };
	chi_manifest again;
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		check_file(&m->file[i], size);
	demand(m->pairs <= size, "more metadata than bytes");
	chi_manifest_print(&text, m);
	demand(!text.failed && read_bytes(text.data, text.length, &again) == CHOIR_OK,
			"what was printed cannot be read");
	check_same(m, &again);
	chi_manifest_free(&again);
	chi_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size -= size > 0 && data[size - 1] == '\n'; // files of the corpus end with a newline
	char *text = malloc(size + TAIL + 1);
	chi_manifest m;
	demand(text != NULL, "no memory");
	if (size > 0)
		memcpy(text, data, size);
	snprintf(text + size, TAIL + 1, ",\"crc32c\":\"%08x\"}\n",
			(unsigned) chi_crc32c(0, text, size));
	const choir_status status = read_bytes(text, size + TAIL, &m);
	if (status == CHOIR_OK)
		check(&m, size + TAIL);
	else
		demand(strstr(choir_error(), "manifest.json: ") != NULL,
				"refused without the file's name");
	chi_manifest_free(&m);
	text[size / 2] ^= 1; // damage that the checksum detects
	if (size > 0)
		demand(read_bytes(text, size + TAIL, &m) == CHOIR_CORRUPT &&
						strstr(choir_error(), "is damaged") != NULL,
				"damage was not found");
	if (size > 0)
		chi_manifest_free(&m);
	free(text);
	return 0;
}
