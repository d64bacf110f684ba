// Sources: where the examples of a dataset come from. Files, memory, functions of the program
// and examples that Choir draws itself.
//
// Errors: constructors return NULL, and choir_error says why; what is found out only while
// reading is an error of the element that is asked for (see dataset.h). A file that is not
// there is CHOIR_NOT_FOUND, one that the system refuses CHOIR_IO, and one that is not what its
// format says CHOIR_CORRUPT, with the file, what was found and what was needed. Threads: as
// dataset.h.
#pragma once

#include "dataset.h"

CHOIR_C_BEGIN

// How a file is compressed. AUTO is the neutral member: each source says what it takes it for.
// gzip and zlib need a build with zlib, else CHOIR_UNSUPPORTED. Their checksum stands at the end:
// damage that can still be unpacked is found there, CHOIR_CORRUPT with the byte, when examples
// before it have been handed out already, unless the file is small or read into memory first.
typedef enum {
	CHOIR_COMPRESSION_AUTO = 0,
	CHOIR_COMPRESSION_NONE,
	CHOIR_COMPRESSION_GZIP,
	CHOIR_COMPRESSION_ZLIB
} choir_compression;

// Files

// A list of files, for sources that read several.
typedef struct choir_files choir_files;
// Each of the n is the name of a file or a pattern of the shell (*, ?, [abc]), whose files
// follow in the order of bytes. CHOIR_NOT_FOUND: a pattern that no file matches.
choir_files *choir_files_new(size_t n, const char *const patterns[]);
size_t choir_files_count(const choir_files *f);
const char *choir_files_path(const choir_files *f, size_t i); // NULL: there are not so many
void choir_files_free(choir_files *f);
// Makes the source of one file. NULL: an error, which whoever reads gets.
typedef choir_dataset *choir_file_fn(const char *path, void *user);
// The examples of all files one after the other: fn makes the source of each (or a chain on
// one) when the one before has ended; the first when the dataset is made. All must have the
// same columns, which is else CHOIR_INVALID, with the file. files is taken over, also on
// failure; user is borrowed until the dataset is freed. Threads: fn is called by the one that
// reads.
choir_dataset *choir_files_dataset_new(choir_files *files, choir_file_fn *fn, void *user);

// Arrays

// The examples of an IDX file, the format of MNIST, plain or compressed by gzip (which of them
// is seen by how the file begins; gzip needs a build with zlib, else CHOIR_UNSUPPORTED). Axis 0
// of the file counts the examples, so images of [60000, 28, 28] give one column of shape [28,
// 28]. Values are u8, i32, f32 or f64. CHOIR_CORRUPT, with what was promised and what was found:
// a header that is none, a file shorter or longer than its header says, damaged gzip data.
choir_dataset *choir_idx_dataset_new(const char *path, const char *column);
// The examples of an npy file, numpy's format, plain or compressed by gzip: versions 1.0 to 3.0,
// f4, f8, f2, i4, i8, u1 and b1 of either order of bytes; i1, i2 and u2 as i32, u4 as i64. Axis
// 0 counts the examples, as in an IDX file. An array in Fortran's order is read to memory as a
// whole when the first element is asked for, and put in order there; all others are read as a
// stream. CHOIR_UNSUPPORTED: other types, with their name. CHOIR_CORRUPT as for IDX, and with
// the byte of the header that is wrong.
choir_dataset *choir_npy_dataset_new(const char *path, const char *column);
// The arrays of an npz file, a zip archive of npy files, stored or deflated: the n whose names
// are given, in that order, or all (0), each a column of that name. They are read as streams
// side by side, and their checksums are verified where their ends are read. CHOIR_NOT_FOUND: no
// such array, with those there are. CHOIR_INVALID: arrays of different lengths. CHOIR_CORRUPT:
// a damaged archive. CHOIR_UNSUPPORTED: encryption, other ways to compress, a build without
// zlib.
choir_dataset *choir_npz_dataset_new(const char *path, size_t n, const char *const names[]);
// Datasets of an HDF5 file: the n whose paths in the file are given ("x", "train/images"), in that
// order, or all of its root group (0) by name; each a column of that name, and axis 0 counts the
// examples. They are read as streams side by side, contiguous or in chunks, with every filter that
// the HDF5 library has. f4, f8, i4, i8, u1 and f2 of either order of bytes; i1, i2 and u2 as i32,
// u4 as i64; h5py's bool. Only where the build found HDF5 (choir_has("hdf5")), else
// CHOIR_UNSUPPORTED, which is also: other types, and a machine without the library, which is
// loaded with the first file. CHOIR_NOT_FOUND: no such file; no such dataset, with those there
// are. CHOIR_INVALID: different lengths, or no axis. CHOIR_CORRUPT: what the library says; sizes
// that contradict each other, at which some releases of it end the program. Chunks that were never
// written are the fill value, or 0; but CHOIR_CORRUPT where a damaged file can look the same: in
// datasets that can grow, and in compressed ones of which only some chunks were written; and so is
// a dataset in one piece that was never written.
// That is for accidents: a file made to do harm is safe only in a process of its own (decision
// 0049). The library opens files itself and follows their links to others. Threads: Choir calls it
// from one at a time; a program that calls it too must not do so meanwhile, unless it is built
// thread-safe.
choir_dataset *choir_hdf5_dataset_new(const char *path, size_t n, const char *const names[]);
// What is in a file of arrays (npz, npy, or the root group of HDF5), to choose from: also what no
// dataset can have, such as texts and single values. Only headers are read. Errors: as of the
// datasets. Threads: any, one at a time for a list.
typedef struct choir_array_list choir_array_list;
typedef struct {
	const char *name; // "" in an npy file
	const char *type; // as the file calls it: "<f4", "|S5", "text", "group"
	int known; // the choir_dtype that a dataset of it has; CHOIR_NONE: none of Choir's
	choir_shape shape; // of the whole: axis 0 counts the examples; rank 0: a single value
	int64_t held; // bytes that a dataset of it holds in memory; 0: it is read as a stream
} choir_array_entry;
choir_array_list *choir_array_list_new(const char *path);
void choir_array_list_free(choir_array_list *l);
// In the order of the file; an entry belongs to the list. NULL: there is no i-th.
size_t choir_array_list_entries(const choir_array_list *l);
const choir_array_entry *choir_array_list_entry(const choir_array_list *l, size_t i);
// Writes an npy file (version 1.0) of packed, row-major data, beside path first and renamed
// when it is on the disk. CHOIR_UNSUPPORTED: bf16, for which numpy has no type. Threads: any.
CHOIR_MUST_CHECK choir_status choir_npy_write(
		const char *path, choir_dtype dtype, choir_shape shape, const void *data);

// CSV

// What a column of a CSV file is taken for.
typedef enum {
	CHOIR_CSV_FOUND = 0, // by its fields: whole numbers i64, other numbers f64, text categories
	CHOIR_CSV_NUMBER,
	CHOIR_CSV_CATEGORY // each different text has a number, i32: choir_dataset_category
} choir_csv_kind;
typedef struct choir_csv_column {
	const char *name; // in the header; without one "0", "1", ...
	// The dataset's column; NULL: the same. Columns of one dtype with the same name here are
	// gathered, in this order, in one column of shape [how many]; found numbers are f32 there.
	// Categories that are gathered have numbers of their own each, whose texts nobody is told.
	const char *as;
	choir_csv_kind kind;
	choir_dtype dtype; // of CHOIR_CSV_NUMBER: f32, f64, i32, i64, u8 or bool (0 or 1)
	// Of CHOIR_CSV_CATEGORY: the texts in the order of their numbers; any other makes a row
	// wrong. 0: those of the file, in the order of their bytes.
	size_t categories;
	const char *const *category;
} choir_csv_column;
// What becomes of a row in which a chosen column has no value.
typedef enum {
	CHOIR_MISSING_STOP = 0, // CHOIR_CORRUPT, with the row and the column
	CHOIR_MISSING_DROP, // the row is left out: choir_dataset_dropped
	CHOIR_MISSING_NAN // f32 and f64 become NaN; in other columns as STOP
} choir_missing;
// What becomes of a record that is wrong.
typedef enum {
	CHOIR_WRONG_STOP = 0, // CHOIR_CORRUPT, with the file, the record and the byte
	CHOIR_WRONG_SKIP // it is left out: choir_dataset_skipped
} choir_wrong;
typedef struct choir_csv_options {
	size_t size;
	const choir_files *files; // instead of a path, which is NULL then; not needed afterwards
	char separator; // 0: a comma
	char quote; // 0: "
	choir_toggle header; // default: on. Off: the first row is data
	// The columns that are wanted. 0: all of them, or with rest those that hold numbers.
	size_t columns;
	const choir_csv_column *column;
	// All columns of numbers that are not in the list are gathered, as f32, in one of this
	// name. NULL: they are left out.
	const char *rest;
	choir_missing missing;
	// Texts that stand for no value, beside the empty one. 0: NA, N/A, NaN, nan, null and NULL.
	size_t missing_texts;
	const char *const *missing_text;
	choir_wrong wrong;
	// Rows that are looked at to find out what columns hold. 0: all. What comes later and does
	// not fit makes its row wrong.
	int64_t look;
	// A CSV dataset that looked at files with the same header: its schema (what the columns hold,
	// and the texts of its categories) is taken, and the files are not looked at. They are if a
	// column is to have categories that this dataset did not collect. Not needed afterwards.
	// NULL: the files themselves.
	const choir_dataset *schema;
	// One more column, i64, with the number of each row from 0 on, over all files; rows that are
	// left out count, so that what is computed of a row can be joined to the file. NULL: none.
	const char *row_number;
} choir_csv_options;
// The rows of a CSV file (RFC 4180), plain or compressed by gzip; or of several with the same
// columns, one after the other, if path is a pattern ("part-*.csv") or o->files is given. o may
// be NULL. Lines end with LF or CR LF, empty ones are passed over, and so is a byte order mark;
// spaces around a field, or around its quotes, are no part of it. A first column without a name,
// or one that the header lacks, as R writes it, holds the names of rows and is passed over; so
// is a separator at the end of the header or of all rows. Numbers are decimal, with a point, or
// inf and nan, and are rounded to the nearest value exactly; beyond the largest they are inf.
// Examples come as a stream, in memory for one row and a read buffer, however large the file is;
// a place in each 1024 rows is remembered, so that going back to one costs no more than those.
// Unless all kinds are given (and the texts of categories), or a schema is, the files are read
// once when the dataset is made (once more where a column whose categories are wanted begins
// with numbers). Errors, there or while reading: CHOIR_CORRUPT for rows with too few or too many
// fields, fields that are no number of the column's dtype or none of its categories, text that
// is not UTF-8, quotes where none may be, a row of more than 64 MiB; CHOIR_NOT_FOUND for a
// column that does not exist, with those that do; CHOIR_INVALID for more than 32 columns that
// are not gathered, or 1,048,576 categories. A file may have thousands of columns.
choir_dataset *choir_csv_dataset_new(const char *path, const choir_csv_options *o);

// A column of the files of a CSV dataset, whether it was chosen or not.
typedef struct {
	const char *name;
	const char *as; // the dataset's column; NULL: it was left out
	const char *holds; // "nothing", "whole numbers", "numbers" or "text"; "" if nobody looked
	int64_t missing; // rows that were looked at in which it has no value
} choir_csv_found;
// Fills *found for column i, counted in the file; false: there are not so many, or d is not what
// choir_csv_dataset_new returned (a transform of it, for example).
bool choir_csv_dataset_column(const choir_dataset *d, size_t i, choir_csv_found *found);

// The texts behind the numbers of a column of categories: how many there are (0: it is no such
// column), and that of number i (NULL: there is none). d is the source or any transform of it;
// the text lives as long.
size_t choir_dataset_categories(const choir_dataset *d, const char *column);
const char *choir_dataset_category(const choir_dataset *d, const char *column, int64_t i);
// How many rows the sources of d have left out in this pass: because a value was missing, and
// because they were wrong. With those of datasets that interleave or flat_map opened, and behind
// repeat with those of all its passes so far. Threads: any.
int64_t choir_dataset_dropped(const choir_dataset *d);
int64_t choir_dataset_skipped(const choir_dataset *d);

// TFRecord

// One feature of tf.train.Example, as a column.
typedef struct {
	const char *name; // copied; several columns may take the same feature
	const char *as; // the dataset's column; copied; NULL: the same
	// Floats are read as f32; int64 as i64, i32, u8 or bool, in whose range each value must be;
	// one value of bytes, or several of the same length, as any dtype, little-endian.
	choir_dtype dtype;
	// Of one example. A rank of CHOIR_NONE: dtype and shape are those of the first example: f32,
	// i64, or bytes as u8; a scalar for one number, [n] for n numbers or bytes, [m, n] for m
	// values of n bytes.
	choir_shape shape;
	// An example may have fewer values than the shape; the rest is zeros.
	bool pad;
	// The values, packed, of an example that does not have the feature; copied. NULL: such an
	// example is CHOIR_NOT_FOUND, and the text lists the features that it has.
	const void *missing;
} choir_feature;

typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	const choir_files *files; // instead of a path, which is NULL then; not needed afterwards
	// AUTO: by how a file begins; a plain one is known by its first checksum.
	choir_compression compression;
	// SKIP: after a length that is wrong nobody knows where the next record begins, and the rest
	// of the file counts as one record.
	choir_wrong wrong;
	// Records are no Examples but plain bytes: the one column, which features may describe as
	// one value of bytes. Without, it is "record", u8, and as long as the first record.
	bool raw;
	// The columns. 0: all features of the first example, in the order of their names.
	size_t n;
	const choir_feature *features; // copied
} choir_tfrecord_options;

// The records of a TFRecord file; or of several, one after the other, if path is a pattern
// ("part-*.tfrecord") or o->files is given. The checksums of lengths and data are always
// verified. o may be NULL. Examples come as a stream. The first record is read when the dataset
// is made if the columns depend on it. Errors, there or while reading: CHOIR_NOT_FOUND: no such
// file; a feature that an Example lacks. CHOIR_CORRUPT, with file, record and byte, counted from
// 0: a wrong checksum, a record that is cut short, data that are no Example, a feature of
// another kind or size than its column. Examples before a wrong one are handed out. Memory: a
// block of 256 KiB, or twice the largest record that really is in the file.
choir_dataset *choir_tfrecord_dataset_new(const char *path, const choir_tfrecord_options *o);

// A TFRecord file in the making. It appears under its name when it is finished, whole; nothing
// is ever added to a file that exists: sources take several files.
typedef struct choir_tfrecord_writer choir_tfrecord_writer;
// AUTO: gzip if path ends in ".gz", else plain. A file of this name is replaced in the end. To
// be freed by choir_tfrecord_writer_free. NULL: CHOIR_IO if the system refuses,
// CHOIR_UNSUPPORTED without zlib.
choir_tfrecord_writer *choir_tfrecord_writer_new(const char *path, choir_compression compression);
// Adds a record of plain bytes. After a failure of writing every call gives it again, and no
// file appears.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write(
		choir_tfrecord_writer *w, const void *data, size_t bytes);
// Adds a tf.train.Example with one feature for each column, whose data are those of one example:
// f32 as floats; i64, i32, bool and u8 without axes as int64; u8 with axes as one value of
// bytes. CHOIR_UNSUPPORTED: another dtype.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write_example(
		choir_tfrecord_writer *w, size_t n, const choir_column columns[]);
// Makes the file appear when it is on the disk. Nothing can be added then, which is CHOIR_STATE.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_finish(choir_tfrecord_writer *w);
// Frees w; a file that is not finished does not appear. NULL is fine.
void choir_tfrecord_writer_free(choir_tfrecord_writer *w);

// Records of one size

// A field of a record.
typedef struct {
	const char *name; // of the column; copied; NULL: these bytes are passed over
	choir_dtype dtype;
	choir_shape shape; // of one example
	bool big_endian;
	// The file has the last axis of shape, the channels, before all others: [3, 32, 32] in the
	// file is [32, 32, 3] here.
	bool channels_first;
	// Of u8, i32 and i64: values are from 0 to limit - 1, others are CHOIR_CORRUPT. 0: any.
	int64_t limit;
} choir_field;

typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	const choir_files *files; // instead of a path, which is NULL then; not needed afterwards
	choir_compression compression; // AUTO: gzip if a name ends in ".gz", else plain
	int64_t header; // bytes before the first record of each file, which are passed over
} choir_fixed_options;

// The records of a file, or of several as for TFRecord: each has the n fields, one behind the
// other. o may be NULL. How many examples there are is known at once where no file is
// compressed. CHOIR_CORRUPT: a file that is no whole number of records, with both sizes; a value
// out of its field's range, or a bool that is not 0 or 1, with the record and its byte.
choir_dataset *choir_fixed_dataset_new(
		const char *path, size_t n, const choir_field fields[], const choir_fixed_options *o);
// CIFAR-10's binary files: data_batch_*.bin of folder, or test_batch.bin. Columns "label", u8, 0
// to 9, and "image", u8 [32, 32, 3]: rows, columns, and red, green and blue.
choir_dataset *choir_cifar10_dataset_new(const char *folder, bool test);

// Text

// All of them read plain files and files compressed by gzip.

// The bytes of a file, one an example, u8.
choir_dataset *choir_text_bytes_dataset_new(const char *path, const char *column);
// Windows of text, to learn which byte comes next: "input", u8 [context], bytes i to i +
// context - 1, and "target", u8 [context], the byte behind each. i is 0, stride, 2 stride, ...
// as long as all of them are there; stride 0 is context, windows side by side. Bytes and
// windows are had in any order, so shuffles of them need no memory. A compressed file of at
// most 1 GiB is unpacked to memory when the dataset is made; a larger one is CHOIR_UNSUPPORTED.
choir_dataset *choir_text_windows_dataset_new(const char *path, int64_t context, int64_t stride);
// The lines of a file without their ends (LF or CR LF), u8 [CHOIR_NONE]: as long as each line
// is. CHOIR_CORRUPT, or skipped: a line that is not UTF-8, with its number from 1 and its byte.
// Examples come as a stream, in memory for the longest line.
choir_dataset *choir_text_lines_dataset_new(
		const char *path, const char *column, choir_wrong wrong);

// Memory, functions, and what Choir makes itself

// The numbers start, start + step, ... before stop is reached, i64. step may be negative, not 0.
choir_dataset *choir_range_dataset_new(
		const char *column, int64_t start, int64_t stop, int64_t step);
// The same example so often, or for ever (CHOIR_NONE): columns[i].data is one example, copied.
choir_dataset *choir_constant_dataset_new(
		int64_t examples, size_t n, const choir_column columns[]);
// Examples in memory: columns[i].data holds all of them, of 1 to 32 columns, which is what any
// dataset can have (CHOIR_INVALID: others). copy false: borrowed, unchanged until the dataset is
// freed; true: copied now.
choir_dataset *choir_memory_dataset_new(
		int64_t examples, size_t n, const choir_column columns[], bool copy);
// Fills one example: out[i] is memory for columns[i]. CHOIR_OK; CHOIR_END if there is no example
// any more; or an error, which whoever reads gets with the example's number in front. position
// counts from 0 in each pass. Threads: the one that reads, which below choir_dataset_prefetch is
// a thread of Choir's.
typedef choir_status choir_example_fn(int64_t position, void *const out[], void *user);
// Examples that fn makes, one a call, in order. user is borrowed until the dataset is freed.
choir_dataset *choir_function_dataset_new(
		size_t n, const choir_column columns[], choir_example_fn *fn, void *user);
// Goes to a place: the next example that fn is asked for is the one at position of that pass.
// Called when a pass begins anew (position 0), and when an iterator is put back to where another
// stood. Failures as fn's; CHOIR_END is CHOIR_INVALID.
typedef choir_status choir_seek_fn(int64_t pass, int64_t position, void *user);
// The same with a function that can go to any place, so that an iterator which is put back does
// not ask for all examples before.
choir_dataset *choir_seekable_dataset_new(size_t n, const choir_column columns[],
		choir_example_fn *fn, choir_seek_fn *seek, void *user);

// Examples that the program puts in, from any thread, while others are read: for what comes from
// a network, a simulation or a program of its own.
typedef struct choir_queue choir_queue;
typedef struct {
	size_t size; // of this struct: CHOIR_OPTIONS sets it
	int64_t capacity; // so many examples can wait to be read; 0: 1024
	// Seconds that reading waits for an example: CHOIR_TIMEOUT then. 0: 600; CHOIR_NONE: for ever
	// (until the queue is closed, failed or freed).
	double timeout;
} choir_queue_options;
// The dataset, and in *queue its other end, to be freed by choir_queue_free; the two may be freed
// in any order. o may be NULL. Each close ends a pass, and what is put after it belongs to the
// next. What was read is gone: a rewind in the middle of a pass is CHOIR_UNSUPPORTED, and where an
// iterator is put back, the program must put in that pass from its beginning.
choir_dataset *choir_queue_dataset_new(
		size_t n, const choir_column columns[], const choir_queue_options *o, choir_queue **queue);
// Copies examples into the queue, all of them or none: data[i] holds those of column i, packed.
// Waits for room, and after a close until the dataset begins its next pass, at most so many
// seconds (negative: for ever): CHOIR_TIMEOUT. CHOIR_CANCELLED: the dataset was freed. Threads:
// any, also several at once.
CHOIR_MUST_CHECK choir_status choir_queue_put(
		choir_queue *q, int64_t examples, const void *const data[], double seconds);
// The pass ends behind what was put. CHOIR_STATE: it has been closed already.
CHOIR_MUST_CHECK choir_status choir_queue_close(choir_queue *q);
// Ends all passes with a failure, which reading gives behind what was put. text may be NULL. The
// first failure counts.
choir_status choir_queue_fail(choir_queue *q, choir_status status, const char *text);
// A dataset that waits for more gets CHOIR_STATE, unless the queue was closed. NULL is fine.
void choir_queue_free(choir_queue *q);
// Drawn digits that look handwritten, for trying things without a file: "image" u8 [28, 28], 0
// paper and 255 ink, and "label" u8, 0 to 9. Example i depends on seed and i alone, on every
// machine; of every ten in a row each digit is one.
choir_dataset *choir_digits_dataset_new(int64_t examples, uint64_t seed);

CHOIR_C_END
