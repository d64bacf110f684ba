// What the names of data mean: "KIND:FILE", or FILE with a suffix that tells the kind.
#pragma once

#include <choir/choir.h>

enum { PATH_SIZE = 4096, MAX_ARRAYS = 32 };

typedef enum {
	DATA_MNIST,
	DATA_DIGITS,
	DATA_IDX,
	DATA_NPY,
	DATA_NPZ,
	DATA_HDF5,
	DATA_CSV,
	DATA_TFRECORD,
	DATA_CIFAR10,
	DATA_TEXT, // bytes of texts: windows, to learn the next byte
	DATA_LINES, // each line of a text
	DATA_FIXED,
	DATA_SAFETENSORS
} data_kind;

// What a command does with data. Each kind fits some of these.
typedef enum { DATA_LEARN = 1, DATA_INSPECT = 2, DATA_MEASURE = 4 } data_use;

typedef struct {
	data_kind kind;
	const char *word; // "csv"
	char path[PATH_SIZE]; // a file, a list with commas, a pattern or a directory
	char labels[PATH_SIZE]; // idx, npy: the file of labels; "": none
	int64_t number; // digits: examples; fixed: bytes of a record
	size_t arrays; // npz, hdf5: selected arrays; 0: all
	const char *array[MAX_ARRAYS]; // in text, so a data_name must not be copied
	char text[PATH_SIZE];
} data_name;

// The kinds that all commands read, for help.
#define DATA_FILES \
	"idx:IMAGES[,LABELS], npy:INPUTS[,LABELS],\nnpz:FILE[#ARRAY,...], hdf5:FILE[#ARRAY,...],\n" \
	"csv:FILE, tfrecord:FILE, cifar10:DIR"
extern const char data_learn_help[], data_measure_help[]; // for options with such a name

// Reads a name. CHOIR_NOT_FOUND: its kind is unknown or does not fit use; the text lists the kinds
// that do. CHOIR_INVALID: an incomplete or too long name.
choir_status data_name_read(data_name *d, const char *name, data_use use);
// The files of a list: names or patterns with commas, or one file whose name has commas. NULL: an
// error.
choir_files *data_files(const char *list);
// All files of data that are not built in, in order. NULL: an error.
choir_files *data_name_files(const data_name *d);
