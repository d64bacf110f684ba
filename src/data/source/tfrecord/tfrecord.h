// The records of several files, one behind the other, and what becomes of damaged ones: what the
// dataset and its columns share. Threads: one at a time.
#pragma once

#include "data/source/file_list.h"
#include "data/source/tfrecord/tf_example.h"
#include "data/source/tfrecord/record_reader.h"

typedef struct {
	chi_glob paths;
	size_t next_path;
	chi_records *open; // NULL: between files
	choir_compression compression;
	bool skip; // damaged records, and count them
	int64_t skipped;
} chi_record_files;

// The next record of the next file. CHOIR_END: there is none. A failure that is skipped is
// counted.
choir_status chi_record_files_next(chi_record_files *f, const unsigned char **data, size_t *bytes);
// What to do about a record that was read well and is wrong in itself, a failure that is recorded:
// CHOIR_OK if it is skipped, else that failure with the record's place.
choir_status chi_record_files_bad(chi_record_files *f);
void chi_record_files_rewind(chi_record_files *f);

// The columns of a dataset, from its options and, where those leave something open, the first
// record. Their names lie in names, which the caller frees.
choir_status chi_record_columns(chi_record_files *f, const choir_tfrecord_options *o, size_t *n,
		choir_column columns[CHI_MAX_COLUMNS], chi_text *names);

// The bytes of an Example with one feature for each column, whose data is one example: f32 as
// floats, i32, i64, bool and a u8 without axes as int64, u8 with axes as bytes.
// CHOIR_UNSUPPORTED: another dtype.
choir_status chi_example_write(chi_text *to, size_t n, const choir_column columns[]);
