// A source is the first stage of a chain of datasets. It reads files or memory, calls functions
// of the program, or makes synthetic data.
//
// A source with the option .files reads the file path, or all files that match the glob pattern
// path ("part-*.csv"), or if path is NULL the list .files, in order. The program may free the
// list after the call.
// dataset.h has the rules for errors and threads. CHOIR_NOT_FOUND: a file, a column or an array
// that does not exist. CHOIR_CORRUPT: a file that violates its format.
#pragma once

#include "dataset.h"

CHOIR_C_BEGIN

// Each source's comment says what AUTO means. GZIP and ZLIB need a build with zlib (else
// CHOIR_UNSUPPORTED). Damage may show only at the final checksum, after earlier examples were
// read.
typedef enum {
	CHOIR_COMPRESSION_AUTO = 0,
	CHOIR_COMPRESSION_NONE,
	CHOIR_COMPRESSION_GZIP,
	CHOIR_COMPRESSION_ZLIB
} choir_compression;

// Lists of files

typedef struct choir_files choir_files;
// Each pattern is a file's name or a glob pattern (*, ?, [abc]), whose files are sorted by the
// bytes of their names. CHOIR_NOT_FOUND: a pattern matches no file.
choir_files *choir_files_new(size_t n, const char *const patterns[]);
size_t choir_files_count(const choir_files *f);
const char *choir_files_path(const choir_files *f, size_t i);
void choir_files_free(choir_files *f);
// Makes the source of one file, or a chain from it. NULL: a failure, which the reading call
// returns.
typedef choir_dataset *choir_file_fn(const char *path, void *user);
// Reads all files in the order of the list. fn is called here for the first file, and on the
// reading thread when a file ends. Takes ownership of files, also after a failure. CHOIR_INVALID:
// a file has other columns than the first.
choir_dataset *choir_files_dataset_new(choir_files *files, choir_file_fn *fn, void *user);

// Arrays
//
// Axis 0 of an array counts the examples: [60000, 28, 28] gives a column of shape [28, 28]. IDX
// and npy files may be compressed by gzip. Arrays of npy, npz and HDF5 files may have the types
// f4, f8, f2, i4, i8 and u1 in either byte order, and b1 or h5py's bool. i1, i2 and u2 become
// i32, and u4 becomes i64. Other types are CHOIR_UNSUPPORTED. Files are read as streams; small
// compressed files are unpacked in memory.

// Reads an IDX file (the format of MNIST): u8, i32, f32 or f64. CHOIR_CORRUPT: an invalid header;
// a file shorter or longer than its header says; damaged gzip data.
choir_dataset *choir_idx_dataset_new(const char *path, const char *column);
// Reads an npy file (numpy's format, versions 1.0 to 3.0); in Fortran order, as a whole into
// memory. CHOIR_CORRUPT: as for an IDX file.
choir_dataset *choir_npy_dataset_new(const char *path, const char *column);
// Reads arrays of an npz file (a zip archive of npy files, stored or deflated) as columns of
// their names: the n names in this order, or all if n is 0. An array's checksum is verified at
// its end. CHOIR_INVALID: arrays of different lengths. CHOIR_CORRUPT: a damaged archive.
// CHOIR_UNSUPPORTED: encryption; other compression methods; a build without zlib.
choir_dataset *choir_npz_dataset_new(const char *path, size_t n, const char *const names[]);
// Reads datasets of an HDF5 file as columns of their names: contiguous or chunked, with every
// filter of the HDF5 library. The n names are paths in the file ("x", "train/images"), in the
// columns' order. n 0: all datasets of the root group, sorted by name.
//
// Choir loads the HDF5 library, which follows links to other files, for the first file.
// CHOIR_UNSUPPORTED: a build without HDF5 (choir_has_feature("hdf5")); a machine without the
// library. CHOIR_INVALID: datasets of different lengths, or without an axis. CHOIR_CORRUPT: a
// failure of the library; sizes that contradict each other; missing data in a contiguous dataset;
// missing chunks in a dataset that can grow, or that is compressed and has other chunks.
// Elsewhere, missing chunks have the fill value, or 0.
// Read a file that may be malicious in a separate process.
//
// Threads: Choir calls the library from one thread at a time. The program may call it at the same
// time only if it is built thread-safe.
choir_dataset *choir_hdf5_dataset_new(const char *path, size_t n, const char *const names[]);
// The arrays in a file (npz, npy, or the root group of HDF5), from its headers, also those that
// Choir cannot read. Errors are those of the constructors above. Threads: any, one at a time.
typedef struct choir_array_list choir_array_list;
typedef struct {
	const char *name; // "" in an npy file
	const char *type; // the file's name for it: "<f4", "|S5", "text", "group"
	int known; // the choir_dtype of its column; CHOIR_NONE: Choir has no such type
	choir_shape shape; // of the whole array, axis 0 included
	int64_t held; // bytes of memory that a dataset of it keeps; 0: it is read as a stream
} choir_array_entry;
choir_array_list *choir_array_list_new(const char *path);
void choir_array_list_free(choir_array_list *l);
// Entries are in the order of the file.
size_t choir_array_list_entries(const choir_array_list *l);
const choir_array_entry *choir_array_list_entry(const choir_array_list *l, size_t i);
// Writes an npy file (version 1.0) of packed, row-major data, whole or not at all.
// CHOIR_UNSUPPORTED: bf16, which numpy lacks. Threads: any.
CHOIR_MUST_CHECK choir_status choir_npy_write(
		const char *path, choir_dtype dtype, choir_shape shape, const void *data);

// CSV

// The kind of a column's fields.
typedef enum {
	CHOIR_CSV_INFER = 0, // i64 for whole numbers, f64 for other numbers, categories for text
	CHOIR_CSV_NUMBER,
	CHOIR_CSV_CATEGORY, // a number, i32, for each text (choir_dataset_category)
	// f32 [number of categories]: 1 at the text's number, else 0.
	CHOIR_CSV_ONE_HOT,
	// Days since 1970-01-01 UTC, with fractions. Dates are of ISO 8601: 2026-11-24 or 2026/11/24,
	// alone or with a time, as 2026-11-24T17:05:30Z. A time without a zone is UTC.
	CHOIR_CSV_DATE
} choir_csv_kind;
// A column of a CSV file.
typedef struct choir_csv_column {
	const char *name; // in the header; without a header "0", "1", ...
	// The dataset's column; NULL: name. Columns of one dtype and output are gathered to one
	// column of shape [their number], in the list's order. Gathered inferred numbers become f32.
	// Gathered categories have no texts, and are numbered for each column.
	const char *output;
	choir_csv_kind kind;
	// Of CHOIR_CSV_NUMBER: f32, f64, i32, i64, u8 or bool (0 or 1). Of CHOIR_CSV_DATE: f32, f64.
	choir_dtype dtype;
	// Of CHOIR_CSV_CATEGORY and CHOIR_CSV_ONE_HOT: the texts, in the order of their numbers. A
	// row with another text is a bad record. categories 0: the texts in the files, sorted by
	// their bytes.
	size_t categories;
	const char *const *category;
	// One more number after the f32 values: 1 in a row without a value here, else 0. For
	// CHOIR_MISSING_NAN.
	bool indicator;
	bool drop_missing; // rows without a value here are dropped, with any choir_missing
} choir_csv_column;
// How to treat a row without a value in a chosen column.
typedef enum {
	CHOIR_MISSING_ERROR = 0, // CHOIR_CORRUPT
	CHOIR_MISSING_DROP, // counted by choir_dataset_dropped
	// NaN in f32 and f64 columns (choir_dataset_fill_nan replaces it), zeros in one-hot columns;
	// elsewhere as ERROR.
	CHOIR_MISSING_NAN
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
	// The chosen columns. columns 0: all, unless other_columns is set.
	size_t columns;
	const choir_csv_column *column;
	// An f32 column that gathers all columns of numbers that the list does not name. NULL: they
	// are left out.
	const char *other_columns;
	// other_columns also gathers, as one-hot, columns of text with at most this many different
	// texts, each twice on average, unlike in a column of names. 0: no text; SIZE_MAX: all text.
	size_t other_categories;
	bool other_dates; // other_columns also gathers columns of dates
	// Columns in other_columns have an indicator if rows read to infer them lack a value.
	bool indicators;
	choir_missing missing;
	// Texts that mean "no value", besides the empty text. 0: NA, N/A, NaN, nan, null and NULL.
	size_t missing_texts;
	const char *const *missing_text;
	choir_bad_record bad_record;
	// Rows read to infer the columns; 0: all. A later row that does not fit is a bad record.
	int64_t infer_rows;
	// A CSV dataset of files with the same header, whose columns and category texts are used; it
	// may be freed after the call. If it is NULL or lacks texts of a chosen column, this
	// dataset's files are read to infer all.
	const choir_dataset *schema;
	// An additional i64 column with each row's number: from 0, over all files, including rows
	// that are left out.
	const char *row_number;
} choir_csv_options;
// Reads the rows of CSV files (RFC 4180) with the same columns, plain or compressed by gzip.
//
// Format: lines end with LF or CR LF. These are ignored: empty lines, a byte order mark, spaces
// around a field or its quotes, a first column without a name in the header (R's names of rows),
// and a separator at the end of the header or of all rows. Numbers are decimal with a point, inf
// or nan, rounded correctly; those beyond the dtype become inf.
//
// Cost: rows are a stream; memory holds one row and a read buffer. To go back to a row, at most
// 1024 rows are read again. To infer columns or category texts, this call reads the files once,
// or twice if a column of categories begins with numbers.
//
// Errors: CHOIR_CORRUPT: a row with too few or too many fields; a field that is not a number of
// the dtype; text that is not UTF-8; a quote in a wrong place; a row of more than 64 MiB.
// CHOIR_INVALID: more than 32 columns that are not gathered; more than 1,048,576 categories.
choir_dataset *choir_csv_dataset_new(const char *path, const choir_csv_options *o);

// A column of the files, chosen or not.
typedef struct {
	const char *name;
	const char *output; // the dataset's column; NULL: it is left out
	// "nothing", "whole numbers", "numbers", "dates", "text"; "": not inferred
	const char *holds;
	int64_t missing; // rows without a value here, among the rows read to infer columns
	choir_csv_kind kind; // how it is read; not CHOIR_CSV_INFER
	size_t categories; // of a chosen column of categories or one-hot numbers; else 0
	bool indicator;
} choir_csv_inferred;
// Describes the i-th column of the files. False: no such column, or d is not from
// choir_csv_dataset_new.
bool choir_csv_dataset_column(const choir_dataset *d, size_t i, choir_csv_inferred *found);
// The k-th text of the i-th column of the files, or NULL. d owns it.
const char *choir_csv_dataset_category(const choir_dataset *d, size_t i, size_t k);

// The number of texts of a column of categories, else 0, and the i-th. d may be a later stage of
// the chain.
size_t choir_dataset_categories(const choir_dataset *d, const char *column);
const char *choir_dataset_category(const choir_dataset *d, const char *column, int64_t i);
// Rows that d's sources left out in this pass: without a value, and bad records. They include
// rows of datasets that interleave or flat_map opened and, after repeat, rows of all its passes
// so far. Threads: any.
int64_t choir_dataset_dropped(const choir_dataset *d);
int64_t choir_dataset_skipped(const choir_dataset *d);

// TFRecord

// How a feature of tf.train.Example becomes a column.
typedef struct {
	const char *name; // several columns may use the same feature
	const char *as; // name of the dataset's column; NULL: name
	// A float feature gives f32; an int64 feature i64, i32, u8 or bool, if each value fits; a
	// bytes feature with values of one length any dtype, little-endian.
	choir_dtype dtype;
	// The shape of one example. Rank CHOIR_NONE: the first example gives the shape and the dtype
	// (f32, i64, or u8 for bytes): a scalar for one number, [n] for n numbers or bytes, [m, n]
	// for m values of n bytes.
	choir_shape shape;
	// Fewer values than the shape are filled up with zeros.
	bool pad;
	// The packed values of an example without this feature; copied. NULL: CHOIR_NOT_FOUND.
	const void *missing;
} choir_feature;

// Options of reading TFRecord files.
typedef struct {
	size_t size;
	const choir_files *files; // instead of path
	// AUTO looks at the file's first bytes; a plain file begins with a right checksum.
	choir_compression compression;
	// With SKIP, a wrong length makes the rest of the file one bad record.
	choir_bad_record wrong;
	// Records are plain bytes, and make one column, which features may describe. n 0: "record",
	// u8, of the first record's length.
	bool raw;
	// n 0: all features of the first example, sorted by name.
	size_t n;
	const choir_feature *features;
} choir_tfrecord_options;

// Reads the records of TFRecord files as a stream, and verifies their checksums. Memory: 256 KiB
// or twice the largest record.
//
// CHOIR_CORRUPT: a wrong checksum; a truncated record; data that are not an Example; a feature
// whose kind or size differs from its column.
choir_dataset *choir_tfrecord_dataset_new(const char *path, const choir_tfrecord_options *o);

// Writes a TFRecord file, which appears, or replaces an older one, at
// choir_tfrecord_writer_finish.
typedef struct choir_tfrecord_writer choir_tfrecord_writer;
// AUTO: gzip if path ends in ".gz", else plain.
choir_tfrecord_writer *choir_tfrecord_writer_new(const char *path, choir_compression compression);
// Adds a record of plain bytes. After a failure to write, every later call returns it, and no
// file appears.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write(
		choir_tfrecord_writer *w, const void *data, size_t bytes);
// Adds a tf.train.Example of columns[i].data. f32 becomes a float feature; i64, i32, bool and
// scalar u8 an int64 feature; u8 with axes a bytes feature of one value. Other dtypes:
// CHOIR_UNSUPPORTED.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write_example(
		choir_tfrecord_writer *w, size_t n, const choir_column columns[]);
// Makes the file appear, after all data are on the disk. Later records are CHOIR_STATE.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_finish(choir_tfrecord_writer *w);
void choir_tfrecord_writer_free(choir_tfrecord_writer *w);

// Fixed-length records

// A field of a record.
typedef struct {
	const char *name; // of the column; NULL: the bytes are skipped
	choir_dtype dtype;
	choir_shape shape; // of one example
	bool big_endian;
	// The last axis of shape (channels) comes first in the file: its [3, 32, 32] becomes [32, 32,
	// 3].
	bool channels_first;
	// u8, i32 and i64: a value outside of 0 to limit - 1 is CHOIR_CORRUPT. 0: no limit.
	int64_t limit;
} choir_field;

// Options of fixed-length records.
typedef struct {
	size_t size;
	const choir_files *files; // instead of path
	choir_compression compression; // AUTO: gzip if a name ends in ".gz", else plain
	int64_t header; // bytes to skip at the start of each file
} choir_fixed_options;

// Reads records of fixed length: the n fields, one after another. Without compression the number
// of examples is known at once. CHOIR_CORRUPT: a file that ends within a record; a bool that is
// not 0 or 1.
choir_dataset *choir_fixed_length_record_dataset_new(
		const char *path, size_t n, const choir_field fields[], const choir_fixed_options *o);
// Reads CIFAR-10's binary files in directory: data_batch_*.bin, or test_batch.bin. Columns are
// "label", u8, 0 to 9, and "image", u8 [32, 32, 3], RGB.
choir_dataset *choir_cifar10_dataset_new(const char *directory, bool test);

// Images

// Options of reading a directory of images.
typedef struct {
	size_t size;
	int64_t height, width; // of an example, in pixels, at most 16384; 0: 224
	int channels; // 3: red, green, blue; 1: grey; 0: 3
	// SKIP: choir_image_directory_dataset_new decodes all files, and leaves out and logs those
	// that cannot be decoded (choir_logger_set).
	choir_bad_record bad_record;
	// The classes' names, in the order of their numbers. Another directory is CHOIR_INVALID.
	// classes 0: each directory is a class, sorted by the bytes of their names.
	size_t classes;
	const char *const *class_name;
	// A dataset of the same directory, whose files and classes are used without another check; it
	// may be freed after the call.
	const choir_dataset *schema;
} choir_image_directory_options;
// Reads the PNG and JPEG images of a directory with one directory for each class. Columns are
// "image", u8 [height, width, channels], and "label", i32, the number of the class, whose name
// choir_dataset_category gives. If there are images but no directories, "image" is the only
// column. Examples are ordered by class, then by the bytes of their file names. Names that begin
// with a dot, or do not end in .png, .jpg or .jpeg, are ignored. Links are followed.
//
// An image is scaled to the smallest size that covers height x width pixels, and the centre is
// cropped. Scaling is bilinear with antialiasing, with the filter and the arithmetic of Pillow;
// if height and width are equal, this is torchvision's Resize and CenterCrop. Transparency and
// the orientation in EXIF data are ignored. CMYK colours become RGB.
//
// Cost: this call lists the files. Reading an example decodes its file, in any order, so a
// shuffle needs no buffer. Memory holds one file and its pixels.
//
// Errors: CHOIR_INVALID: a class without images; no images. CHOIR_CORRUPT: an image that cannot
// be decoded, or is truncated; the text names the file. CHOIR_UNSUPPORTED: a build without libpng
// or libjpeg (choir_has_feature("png"), "jpeg"); more than 134,217,728 pixels; a file of more
// than 256 MiB.
choir_dataset *choir_image_directory_dataset_new(
		const char *directory, const choir_image_directory_options *o);
// The path of the i-th example's file, which d owns, or NULL.
const char *choir_image_directory_dataset_path(const choir_dataset *d, int64_t i);

// Text
//
// These sources also read files compressed by gzip.

// Each byte is an example, u8.
choir_dataset *choir_text_bytes_dataset_new(const char *path, const char *column);
// Reads windows of text: "input", u8 [context], has bytes i to i + context - 1, "target" those
// one further, for i = 0, stride (0: context), 2 stride, ... while all these bytes exist. Any
// order is possible, so a shuffle needs no buffer. A compressed file is unpacked into memory
// here. CHOIR_UNSUPPORTED: it has more than 1 GiB unpacked, or more than 64 MiB and 32 times its
// size.
choir_dataset *choir_text_windows_dataset_new(const char *path, int64_t context, int64_t stride);
// Reads lines, as u8 [CHOIR_UNKNOWN] without their ends (LF or CR LF), as a stream; memory holds
// the longest line. A line that is not UTF-8 is a bad record.
choir_dataset *choir_text_lines_dataset_new(
		const char *path, const char *column, choir_bad_record wrong);

// Memory, functions and synthetic data

// The i64 numbers start, start + step, ... before stop. step is not 0.
choir_dataset *choir_range_dataset_new(
		const char *column, int64_t start, int64_t stop, int64_t step);
// Repeats the example in columns[i].data, which is copied. CHOIR_FOREVER: without end.
choir_dataset *choir_constant_dataset_new(
		int64_t examples, size_t n, const choir_column columns[]);
// Reads examples in memory: columns[i].data has column i of all. n is 1 to 32, as for every
// dataset (else CHOIR_INVALID). Without copy the data are borrowed, and must not change until the
// dataset is freed.
choir_dataset *choir_memory_dataset_new(
		int64_t examples, size_t n, const choir_column columns[], bool copy);
// Writes one example to out[i], for columns[i]. position counts from 0 in each pass. CHOIR_END:
// no more examples. The reading call returns an error, with the example's number before the text.
// The function runs on the reading thread, which is Choir's if choir_dataset_prefetch follows.
typedef choir_status choir_example_fn(int64_t position, void *const out[], void *user);
choir_dataset *choir_generator_dataset_new(
		size_t n, const choir_column columns[], choir_example_fn *fn, void *user);
// Says that the generator is next called for position of pass: when a pass begins again (0), and
// when a position is restored. Fails as choir_example_fn, but CHOIR_END becomes CHOIR_INVALID.
typedef choir_status choir_seek_fn(int64_t pass, int64_t position, void *user);
// A generator that can seek: a restore does not call fn for earlier examples.
choir_dataset *choir_seekable_generator_dataset_new(size_t n, const choir_column columns[],
		choir_example_fn *fn, choir_seek_fn *seek, void *user);

// Any thread of the program puts examples in, while another reads them.
typedef struct choir_queue choir_queue;
typedef struct {
	size_t size;
	int64_t capacity; // examples that can wait to be read; 0: 1024
	// Seconds that reading waits before CHOIR_TIMEOUT. 0: 600; CHOIR_FOREVER: until the queue is
	// closed, failed or freed.
	double timeout;
} choir_queue_options;
// Makes a dataset and its writing end, which may be freed in any order. Each choir_queue_close
// ends a pass; later examples belong to the next. Examples that were read are not kept, so a
// rewind within a pass is CHOIR_UNSUPPORTED, and after a restore the program must put in the pass
// again, from its start.
choir_dataset *choir_queue_dataset_new(
		size_t n, const choir_column columns[], const choir_queue_options *o, choir_queue **queue);
// Copies all examples into the queue, or none: data[i] has their values of column i, packed.
// Waits for space and, after a close, until the next pass begins. CHOIR_TIMEOUT: after seconds
// (negative: no limit). CHOIR_CANCELLED: the dataset was freed.
CHOIR_MUST_CHECK choir_status choir_queue_put(
		choir_queue *q, int64_t examples, const void *const data[], double seconds);
// Ends the pass after the examples in the queue. CHOIR_STATE: the queue is closed already.
CHOIR_MUST_CHECK choir_status choir_queue_close(choir_queue *q);
// Makes reading fail with status and text (may be NULL) after the examples in the queue. Only the
// first call counts.
choir_status choir_queue_fail(choir_queue *q, choir_status status, const char *text);
// Frees the writing end. If it was not closed, reading beyond its examples fails with
// CHOIR_STATE.
void choir_queue_free(choir_queue *q);
// Makes digits that look handwritten. Columns are "image", u8 [28, 28] (255 is ink), and "label",
// u8, 0 to 9. Example i depends only on seed and i. Examples 10 k to 10 k + 9 have each digit
// once.
choir_dataset *choir_synthetic_digits_dataset_new(int64_t examples, uint64_t seed);

CHOIR_C_END
