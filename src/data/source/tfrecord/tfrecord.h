// Records of several files. Threads: one at a time.
#pragma once

#include "data/source/file_list.h"
#include "data/source/tfrecord/tf_example.h"
#include "data/source/tfrecord/record_reader.h"

typedef struct {
	chi_glob paths;
	size_t next_path;
	chi_records *open;
	choir_compression compression;
	bool skip;
	int64_t skipped;
} chi_record_files;

choir_status chi_record_files_next(chi_record_files *f, const unsigned char **data, size_t *bytes);
// A bad content. CHOIR_OK: it is skipped. Otherwise adds its place.
choir_status chi_record_files_bad(chi_record_files *f);

// Takes the options and, where these are open, the first record. The caller frees names.
choir_status chi_record_columns(chi_record_files *f, const choir_tfrecord_options *o, size_t *n,
		choir_column columns[CHI_MAX_COLUMNS], chi_text *names);

// One feature per column: f32 becomes floats; i32, i64, bool and scalar u8 become int64; other u8
// becomes bytes. CHOIR_UNSUPPORTED: another dtype.
choir_status chi_example_write(chi_text *to, size_t n, const choir_column columns[]);
