// TFRecord files and others: what Python writes by code of its own is read here and the other
// way round, and the same with TensorFlow, where there is one.
#include "data/elements.h"

#include "base/status.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 50 };
static const char *const compressions[] = { "plain", "gzip", "zlib" };
static const choir_compression codes[] = { CHOIR_COMPRESSION_NONE, CHOIR_COMPRESSION_GZIP,
	CHOIR_COMPRESSION_ZLIB };

typedef struct {
	int64_t id, wide[2];
	float x[3];
	char name[13];
} values;

static values expected(int i)
{
	values v = { .id = i, .wide = { -i, (int64_t) i << 40 } };
	v.x[0] = 0.5f * (float) i;
	v.x[1] = (float) (i + 1);
	v.x[2] = -2.25f;
	memcpy(v.name, "example 0000", sizeof v.name);
	v.name[10] = (char) ('0' + i / 10);
	v.name[11] = (char) ('0' + i % 10);
	return v;
}

static void write_file(const char *path, choir_compression compression)
{
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(path, compression);
	assert_non_null(w);
	for (int i = 0; i < COUNT; i++) {
		const values v = expected(i);
		const choir_column columns[] = { { "name", CHOIR_U8, CHOIR_SHAPE(12), v.name },
			{ "id", CHOIR_I64, CHOIR_SCALAR, &v.id }, { "x", CHOIR_F32, CHOIR_SHAPE(3), v.x },
			{ "wide", CHOIR_I64, CHOIR_SHAPE(2), v.wide } };
		assert_int_equal(choir_tfrecord_writer_write_example(w, 4, columns), CHOIR_OK);
	}
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
}

static void read_file(const char *path)
{
	choir_dataset *d = choir_tfrecord_dataset_new(path, NULL); // id, name, wide, x
	if (!d)
		fail_msg("%s", choir_error());
	values v = { .id = 0 };
	chi_element e = { .column = { &v.id, v.name, v.wide, v.x }, .capacity = 1 };
	for (int i = 0; i < COUNT; i++) {
		const values right = expected(i);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		assert_int_equal(v.id, i);
		assert_string_equal(v.name, right.name);
		assert_memory_equal(v.wide, right.wide, sizeof v.wide);
		assert_memory_equal(v.x, right.x, sizeof v.x);
	}
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
	choir_dataset_free(d);
}

static int run(const char *python, const char *what, const char *whose, const char *compression)
{
	char command[1024];
	snprintf(command, sizeof command, "'%s' '%s' %s %s %s others.tfrecord", python,
			CHOIR_SOURCE_DIR "/tests/data/source/tfrecord/tfrecord.py", what, whose, compression);
	return system(command);
}

static void exchange(const char *python, const char *whose)
{
#ifdef CHI_HAS_ZLIB
	const int ways = 3;
#else
	const int ways = 1;
#endif
	for (int i = 0; i < ways; i++) {
		assert_int_equal(run(python, "write", whose, compressions[i]), 0);
		read_file("others.tfrecord");
		unlink("others.tfrecord");
		write_file("others.tfrecord", codes[i]);
		assert_int_equal(run(python, "check", whose, compressions[i]), 0);
		unlink("others.tfrecord");
	}
}

TEST(with_python)
{
	if (system("python3 -c ''") != 0) {
		print_message("there is no python3\n");
		skip();
	}
	exchange("python3", "own");
}

TEST(with_tensorflow)
{
	const char *python = getenv("CHOIR_TEST_PYTHON");
	char command[1024];
	snprintf(command, sizeof command, "'%s' -c 'import tensorflow' 2>/dev/null",
			python ? python : "python3");
	if (system(command) != 0) {
		print_message("the Python of CHOIR_TEST_PYTHON has no tensorflow\n");
		skip();
	}
	exchange(python ? python : "python3", "tensorflow");
}
