// Arrays in files: values packed one behind the other, of which axis 0 counts the examples. IDX,
// npy and npz are this with different headers: each reads its own header, array_file.c does the
// rest.
#pragma once

#include "data/source/reader.h"
#include "data/stage.h"

// With the axis of examples: batches have as many axes.
enum { CHI_ARRAY_FILE_RANK = CHOIR_MAX_RANK };

// One array, as its header describes it.
typedef struct {
	chi_reader *reader; // behind the header when it is given to chi_array_file_new
	choir_dtype dtype;
	size_t stored; // bytes of a value in the file, of which dtype has more; 0: as many
	bool is_signed; // stored in 1 or 2 bytes: whether the values are
	int rank; // at least 1
	int64_t dim[CHI_ARRAY_FILE_RANK];
	size_t header_bytes;
	bool big_endian; // the order of the bytes of a value
	bool fortran; // the first axis changes fastest, not the last
	int64_t promised; // bytes of values: set by chi_array_file_check
} chi_array_file;

// The head of a source of arrays, behind which nothing follows.
typedef struct {
	choir_dataset base;
	chi_array_file part[CHI_MAX_COLUMNS];
	char *memory[CHI_MAX_COLUMNS]; // all values, if they were read to memory
	int64_t next; // stream: the number of the next example
	bool loaded;
} chi_array_file_source;

// Holds what a header promises against the size of the file, before anybody believes it.
choir_status chi_array_file_check(chi_array_file *p);
// A source with one column for each part, whose readers it takes over if it is made. NULL: an
// error, and the readers stay the caller's. stage has the functions below.
choir_dataset *chi_array_file_new(
		const chi_stage *stage, size_t n, chi_array_file parts[], const char *const names[]);

choir_status chi_array_file_range(
		choir_dataset *d, void *const column[], int64_t first, int64_t count);
choir_status chi_array_file_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got);
choir_status chi_array_file_rewind(choir_dataset *d);
const void *chi_array_file_peek(choir_dataset *d, size_t column, int64_t first, int64_t count);
void chi_array_file_free(choir_dataset *d);
choir_status chi_array_file_seek(choir_dataset *d, int64_t elements);
choir_status chi_array_file_shard_files(choir_dataset *d, int64_t count, int64_t index);
const char *chi_array_file_path(const choir_dataset *d, int64_t i);

// The table of a source of arrays, whose messages begin with its name.
#define CHI_ARRAY_FILE_STAGE(text) \
	{ \
		.name = text, .range = chi_array_file_range, .read = chi_array_file_read, \
		.rewind = chi_array_file_rewind, .peek = chi_array_file_peek, \
		.free = chi_array_file_free, .seek = chi_array_file_seek, .files = CHI_FILES_HERE, \
		.shard_files = chi_array_file_shard_files, .path = chi_array_file_path, \
	}

// Reads the header that p->reader is before and fills in p, checked by chi_array_file_check.
choir_status chi_npy_read_header(chi_array_file *p);
// The same of a header that no dataset may be possible with: what its type is called, and whether
// it is one that datasets have. Nothing is held against the size of the file.
enum { CHI_NPY_TYPE = 64 };
choir_status chi_npy_infer(chi_array_file *p, char type[CHI_NPY_TYPE], bool *known);

// Adds an array to a list of those in a file. dim: rank of them, from 0 to CHOIR_MAX_RANK. The
// texts are copied.
choir_status chi_array_list_add(choir_array_list *l, const char *name, const char *type, int known,
		int rank, const int64_t dim[], int64_t held);
// The array that an npy file or member is.
choir_status chi_array_list_add_npy(choir_array_list *l, const char *name, chi_reader *r);
choir_status chi_array_list_npz(choir_array_list *l, const char *path);
