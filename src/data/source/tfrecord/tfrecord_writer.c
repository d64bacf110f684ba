// A file gets its name when it is complete.
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/tfrecord_framing.h"
#include "data/source/tfrecord/tfrecord.h"
#include "data/source/compressed_writer.h"
#include "data/dataset.h"

struct choir_tfrecord_writer {
	chi_output *output;
	chi_error failure;
	chi_text example;
	int64_t records;
};

static const char what[] = "tfrecord writer";

choir_tfrecord_writer *choir_tfrecord_writer_new(const char *path, choir_compression compression)
{
	if (!path || (unsigned) compression > CHOIR_COMPRESSION_ZLIB)
		return chi_fail_null(CHOIR_INVALID, "%s: %s", what,
				path ? "the compression is unknown" : "the path is NULL");
	choir_tfrecord_writer *w = chi_alloc(sizeof *w);
	if (!w)
		return NULL;
	w->output = chi_output_new(path, compression);
	if (w->output)
		return w;
	chi_free(w);
	return NULL;
}

// A failure leaves it incomplete.
static choir_status keep(choir_tfrecord_writer *w, choir_status status)
{
	if (status != CHOIR_OK)
		chi_error_save(&w->failure);
	return status;
}

static choir_status check(const choir_tfrecord_writer *w)
{
	if (!w)
		return choir_fail(CHOIR_INVALID, "%s: the writer is NULL", what);
	if (w->failure.status != CHOIR_OK)
		chi_error_restore(&w->failure);
	else if (!w->output)
		return choir_fail(CHOIR_STATE, "%s: the file is finished; no records can be added", what);
	return w->failure.status;
}

static choir_status write_record(choir_tfrecord_writer *w, const void *data, size_t bytes)
{
	unsigned char header[CHI_RECORD_HEADER], footer[CHI_RECORD_FOOTER];
	chi_record_frame(data, bytes, header, footer);
	CHOIR_TRY(chi_output_write(w->output, header, sizeof header));
	CHOIR_TRY(chi_output_write(w->output, data, bytes));
	CHOIR_TRY(chi_output_write(w->output, footer, sizeof footer));
	w->records++;
	return CHOIR_OK;
}

choir_status choir_tfrecord_writer_write(choir_tfrecord_writer *w, const void *data, size_t bytes)
{
	CHOIR_TRY(check(w));
	if (!data && bytes > 0)
		return choir_fail(
				CHOIR_INVALID, "%s: record %lld: the data are NULL", what, (long long) w->records);
	return keep(w, write_record(w, data, bytes));
}

static choir_status check_columns(size_t n, const choir_column columns[])
{
	size_t bytes[CHI_MAX_COLUMNS];
	CHOIR_TRY(chi_columns_check(what, false, n, columns, bytes));
	for (size_t i = 0; i < n; i++)
		if (!columns[i].data)
			return choir_fail(
					CHOIR_INVALID, "%s: column \"%s\": the data are NULL", what, columns[i].name);
	return CHOIR_OK;
}

choir_status choir_tfrecord_writer_write_example(
		choir_tfrecord_writer *w, size_t n, const choir_column columns[])
{
	CHOIR_TRY(check(w));
	CHOIR_TRY(check_columns(n, columns));
	w->example.length = 0;
	w->example.failed = false;
	const choir_status status = chi_example_write(&w->example, n, columns);
	if (status == CHOIR_NO_MEMORY)
		return keep(w, status);
	if (status != CHOIR_OK)
		return chi_error_prefix("%s: record %lld", what, (long long) w->records);
	return keep(w, write_record(w, w->example.data, w->example.length));
}

choir_status choir_tfrecord_writer_finish(choir_tfrecord_writer *w)
{
	CHOIR_TRY(check(w));
	chi_output *output = w->output;
	w->output = NULL;
	return keep(w, chi_output_commit(output));
}

void choir_tfrecord_writer_free(choir_tfrecord_writer *w)
{
	if (!w)
		return;
	chi_output_abort(w->output);
	chi_text_free(&w->example);
	chi_free(w);
}
