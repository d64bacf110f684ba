// TFRecord files.
#pragma once

#include "data/source/file_list.h"
#include "data/source/tfrecord/tf_example.h"
#include "data/source/tfrecord/tfrecord_reader.h"

typedef struct {
	chi_glob paths;
	size_t next_path;
	chi_records *open;
	choir_compression compression;
	bool skip;
	int64_t skipped;
} chi_record_files;

choir_status chi_record_files_next(chi_record_files *f, const unsigned char **data, size_t *bytes);
// CHOIR_OK: a bad record is skipped. Else adds its place.
choir_status chi_record_files_bad(chi_record_files *f);

// By the options and the first record. The caller frees names.
choir_status chi_record_columns(chi_record_files *f, const choir_tfrecord_options *o, size_t *n,
		choir_column columns[CHI_MAX_COLUMNS], chi_text *names);

// One feature per column: f32 gives floats; i32, i64, bool and scalar u8 int64; other u8 bytes.
// CHOIR_UNSUPPORTED: another dtype.
choir_status chi_example_write(chi_text *to, size_t n, const choir_column columns[]);
