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

// Holds what a header promises against the size of the file, before anybody believes it.
choir_status chi_array_file_check(chi_array_file *p);
// A source with one column for each part, whose readers it takes over if it is made. NULL: an
// error, and the readers stay the caller's.
typedef enum { CHI_ARRAY_FILE_IDX, CHI_ARRAY_FILE_NPY, CHI_ARRAY_FILE_NPZ } chi_array_format;
choir_dataset *chi_array_file_new(
		chi_array_format format, size_t n, chi_array_file parts[], const char *const names[]);

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
