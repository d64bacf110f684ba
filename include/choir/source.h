// A source begins a chain of datasets. It reads files or memory, calls functions of the program,
// or makes synthetic data.
//
// If a source's options have a field files, it reads one file (path), the files that match a
// glob pattern (path, "part-*.csv"), or, if path is NULL, the files of that list, one after
// another. The list is not needed after the call.
// The rules of dataset.h for errors and threads hold here, too. CHOIR_NOT_FOUND: a file, a
// column or an array that does not exist. CHOIR_CORRUPT: a file that violates its format.
#pragma once

#include "dataset.h"

CHOIR_C_BEGIN

// AUTO: the source's comment says how it decides. GZIP and ZLIB need a build with zlib (else
// CHOIR_UNSUPPORTED). Damage may be found only by the checksum at the end of the data, after
// earlier examples were read.
typedef enum {
	CHOIR_COMPRESSION_AUTO = 0,
	CHOIR_COMPRESSION_NONE,
	CHOIR_COMPRESSION_GZIP,
	CHOIR_COMPRESSION_ZLIB
} choir_compression;

// Lists of files

typedef struct choir_files choir_files;
// Makes a list of files. Each of the n patterns is the name of a file or a glob pattern (*, ?,
// [abc]). The files of a glob pattern are sorted by the bytes of their names. CHOIR_NOT_FOUND:
// no file matches a pattern.
choir_files *choir_files_new(size_t n, const char *const patterns[]);
size_t choir_files_count(const choir_files *f);
const char *choir_files_path(const choir_files *f, size_t i);
void choir_files_free(choir_files *f);
// Makes the source of one file, or a chain that begins with it. If fn returns NULL, the reading
// call returns the failure.
typedef choir_dataset *choir_file_fn(const char *path, void *user);
// The examples of all files in their order. This call calls fn for the first file. When a file
// ends, the reading thread calls fn for the next. CHOIR_INVALID: a file with other columns than
// the first. files is taken over, also on failure.
choir_dataset *choir_files_dataset_new(choir_files *files, choir_file_fn *fn, void *user);

// Arrays
//
// Axis 0 of an array counts the examples: an array [60000, 28, 28] gives a column of shape [28,
// 28]. IDX and npy files may be compressed by gzip. npy, npz and HDF5 may have the types f4, f8,
// f2, i4, i8 and u1 in either byte order, and b1 or h5py's bool. i1, i2 and u2 become i32, and
// u4 becomes i64. Another type is CHOIR_UNSUPPORTED. Files are read as streams, several arrays
// of a file in parallel.

// The examples of an IDX file, the format of MNIST. Values are u8, i32, f32 or f64.
// CHOIR_CORRUPT: an invalid header; a file shorter or longer than its header says; damaged gzip
// data.
choir_dataset *choir_idx_dataset_new(const char *path, const char *column);
// The examples of an npy file (numpy's format, version 1.0 to 3.0). An array in Fortran order is
// read into memory as a whole. CHOIR_CORRUPT: as for IDX.
choir_dataset *choir_npy_dataset_new(const char *path, const char *column);
// Arrays of an npz file (a zip archive of npy files, stored or deflated), each as a column of
// its name. The n names choose the arrays and their order; if n is 0, all are read. The checksum
// of an array is verified when its end is read. CHOIR_INVALID: arrays of different lengths.
// CHOIR_CORRUPT: a damaged archive. CHOIR_UNSUPPORTED: encryption; other compression methods; a
// build without zlib.
choir_dataset *choir_npz_dataset_new(const char *path, size_t n, const char *const names[]);
// Datasets of an HDF5 file, each as a column of its name. They may be contiguous or chunked,
// with every filter that the HDF5 library has. The n names are their paths in the file ("x",
// "train/images"), in the order of the columns. If n is 0, the columns are all datasets of the
// root group, sorted by name.
//
// The HDF5 library is loaded with the first file. The library follows links to other files.
// CHOIR_UNSUPPORTED: a build without HDF5 (choir_has_feature("hdf5")); a machine without the
// library. CHOIR_INVALID: datasets of different lengths, or without an axis. CHOIR_CORRUPT: a
// failure of the library; sizes that contradict each other; data that were never written, if the
// dataset is contiguous, can grow, or is compressed and has some written chunks. In other
// datasets, chunks that were never written have the fill value, or 0. If a file may be
// malicious, read it in a separate process.
//
// Threads: Choir calls the library from one thread at a time. The program must not call it at
// the same time, unless the library is built thread-safe.
choir_dataset *choir_hdf5_dataset_new(const char *path, size_t n, const char *const names[]);
// The arrays in a file (npz, npy, or the root group of HDF5), including those that Choir cannot
// read as a dataset. Only headers are read. Errors are those of the datasets. Any thread may use
// a list, one at a time.
typedef struct choir_array_list choir_array_list;
typedef struct {
	const char *name; // "" in an npy file
	const char *type; // as the file calls it: "<f4", "|S5", "text", "group"
	int known; // its choir_dtype in a dataset; CHOIR_NONE: Choir has no such type
	choir_shape shape; // of the whole array, axis 0 included
	int64_t held; // bytes of memory that its dataset keeps; 0: it is read as a stream
} choir_array_entry;
choir_array_list *choir_array_list_new(const char *path);
void choir_array_list_free(choir_array_list *l);
// The number of entries, and the i-th in the order of the file.
size_t choir_array_list_entries(const choir_array_list *l);
const choir_array_entry *choir_array_list_entry(const choir_array_list *l, size_t i);
// Writes an npy file (version 1.0) of packed, row-major data. The file appears whole or not at
// all. CHOIR_UNSUPPORTED: bf16, which numpy does not have. Any thread may call it.
CHOIR_MUST_CHECK choir_status choir_npy_write(
		const char *path, choir_dtype dtype, choir_shape shape, const void *data);

// CSV

typedef enum {
	CHOIR_CSV_INFER = 0, // i64 for whole numbers, f64 for other numbers, categories for text
	CHOIR_CSV_NUMBER,
	CHOIR_CSV_CATEGORY // an i32 number for each different text (choir_dataset_category)
} choir_csv_kind;
typedef struct choir_csv_column {
	const char *name; // in the header; without a header "0", "1", ...
	// The dataset's column; NULL: name. Columns of one dtype with the same output are gathered,
	// in this order, in one column of shape [their number]. Inferred numbers become f32 there.
	// Gathered categories are numbered for each column separately, and have no texts.
	const char *output;
	choir_csv_kind kind;
	choir_dtype dtype; // of CHOIR_CSV_NUMBER: f32, f64, i32, i64, u8 or bool (0 or 1)
	// For CHOIR_CSV_CATEGORY: the texts, numbered in this order. A row with another text is a
	// bad record. If 0: the texts in the file, sorted by their bytes.
	size_t categories;
	const char *const *category;
} choir_csv_column;
// The treatment of a row in which a chosen column has no value.
typedef enum {
	CHOIR_MISSING_ERROR = 0, // CHOIR_CORRUPT
	CHOIR_MISSING_DROP, // counted by choir_dataset_dropped
	CHOIR_MISSING_NAN // NaN in f32 and f64 columns; in other columns as ERROR
} choir_missing;
typedef enum {
	CHOIR_BAD_RECORD_ERROR = 0, // CHOIR_CORRUPT
	CHOIR_BAD_RECORD_SKIP // counted by choir_dataset_skipped
} choir_bad_record;
typedef struct choir_csv_options {
	size_t size;
	const choir_files *files; // instead of path
	char separator; // 0: a comma
	char quote; // 0: a double quote
	choir_toggle header; // default: on. Off: the first row is data
	// The chosen columns. If 0: all columns, or, with other_columns, all columns of numbers.
	size_t columns;
	const choir_csv_column *column;
	// The name of one f32 column that gathers all columns of numbers that are not in the list.
	// NULL: they are left out.
	const char *other_columns;
	choir_missing missing;
	// Texts that mean "no value", besides the empty one. 0: NA, N/A, NaN, nan, null and NULL.
	size_t missing_texts;
	const char *const *missing_text;
	choir_bad_record bad_record;
	// Rows that are read to infer the columns; 0: all. A later row that does not fit is a bad
	// record.
	int64_t infer_rows;
	// A CSV dataset of files with the same header. Its inferred columns and texts of categories
	// are used, unless it lacks the texts of a wanted category column. It is not needed after
	// the call. NULL: infer them from this dataset's files.
	const choir_dataset *schema;
	// The name of an additional i64 column with the number of each row. Numbers start at 0,
	// continue over all files, and also count rows that are left out.
	const char *row_number;
} choir_csv_options;
// The rows of CSV files (RFC 4180) with the same columns, plain or gzip.
//
// Format: lines end with LF or CR LF. These are ignored: empty lines, a byte order mark, spaces
// around a field or its quotes, a first column without a name in the header (R's names of rows),
// and a separator at the end of the header or of all rows. Numbers are decimal with a point, or
// inf or nan. They are rounded correctly; numbers beyond the largest value become inf.
//
// Cost: rows are read as a stream; memory holds one row and a read buffer. To go back to a row,
// the source reads at most 1024 rows again. If kinds of columns or texts of categories are not
// given, the files are read once when the dataset is made, to infer them. They are read twice if
// a column of categories begins with numbers.
//
// Errors: CHOIR_CORRUPT: a row with too few or too many fields; a field that is not a number of
// the column's dtype; text that is not UTF-8; a quote in a wrong place; a row of more than 64
// MiB. CHOIR_INVALID: more than 32 columns that are not gathered; more than 1,048,576
// categories.
choir_dataset *choir_csv_dataset_new(const char *path, const choir_csv_options *o);

// A column in the files of a CSV dataset, also one that is not chosen.
typedef struct {
	const char *name;
	const char *output; // the dataset's column; NULL: it is left out
	const char *holds; // "nothing", "whole numbers", "numbers", "text"; "": not inferred
	int64_t missing; // rows without a value in it, among those read to infer the columns
} choir_csv_inferred;
// Describes the i-th column of the files in *found. Returns false if there is none, or if
// choir_csv_dataset_new did not make d.
bool choir_csv_dataset_column(const choir_dataset *d, size_t i, choir_csv_inferred *found);

// The number of texts of a column of categories (0 for any other column), and the i-th text. d
// is the source or any transform of it.
size_t choir_dataset_categories(const choir_dataset *d, const char *column);
const char *choir_dataset_category(const choir_dataset *d, const char *column, int64_t i);
// The rows that the sources of d left out in this pass: dropped for a missing value, or skipped
// as bad records. They include rows of datasets that interleave or flat_map opened, and after
// repeat those of all its passes so far. Any thread may call these.
int64_t choir_dataset_dropped(const choir_dataset *d);
int64_t choir_dataset_skipped(const choir_dataset *d);

// TFRecord

// A feature of tf.train.Example, as a column.
typedef struct {
	const char *name; // several columns may use the same feature
	const char *as; // the dataset's column; NULL: name
	// A float feature gives f32. An int64 feature gives i64, i32, u8 or bool, and each value
	// must be in its range. A bytes feature whose values have one length gives any dtype, read
	// as little-endian.
	choir_dtype dtype;
	// The shape of one example. If its rank is CHOIR_NONE, the first example gives the dtype
	// (f32, i64, or u8 for bytes) and the shape (a scalar for one number, [n] for n numbers or
	// bytes, [m, n] for m values of n bytes).
	choir_shape shape;
	// An example may have fewer values than the shape; the rest is zeros.
	bool pad;
	// The packed values for an example without this feature; copied. NULL: such an example is
	// CHOIR_NOT_FOUND.
	const void *missing;
} choir_feature;

typedef struct {
	size_t size;
	const choir_files *files; // instead of path
	// AUTO looks at the first bytes of the file. A plain file is recognised by its first
	// checksum.
	choir_compression compression;
	// With SKIP, if a record's length is wrong, the rest of the file counts as one bad record.
	choir_bad_record wrong;
	// Records are plain bytes instead of Examples. They make one column, which features may
	// describe. If n is 0, the column is "record", u8, as long as the first record.
	bool raw;
	// The columns. If n is 0: all features of the first example, sorted by name.
	size_t n;
	const choir_feature *features;
} choir_tfrecord_options;

// The records of TFRecord files, as a stream. Checksums are verified. Memory: 256 KiB, or twice
// the largest record of the file if that is more.
//
// Errors: CHOIR_CORRUPT: a wrong checksum; a truncated record; data that are not an Example; a
// feature whose kind or size differs from its column.
choir_dataset *choir_tfrecord_dataset_new(const char *path, const choir_tfrecord_options *o);

// A writer of a TFRecord file. The complete file appears, or replaces an older one, when it is
// finished.
typedef struct choir_tfrecord_writer choir_tfrecord_writer;
// AUTO means gzip if path ends in ".gz", else plain.
choir_tfrecord_writer *choir_tfrecord_writer_new(const char *path, choir_compression compression);
// Adds a record of plain bytes. After a failure to write, every later call returns this failure,
// and no file appears.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write(
		choir_tfrecord_writer *w, const void *data, size_t bytes);
// Adds a tf.train.Example with one feature for each column. columns[i].data has one example. f32
// becomes floats; i64, i32, bool and scalar u8 become int64; u8 with axes becomes one value of
// bytes. CHOIR_UNSUPPORTED: another dtype.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write_example(
		choir_tfrecord_writer *w, size_t n, const choir_column columns[]);
// Makes the file appear, after all data are on the disk. Adding a record later is CHOIR_STATE.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_finish(choir_tfrecord_writer *w);
void choir_tfrecord_writer_free(choir_tfrecord_writer *w);

// Fixed-length records

// A field of a record.
typedef struct {
	const char *name; // of the column; NULL: the bytes are skipped
	choir_dtype dtype;
	choir_shape shape; // of one example
	bool big_endian;
	// The channels, which are the last axis of shape, come first in the file: [3, 32, 32] in the
	// file becomes [32, 32, 3].
	bool channels_first;
	// For u8, i32 and i64: a value outside of 0 to limit - 1 is CHOIR_CORRUPT. 0: no limit.
	int64_t limit;
} choir_field;

typedef struct {
	size_t size;
	const choir_files *files; // instead of path
	choir_compression compression; // AUTO: gzip if a name ends in ".gz", else plain
	int64_t header; // bytes to skip at the start of each file
} choir_fixed_options;

// Records of fixed length. Each has the n fields, one after another. The number of examples is
// known at once if no file is compressed. CHOIR_CORRUPT: a file that does not end with a whole
// record; a bool that is not 0 or 1.
choir_dataset *choir_fixed_length_record_dataset_new(
		const char *path, size_t n, const choir_field fields[], const choir_fixed_options *o);
// CIFAR-10's binary files: data_batch_*.bin of directory, or test_batch.bin if test is set.
// Columns are "label", u8, 0 to 9, and "image", u8 [32, 32, 3], RGB.
choir_dataset *choir_cifar10_dataset_new(const char *directory, bool test);

// Text
//
// These sources also read files compressed by gzip.

// The bytes of a file, u8. Each byte is an example.
choir_dataset *choir_text_bytes_dataset_new(const char *path, const char *column);
// Windows of text. "input", u8 [context], has bytes i to i + context - 1. "target", u8
// [context], has the byte after each of them. i is 0, stride, 2 stride, ... as long as the
// window is inside of the file. stride 0 means context. Bytes and windows can be read in any
// order, so shuffling them needs no memory. A compressed file is unpacked into memory when the
// dataset is made. CHOIR_UNSUPPORTED: its unpacked text is more than 1 GiB.
choir_dataset *choir_text_windows_dataset_new(const char *path, int64_t context, int64_t stride);
// The lines of a file without their ends (LF or CR LF), u8 [CHOIR_UNKNOWN]. They are read as a
// stream; memory holds the longest line. A line that is not UTF-8 is a bad record.
choir_dataset *choir_text_lines_dataset_new(
		const char *path, const char *column, choir_bad_record wrong);

// Memory, functions and synthetic data

// The numbers start, start + step, ... before stop, i64. step may be negative, but not 0.
choir_dataset *choir_range_dataset_new(
		const char *column, int64_t start, int64_t stop, int64_t step);
// Repeats one example, a copy of columns[i].data, examples times, or without end
// (CHOIR_FOREVER).
choir_dataset *choir_constant_dataset_new(
		int64_t examples, size_t n, const choir_column columns[]);
// Examples in memory: columns[i].data has all of them. n is 1 to 32, as for every dataset (else
// CHOIR_INVALID). If copy is false, the data are borrowed, and must not change until the dataset
// is freed.
choir_dataset *choir_memory_dataset_new(
		int64_t examples, size_t n, const choir_column columns[], bool copy);
// Writes one example: out[i] is memory for columns[i]. position counts from 0 in each pass.
// Returns CHOIR_OK; CHOIR_END if there are no more examples; or an error, which the reading call
// returns with the example's number in front of the text. It is called on the reading thread,
// which is Choir's if choir_dataset_prefetch follows.
typedef choir_status choir_example_fn(int64_t position, void *const out[], void *user);
// Examples from a function, one for each call, in order.
choir_dataset *choir_generator_dataset_new(
		size_t n, const choir_column columns[], choir_example_fn *fn, void *user);
// Announces that fn will next be asked for the example at position in pass. It is called when a
// pass begins again (position 0), and when a position is restored. It fails as fn does, but
// CHOIR_END becomes CHOIR_INVALID.
typedef choir_status choir_seek_fn(int64_t pass, int64_t position, void *user);
// Examples from a function that can seek. So restoring a position does not ask fn for the
// examples before it.
choir_dataset *choir_seekable_generator_dataset_new(size_t n, const choir_column columns[],
		choir_example_fn *fn, choir_seek_fn *seek, void *user);

// Queues: the program puts examples in, from any thread, while another thread reads them.
typedef struct choir_queue choir_queue;
typedef struct {
	size_t size;
	int64_t capacity; // examples that can wait to be read; 0: 1024
	// Seconds that reading waits for an example before it fails with CHOIR_TIMEOUT. 0: 600;
	// CHOIR_FOREVER: no limit (until the queue is closed, failed or freed).
	double timeout;
} choir_queue_options;
// Makes a dataset, and sets *queue to its writing end. The two may be freed in any order. Each
// choir_queue_close ends a pass, and later examples belong to the next pass. Examples that were
// read are not kept, so a rewind in the middle of a pass is CHOIR_UNSUPPORTED. After a position
// is restored, the program must put in the examples of that pass again, from its start.
choir_dataset *choir_queue_dataset_new(
		size_t n, const choir_column columns[], const choir_queue_options *o, choir_queue **queue);
// Copies examples into the queue, all of them or none; data[i] has their values of column i,
// packed. Waits until there is room, and after a close until the dataset begins its next pass.
// CHOIR_TIMEOUT: the wait was longer than seconds (negative: no limit). CHOIR_CANCELLED: the
// dataset was freed.
CHOIR_MUST_CHECK choir_status choir_queue_put(
		choir_queue *q, int64_t examples, const void *const data[], double seconds);
// Ends the pass after the examples that are in the queue. CHOIR_STATE: it is closed already.
CHOIR_MUST_CHECK choir_status choir_queue_close(choir_queue *q);
// Makes reading fail with status and text (may be NULL) after the examples that are in the
// queue. Only the first call counts.
choir_status choir_queue_fail(choir_queue *q, choir_status status, const char *text);
// Frees the writing end. Unless the queue was closed, reading beyond its examples is then
// CHOIR_STATE.
void choir_queue_free(choir_queue *q);
// Synthetic digits that look handwritten: "image", u8 [28, 28], 255 is ink, and "label", u8, 0
// to 9. Example i depends only on seed and i. Examples 10 k to 10 k + 9 have each digit once.
choir_dataset *choir_synthetic_digits_dataset_new(int64_t examples, uint64_t seed);

CHOIR_C_END
