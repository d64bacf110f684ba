// TFRecord records with messages of TensorFlow's event.proto and summary.proto, the format's
// version first. TensorBoard reads files with "tfevents" in their name.
#include "trace/tensorboard.h"

#include "base/clock.h"
#include "base/protobuf_writer.h"
#include "base/tfrecord_framing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5 }; // of Event
enum { VALUE = 1 }; // of Summary
enum { TAG = 1, SIMPLE_VALUE = 2 }; // of Summary.Value
enum { PATH_CAPACITY = 4096 };
static const char version[] = "brain.Event:2";
static const double FLUSH_SECONDS = 1;

static choir_status write_record(chi_tensorboard *e)
{
	unsigned char header[CHI_RECORD_HEADER], footer[CHI_RECORD_FOOTER];
	if (e->value.failed || e->summary.failed || e->event.failed)
		return e->status = CHOIR_NO_MEMORY;
	chi_record_frame(e->event.data, e->event.length, header, footer);
	e->status = chi_writer_write(e->file, header, sizeof header);
	if (e->status == CHOIR_OK)
		e->status = chi_writer_write(e->file, e->event.data, e->event.length);
	if (e->status == CHOIR_OK)
		e->status = chi_writer_write(e->file, footer, sizeof footer);
	return e->status;
}

static void begin_event(chi_tensorboard *e, double wall)
{
	e->event.length = 0;
	chi_protobuf_double(&e->event, WALL_TIME, wall);
}

static choir_status flush(chi_tensorboard *e)
{
	e->flushed = chi_clock_now();
	return e->status = chi_writer_flush(e->file);
}

// events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER: readers sort by name.
static choir_status create(chi_tensorboard *e, const char *directory, double wall, unsigned number)
{
	char host[65] = "", path[PATH_CAPACITY];
	if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || strchr(host, '/') != NULL)
		snprintf(host, sizeof host, "localhost");
	const int length = snprintf(path, sizeof path, "%s/events.out.tfevents.%010lld.%s.%ld.%u",
			directory, (long long) wall, host, (long) getpid(), number);
	if (length >= PATH_CAPACITY)
		return choir_fail(CHOIR_INVALID,
				"%.100s...: the directory's path of %zu bytes is too long", directory,
				strlen(directory));
	e->file = chi_writer_new_growing(path);
	return e->file != NULL ? CHOIR_OK : choir_error_status();
}

choir_status chi_tensorboard_open(chi_tensorboard *e, const char *directory, unsigned number)
{
	const double wall = chi_clock_wall();
	*e = (chi_tensorboard){ .file = NULL };
	CHOIR_TRY(chi_directory_make(directory));
	CHOIR_TRY(create(e, directory, wall, number));
	begin_event(e, wall);
	chi_protobuf_bytes(&e->event, FILE_VERSION, version, sizeof version - 1);
	if (write_record(e) == CHOIR_OK && flush(e) == CHOIR_OK)
		return CHOIR_OK;
	return chi_tensorboard_close(e);
}

choir_status chi_tensorboard_scalar(
		chi_tensorboard *e, const char *tag, int64_t step, double value)
{
	if (e->status != CHOIR_OK)
		return e->status;
	e->value.length = e->summary.length = 0;
	chi_protobuf_bytes(&e->value, TAG, tag, strlen(tag));
	chi_protobuf_float(&e->value, SIMPLE_VALUE, (float) value);
	chi_protobuf_bytes(&e->summary, VALUE, e->value.data, e->value.length);
	begin_event(e, chi_clock_wall());
	chi_protobuf_tag(&e->event, STEP, CHI_WIRE_VARINT);
	chi_protobuf_varint(&e->event, (uint64_t) step);
	chi_protobuf_bytes(&e->event, SUMMARY, e->summary.data, e->summary.length);
	CHOIR_TRY(write_record(e));
	return chi_clock_now() - e->flushed < FLUSH_SECONDS ? CHOIR_OK : flush(e);
}

choir_status chi_tensorboard_close(chi_tensorboard *e)
{
	chi_text_free(&e->value);
	chi_text_free(&e->summary);
	chi_text_free(&e->event);
	if (e->status == CHOIR_OK)
		return e->file == NULL ? CHOIR_OK : chi_writer_commit(e->file);
	const choir_status status = e->status;
	(void) chi_writer_flush(e->file); // earlier events are complete
	chi_writer_abort(e->file);
	return status;
}
