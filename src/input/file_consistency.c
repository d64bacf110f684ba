// Workers compare one hash of all files and, if it differs, each file's: of its size and a
// checksum of some blocks (of very many files, only some).
#include "input/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "choir/source.h"
#include "cluster/cluster.h"

enum { BLOCK = 1 << 14, BLOCKS = 16, MAX_READ = 1024, SHOWN = 208 };

typedef struct {
	uint64_t bytes;
	uint32_t crc;
	uint32_t known; // 0: unreadable
	char path[SHOWN];
} digest;

typedef struct {
	uint64_t files, sum;
} total;

// An unreadable file fails later, when it is read.
static digest look(const char *path, bool contents, char block[BLOCK])
{
	chi_error before;
	digest d = { .known = 0 };
	chi_error_save(&before);
	chi_file *f = chi_file_open(path);
	const uint64_t size = f != NULL ? chi_file_size(f) : 0;
	const uint64_t last = size > BLOCK ? size - BLOCK : 0;
	choir_status status = f != NULL ? CHOIR_OK : CHOIR_NOT_FOUND;
	size_t got = 0;
	for (int i = 0; contents && status == CHOIR_OK && i < BLOCKS; i++) {
		const uint64_t at = last / (BLOCKS - 1) * (uint64_t) i;
		status = chi_file_read_some(f, i < BLOCKS - 1 ? at : last, block, BLOCK, &got);
		d.crc = chi_crc32c(d.crc, block, got);
	}
	d.known = status == CHOIR_OK;
	d.bytes = size;
	chi_file_close(f);
	chi_error_restore(&before);
	return d;
}

static bool has_contents(size_t i, size_t n)
{
	return i % (n / MAX_READ + 1) == 0;
}

static uint64_t sum_of(const digest *d)
{
	const uint64_t state = (uint64_t) d->crc << 1 | d->known;
	return chi_hash_mix(d->bytes ^ chi_hash_mix(state));
}

static const char *describe(const digest *d, char text[64])
{
	if (d->known == 0)
		return "cannot be read";
	snprintf(text, 64, "has %" PRIu64 " bytes and the checksum %08" PRIx32, d->bytes, d->crc);
	return text;
}

static choir_status refuse(choir_cluster *c, int w, const digest all[])
{
	char own[CHI_WORKER_NAME + 32], first[CHI_WORKER_NAME + 32], text[2][64];
	char path[SHOWN];
	return choir_fail(CHOIR_STATE,
			"%s: on %s it %s, on %s it %s; all workers must read the same data",
			chi_text_clean(all[w].path, path, sizeof path), chi_cluster_name(c, w, own),
			describe(&all[w], text[0]), chi_cluster_name(c, 0, first), describe(&all[0], text[1]));
}

// All workers have equally many files.
static choir_status find_difference(
		choir_cluster *c, const chi_glob *paths, digest *all, char block[BLOCK])
{
	for (size_t i = 0; i < paths->n; i++) {
		digest own = look(paths->path[i], has_contents(i, paths->n), block);
		snprintf(own.path, sizeof own.path, "%s", paths->path[i]);
		CHOIR_TRY(choir_cluster_all_gather(c, &own, sizeof own, all));
		for (int w = 1; w < c->workers; w++) {
			all[w].path[SHOWN - 1] = '\0';
			if (sum_of(&all[w]) != sum_of(&all[0]))
				return refuse(c, w, all);
		}
	}
	return CHOIR_OK;
}

static choir_status compare(
		choir_cluster *c, const chi_glob *paths, total *all, digest *digests, char block[BLOCK])
{
	char own_name[CHI_WORKER_NAME + 32], first[CHI_WORKER_NAME + 32];
	total own = { .files = paths->n };
	bool same = true;
	for (size_t i = 0; i < paths->n; i++) {
		const digest d = look(paths->path[i], has_contents(i, paths->n), block);
		own.sum = chi_hash_mix(own.sum + sum_of(&d));
	}
	CHOIR_TRY(choir_cluster_all_gather(c, &own, sizeof own, all));
	for (int w = 1; w < c->workers; w++) {
		same = same && all[w].sum == all[0].sum;
		if (all[w].files != all[0].files)
			return choir_fail(CHOIR_STATE,
					"%s reads %" PRIu64 " files, %s %" PRIu64
					"; all workers must read the same data",
					chi_cluster_name(c, w, own_name), all[w].files, chi_cluster_name(c, 0, first),
					all[0].files);
	}
	return same ? CHOIR_OK : find_difference(c, paths, digests, block);
}

choir_status chi_input_compare_files(choir_cluster *c, const chi_glob *paths)
{
	if (c->workers == 1)
		return CHOIR_OK;
	total *all = chi_alloc_array((size_t) c->workers, sizeof *all);
	digest *digests = chi_alloc_array((size_t) c->workers, sizeof *digests);
	char *block = chi_alloc(BLOCK);
	const choir_status status = all != NULL && digests != NULL && block != NULL
			? compare(c, paths, all, digests, block)
			: chi_cluster_give_up(c); // the others would wait
	chi_free(all);
	chi_free(digests);
	chi_free(block);
	return status;
}

choir_status choir_cluster_compare_files(choir_cluster *c, const choir_files *files)
{
	chi_glob paths = { .n = 0 };
	if (c == NULL || files == NULL)
		return choir_fail(
				CHOIR_INVALID, "compare_files: the cluster or the list of files is NULL");
	choir_status status = CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < choir_files_count(files); i++)
		status = chi_glob_add_path(&paths, choir_files_path(files, i));
	status = status == CHOIR_OK ? chi_input_compare_files(c, &paths) : chi_cluster_give_up(c);
	chi_glob_free(&paths);
	return status;
}
