// Names of data: "KIND:FILE", or FILE with a suffix that tells the kind.
#pragma once

#include "data/table_format.h"

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
	DATA_IMAGES,
	DATA_TEXT, // windows of bytes
	DATA_LINES,
	DATA_FIXED,
	DATA_SAFETENSORS
} data_kind;

// The use of data by a command. Each kind fits some.
typedef enum { DATA_LEARN = 1, DATA_INSPECT = 2, DATA_MEASURE = 4 } data_use;

typedef struct {
	data_kind kind;
	const char *word; // "csv"
	char path[PATH_SIZE]; // a file, a list with commas, a pattern or a directory
	char labels[PATH_SIZE]; // idx, npy: the file of labels; "": none
	int64_t number; // digits: examples; fixed: bytes of a record
	size_t arrays; // npz, hdf5: selected arrays; 0: all
	const char *array[MAX_ARRAYS]; // in text: do not copy a data_name
	char text[PATH_SIZE];
	const table_format *format; // csv; NULL: the default
} data_name;

#define DATA_FILES \
	"idx:IMAGES[,LABELS], npy:INPUTS[,LABELS],\nnpz:FILE[#ARRAY,...], hdf5:FILE[#ARRAY,...],\n" \
	"csv:FILE, tfrecord:FILE, cifar10:DIR"
extern const char data_learn_help[], data_measure_help[];

// CHOIR_NOT_FOUND: the kind is unknown or does not fit use; the text lists those that do.
choir_status data_name_read(data_name *d, const char *name, data_use use);
// All files of data that are not built in.
choir_files *data_name_files(const data_name *d);
