// Sources are the first stages of datasets. dataset.h has the rules for errors and threads.
// CHOIR_CORRUPT: a file violates its format.
//
// path names a file. In a source with the option .files, path may also be a glob pattern
// ("part-*.csv"). If path is NULL, the source reads the files of the list .files. .files and
// .schema may be freed after the call.
#pragma once

#include "dataset.h"

CHOIR_C_BEGIN

// GZIP and ZLIB need a build with zlib (else CHOIR_UNSUPPORTED). Damage may show only at the
// file's end.
typedef enum {
	CHOIR_COMPRESSION_AUTO = 0,
	CHOIR_COMPRESSION_NONE,
	CHOIR_COMPRESSION_GZIP,
	CHOIR_COMPRESSION_ZLIB
} choir_compression;

// Lists of files

typedef struct choir_files choir_files;
// Makes a list from file names and glob patterns (*, ?, [abc]). A pattern matches at least one
// file; its files are sorted by the bytes of names.
choir_files *choir_files_new(size_t n, const char *const patterns[]);
size_t choir_files_count(const choir_files *f);
const char *choir_files_path(const choir_files *f, size_t i);
void choir_files_free(choir_files *f);
// Makes the source of one file, or a chain from it.
typedef choir_dataset *choir_file_fn(const char *path, void *user);
// Reads all files in order, with datasets from fn: the first in this call, others on the reading
// thread. Takes ownership of files, also after a failure. All files have the same columns.
choir_dataset *choir_files_dataset_new(choir_files *files, choir_file_fn *fn, void *user);

// Arrays
//
// Axis 0 of an array counts the examples: [60000, 28, 28] gives a column of shape [28, 28]. IDX
// and npy files may be compressed by gzip. npy, npz and HDF5 files may have the types f4, f8, f2,
// i4, i8 and u1 in either byte order, b1, and h5py's bool. i1, i2 and u2 become i32, and u4
// becomes i64. CHOIR_UNSUPPORTED: another type. Files are streams, but small compressed files are
// unpacked in memory.

// Reads an IDX file (the format of MNIST): u8, i32, f32 or f64.
choir_dataset *choir_idx_dataset_new(const char *path, const char *column);
// Reads an npy file (versions 1.0 to 3.0); in Fortran order, the whole file is read into memory.
choir_dataset *choir_npy_dataset_new(const char *path, const char *column);
// Reads n arrays of an npz file (stored or deflated), of one length, as columns in the order of
// names; n 0: all. CHOIR_UNSUPPORTED: encryption; another compression; a build without zlib.
choir_dataset *choir_npz_dataset_new(const char *path, size_t n, const char *const names[]);
// Reads n datasets of an HDF5 file, of one length, contiguous or chunked (any filter), as columns.
// names are paths in the file ("x", "train/images"). n 0: all datasets of the root group, sorted
// by name. A missing chunk has the fill value, or 0.
//
// The HDF5 library follows links to other files, so read untrusted files in a separate process.
// The program may call the library at the same time only if it is thread-safe.
//
// CHOIR_UNSUPPORTED: a build or machine without HDF5. CHOIR_CORRUPT also: data are missing in a
// contiguous dataset, chunks in one that can grow, or some but not all chunks in a compressed one.
choir_dataset *choir_hdf5_dataset_new(const char *path, size_t n, const char *const names[]);
// Lists the arrays of any type in a file (npz, npy, or the root group of HDF5), in its order.
// Fails as the constructors above. Threads: any, one at a time.
typedef struct choir_array_list choir_array_list;
typedef struct {
	const char *name; // "" in an npy file
	const char *type; // the file's name for it: "<f4", "|S5", "text", "group"
	int known; // the choir_dtype of its column; CHOIR_NONE: it cannot be a column
	choir_shape shape; // with axis 0
	int64_t held; // bytes that a dataset of it keeps in memory; 0: a stream
} choir_array_entry;
choir_array_list *choir_array_list_new(const char *path);
void choir_array_list_free(choir_array_list *l);
size_t choir_array_list_entries(const choir_array_list *l);
const choir_array_entry *choir_array_list_entry(const choir_array_list *l, size_t i);
// Writes an npy file (version 1.0) of packed data, whole or not at all. CHOIR_UNSUPPORTED: bf16.
// Threads: any.
CHOIR_MUST_CHECK choir_status choir_npy_write(
		const char *path, choir_dtype dtype, choir_shape shape, const void *data);

// CSV

// What the fields of a column hold, and how they become numbers.
typedef enum {
	CHOIR_CSV_INFER = 0, // i64 for whole numbers, f64 for other numbers, categories for text
	CHOIR_CSV_NUMBER,
	CHOIR_CSV_CATEGORY, // i32: the text's number (choir_dataset_category)
	// f32 [number of texts]: 1 at the text's number, else 0.
	CHOIR_CSV_ONE_HOT,
	// Days since 1970-01-01 UTC, with fractions. A date is in ISO 8601 or as 2026/11/24, perhaps
	// with a time (without a zone: UTC).
	CHOIR_CSV_DATE,
	// The labels of a classification. Whole numbers from 0 to n - 1, without leading zeros, stay
	// as they are, i64. Other numbers become categories, i32, in the order of their values: "1"
	// and "1.0" are one category. More than 4096 numbers that are not all whole stay f64. Dates
	// and texts become categories as with INFER.
	CHOIR_CSV_CLASS
} choir_csv_kind;
// A column of a CSV file.
typedef struct choir_csv_column {
	const char *name; // in the header; without a header "0", "1", ...
	// The dataset's column; NULL: name. Columns with the same output and dtype become one column,
	// [their number], in the list's order. Inferred numbers then become f32, and categories lack
	// texts.
	const char *output;
	choir_csv_kind kind;
	// For NUMBER: f32, f64, i32, i64, u8 or bool (0 or 1). 1.0 is also an integer. For DATE: f32
	// or f64.
	choir_dtype dtype;
	// The texts of a CATEGORY, CLASS or ONE_HOT column, in the order of their numbers. Another
	// text makes a bad record. categories 0: the texts in the files, sorted by their bytes.
	size_t categories;
	const char *const *category;
	// Adds a number to this f32 or one-hot column: 1 in a row without a value, else 0. For
	// CHOIR_MISSING_NAN.
	bool indicator;
	bool drop_missing; // drop rows without a value
	// Keeps rows whose value is missing or wrong: -1, or NaN in f32 and f64 columns. Not for
	// ONE_HOT, u8 and bool.
	bool optional;
} choir_csv_column;
// What happens to a row without a value in a chosen column.
typedef enum {
	CHOIR_MISSING_ERROR = 0, // CHOIR_CORRUPT
	CHOIR_MISSING_DROP, // counted by choir_dataset_dropped
	// NaN in f32 and f64 columns (choir_dataset_fill_nan), zeros in one-hot columns, ERROR in
	// other columns.
	CHOIR_MISSING_NAN
} choir_missing;
typedef enum {
	CHOIR_BAD_RECORD_ERROR = 0, // CHOIR_CORRUPT
	CHOIR_BAD_RECORD_SKIP // counted by choir_dataset_skipped
} choir_bad_record;
typedef struct choir_csv_options {
	size_t size;
	const choir_files *files;
	char separator; // 0: a comma
	char quote; // 0: a double quote
	choir_toggle header; // default: on. Off: the first row is data
	// The chosen columns; 0: all, unless other_columns is set.
	size_t columns;
	const choir_csv_column *column;
	// An f32 column of all unlisted columns of numbers. NULL: none.
	const char *other_columns;
	// other_columns also gets, as one-hot, text columns of up to this number of different texts
	// that occur twice or more on average. 0: no text columns; SIZE_MAX: all.
	size_t other_categories;
	bool other_dates; // other_columns also gets columns of dates
	// A column in other_columns gets an indicator if a row read to infer columns lacks its value.
	bool indicators;
	choir_missing missing;
	// Texts that mean "no value", as the empty text does. 0: NA, N/A, NaN, nan, null, NULL,
	// n/a, None, #N/A and <NA>.
	size_t missing_texts;
	const char *const *missing_text;
	choir_bad_record bad_record;
	// Rows to read to infer columns; 0: all. Later rows that do not fit are bad records.
	int64_t infer_rows;
	// A CSV dataset of files with the same header, for columns and texts. NULL, or without a
	// chosen column's texts: this call infers them.
	const choir_dataset *schema;
	// An additional i64 column with each row's number, from 0, over all files.
	const char *row_number;
	char decimal; // 0: a point. With a comma, 1.5 is no number
	// Without .separator: if the first header has no comma, but semicolons or tabs (not both),
	// these separate fields. A first line such as sep=; names the separator.
	bool find_separator;
	bool finite; // a number not finite in its dtype makes a bad record
	// Columns of other_columns that are texts even if they look like numbers, as zip codes.
	// other_categories does not limit these.
	size_t other_texts;
	const char *const *other_text;
} choir_csv_options;
// Reads CSV files (RFC 4180) with the same columns, plain or compressed by gzip.
//
// Lines end with LF or CR LF. Choir ignores empty lines, a byte order mark, spaces around a field
// or its quotes, an unnamed first column, and a separator at the end of the header or of all rows.
// A number is decimal with a point, or inf or nan. It is rounded correctly, and to inf beyond the
// dtype. Commas may separate groups of three digits, as in "1,234,567.8" (points, if .decimal is a
// comma).
//
// To infer, reads the files once, or twice if a column of categories begins with numbers.
//
// CHOIR_CORRUPT also: text that is not UTF-8; a row of more than 64 MiB. Limits: 32 columns of the
// dataset; 1,048,576 categories.
choir_dataset *choir_csv_dataset_new(const char *path, const choir_csv_options *o);

// A column of the files, chosen or not.
typedef struct {
	const char *name;
	const char *output; // the dataset's column; NULL: it is left out
	// "nothing", "whole numbers", "numbers", "dates" or "text"; "": not inferred
	const char *holds;
	int64_t missing; // rows without a value, of those read to infer columns
	choir_csv_kind kind; // how it is read; not CHOIR_CSV_INFER
	size_t categories; // of a chosen CATEGORY or ONE_HOT column, else 0
	bool indicator;
	int64_t values; // rows with a value, among those read to infer columns
	// "numbers", "dates", "numbers with a decimal comma" or "numbers with other characters" ($5,
	// 80%), if at least 9 of 10 values of a text column are such, or half and all others are one
	// text; else NULL.
	const char *mostly;
	// Of a text column: a value of another kind, or no number (NULL: none known), its row in its
	// file, from 1, and the number of these.
	const char *other;
	int64_t other_row, others;
	bool not_utf8; // other is not UTF-8, so the column is left out
	bool grouped; // some numbers have thousands separators
} choir_csv_inferred;
// Writes the i-th column of the files to *found. False: no such column, or d is not a CSV dataset.
bool choir_csv_dataset_column(const choir_dataset *d, size_t i, choir_csv_inferred *found);
// The k-th text of this column, or NULL.
const char *choir_csv_dataset_category(const choir_dataset *d, size_t i, size_t k);
// The separator of the fields. 0: d is not a CSV dataset.
char choir_csv_dataset_separator(const choir_dataset *d);

// The number of a column's categories (0: another column), and the i-th text or NULL. d may be a
// later stage.
size_t choir_dataset_categories(const choir_dataset *d, const char *column);
const char *choir_dataset_category(const choir_dataset *d, const char *column, int64_t i);
// Rows without a value, and bad records, that d's sources left out in this pass (after repeat: in
// all passes). Threads: any.
int64_t choir_dataset_dropped(const choir_dataset *d);
int64_t choir_dataset_skipped(const choir_dataset *d);

// TFRecord

// How a feature of tf.train.Example becomes a column.
typedef struct {
	const char *name; // several columns may use the same feature
	const char *as; // the dataset's column; NULL: name
	// A float feature gives f32. An int64 feature gives i64, i32, u8 or bool, if each value fits.
	// A bytes feature whose values have one length gives any dtype, little-endian.
	choir_dtype dtype;
	// The shape of one example. Rank CHOIR_NONE: the first example gives the dtype (f32, i64, or
	// u8 for bytes) and shape: a scalar for one number, [n] for n numbers or bytes, [m, n] for m
	// values of n bytes.
	choir_shape shape;
	bool pad; // add zeros to an example with too few values
	// Packed values for an example without the feature; copied. NULL: it fails with
	// CHOIR_NOT_FOUND.
	const void *missing;
} choir_feature;

// How TFRecord files are read.
typedef struct {
	size_t size;
	const choir_files *files;
	// AUTO: as the file's first bytes say.
	choir_compression compression;
	// With SKIP, the rest of a file after a wrong length is one bad record.
	choir_bad_record wrong;
	// A record is one column, features[0]. n 0: "record", u8, of the first record's length.
	bool raw;
	// n 0: all features of the first example, sorted by name.
	size_t n;
	const choir_feature *features;
} choir_tfrecord_options;

// Reads TFRecord files as a stream. CHOIR_CORRUPT also: a wrong checksum; a feature whose kind or
// size differs from its column.
choir_dataset *choir_tfrecord_dataset_new(const char *path, const choir_tfrecord_options *o);

// Writes a TFRecord file.
typedef struct choir_tfrecord_writer choir_tfrecord_writer;
// Compression AUTO: gzip if path ends in ".gz", else none.
choir_tfrecord_writer *choir_tfrecord_writer_new(const char *path, choir_compression compression);
// Adds a record. After a failure to write, later calls return it, and no file appears.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write(
		choir_tfrecord_writer *w, const void *data, size_t bytes);
// Adds a tf.train.Example of columns[i].data. f32 becomes a float feature. i64, i32, bool and
// scalar u8 become an int64 feature. u8 with axes becomes a bytes feature of one value.
// CHOIR_UNSUPPORTED: another dtype.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_write_example(
		choir_tfrecord_writer *w, size_t n, const choir_column columns[]);
// Ends the file. Once on the disk, it appears or replaces an older file. A later record is
// CHOIR_STATE.
CHOIR_MUST_CHECK choir_status choir_tfrecord_writer_finish(choir_tfrecord_writer *w);
void choir_tfrecord_writer_free(choir_tfrecord_writer *w);

// Fixed-length records

// A field of a record.
typedef struct {
	const char *name; // of the column; NULL: skip the bytes
	choir_dtype dtype;
	choir_shape shape; // of one example
	bool big_endian;
	// The file has shape's last axis first: [3, 32, 32] becomes [32, 32, 3].
	bool channels_first;
	// For u8, i32 and i64: values are 0 to limit - 1 (else CHOIR_CORRUPT). 0: no limit.
	int64_t limit;
} choir_field;

// How records are read.
typedef struct {
	size_t size;
	const choir_files *files;
	choir_compression compression; // AUTO: gzip if a name ends in ".gz", else none
	int64_t header; // bytes to skip in each file
} choir_fixed_options;

// Reads records of n fields. Without compression, the number of examples is known at once.
choir_dataset *choir_fixed_length_record_dataset_new(
		const char *path, size_t n, const choir_field fields[], const choir_fixed_options *o);
// Reads CIFAR-10 from a directory: data_batch_*.bin, or test_batch.bin if test is true. Columns:
// "label", u8, 0 to 9, and "image", u8 [32, 32, 3], RGB.
choir_dataset *choir_cifar10_dataset_new(const char *directory, bool test);

// Images

// How images are read.
typedef struct {
	size_t size;
	int64_t height, width; // pixels of an example, at most 16384; 0: 224
	int channels; // 3: red, green, blue; 1: grey; 0: 3
	// SKIP: the call decodes all files, and logs and leaves out bad ones.
	choir_bad_record bad_record;
	// The classes, in the order of their numbers. CHOIR_INVALID: a directory of another name.
	// classes 0: each directory is a class, sorted by the bytes of their names.
	size_t classes;
	const char *const *class_name;
	// A dataset of this directory, whose files and classes are used.
	const choir_dataset *schema;
} choir_image_directory_options;
// Reads the PNG and JPEG images of a directory with one directory for each class. Columns:
// "image", u8 [height, width, channels], and, if there are directories, "label", i32, the class
// (its name: choir_dataset_category). Examples are ordered by class, then by the bytes of their
// file names. Only names that end in .png, .jpg or .jpeg, without a leading dot, are read; a
// warning counts others. Links are followed.
//
// Images are scaled to the smallest size that covers height x width pixels (bilinear, with
// Pillow's antialiasing filter and arithmetic), then cropped around the centre. Transparency and
// EXIF orientation are ignored. CMYK becomes RGB. Reading an example decodes its file, so a
// shuffle needs no buffer.
//
// Each class has at least one image. CHOIR_UNSUPPORTED: a build without libpng or libjpeg; more
// than 134,217,728 pixels; a file of more than 256 MiB.
choir_dataset *choir_image_directory_dataset_new(
		const char *directory, const choir_image_directory_options *o);
// The path of the i-th example's file, or NULL.
const char *choir_image_directory_dataset_path(const choir_dataset *d, int64_t i);

// Text
//
// These sources also read files compressed by gzip.

// Reads bytes; each is an example, u8.
choir_dataset *choir_text_bytes_dataset_new(const char *path, const char *column);
// Reads windows of text. Columns: "input", u8 [context], bytes i to i + context - 1, and "target",
// one byte later. i is 0, stride, 2 stride, ... as long as the text has these bytes. stride 0:
// context. A shuffle needs no buffer. Compressed files are unpacked into memory.
// CHOIR_UNSUPPORTED: the text has more than 1 GiB, or more than both 64 MiB and 32 times the
// file's size.
choir_dataset *choir_text_windows_dataset_new(const char *path, int64_t context, int64_t stride);
// Reads lines, u8 [CHOIR_UNKNOWN], without their ends (LF or CR LF). A line that is not UTF-8 is a
// bad record.
choir_dataset *choir_text_lines_dataset_new(
		const char *path, const char *column, choir_bad_record wrong);

// Memory, functions and synthetic data

// Gives the i64 numbers start, start + step, ... before stop. step is not 0.
choir_dataset *choir_range_dataset_new(
		const char *column, int64_t start, int64_t stop, int64_t step);
// Repeats the example in columns[i].data, which is copied. examples CHOIR_FOREVER: without end.
choir_dataset *choir_constant_dataset_new(
		int64_t examples, size_t n, const choir_column columns[]);
// Gives examples from memory: columns[i].data has column i of all examples. n is 1 to 32. Without
// copy, the caller keeps the data unchanged until the dataset is freed.
choir_dataset *choir_memory_dataset_new(
		int64_t examples, size_t n, const choir_column columns[], bool copy);
// Writes one example: column i to out[i]. position counts from 0 in each pass. Returns CHOIR_END
// after the last example. Called on the reading thread, which is Choir's if choir_dataset_prefetch
// follows.
typedef choir_status choir_example_fn(int64_t position, void *const out[], void *user);
choir_dataset *choir_generator_dataset_new(
		size_t n, const choir_column columns[], choir_example_fn *fn, void *user);
// Tells the generator the pass and position of its next call, before another pass (position 0) or
// after a restore. CHOIR_END becomes CHOIR_INVALID.
typedef choir_status choir_seek_fn(int64_t pass, int64_t position, void *user);
// Like choir_generator_dataset_new, but a restore calls seek and does not repeat earlier examples.
choir_dataset *choir_seekable_generator_dataset_new(size_t n, const choir_column columns[],
		choir_example_fn *fn, choir_seek_fn *seek, void *user);

// A queue: any thread puts examples in, while another reads them.
typedef struct choir_queue choir_queue;
typedef struct {
	size_t size;
	int64_t capacity; // examples that may wait to be read; 0: 1024
	// Seconds that reading waits before CHOIR_TIMEOUT. 0: 600; CHOIR_FOREVER: no limit.
	double timeout;
} choir_queue_options;
// Makes a dataset and its writing end, which may be freed in any order. Each choir_queue_close
// ends a pass. Reading removes an example: a rewind within a pass is CHOIR_UNSUPPORTED; after a
// restore the program puts in the pass's examples again.
choir_dataset *choir_queue_dataset_new(
		size_t n, const choir_column columns[], const choir_queue_options *o, choir_queue **queue);
// Copies all examples into the queue, or none: data[i] has their column i, packed. Waits for space
// and, after a close, until the next pass begins. CHOIR_TIMEOUT: it waited this number of seconds
// (negative: no limit). CHOIR_CANCELLED: the dataset was freed.
CHOIR_MUST_CHECK choir_status choir_queue_put(
		choir_queue *q, int64_t examples, const void *const data[], double seconds);
// Ends the pass after the examples in the queue. CHOIR_STATE: the pass is closed already.
CHOIR_MUST_CHECK choir_status choir_queue_close(choir_queue *q);
// Makes reading fail with status and text (may be NULL) after the examples in the queue. Only the
// first call counts.
choir_status choir_queue_fail(choir_queue *q, choir_status status, const char *text);
// Frees the writing end. Reading beyond an unclosed pass's last example fails with CHOIR_STATE.
void choir_queue_free(choir_queue *q);
// Draws digits that look handwritten. Columns: "image", u8 [28, 28] (255 is ink), and "label", u8,
// 0 to 9. Example i depends only on seed and i. Examples 10 k to 10 k + 9 have each digit once.
choir_dataset *choir_synthetic_digits_dataset_new(int64_t examples, uint64_t seed);

CHOIR_C_END
