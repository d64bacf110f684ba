// choir inspect of weights: tensors and metadata of any program's safetensors file, and its values
// that are not finite.
#include "inspect/inspect.h"

#include "number.h"
#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 1 << 16, MAX_SHOWN = 60 };

typedef struct {
	int64_t count; // not finite; CHOIR_NONE: not a dtype of Choir
	uint64_t first; // byte of the file
} strange;

static choir_status read_block(FILE *file, const char *path, const choir_weights_entry *e,
		uint64_t done, size_t bytes, void *to)
{
	if (fseek(file, (long) (e->first + done), SEEK_SET) == 0 && fread(to, 1, bytes, file) == bytes)
		return CHOIR_OK;
	return choir_fail(CHOIR_IO, "%s: tensor \"%.100s\": cannot read %zu bytes from byte %llu",
			path, e->name, bytes, (unsigned long long) (e->first + done));
}

static choir_status inspect_values(
		FILE *file, const char *path, const choir_weights_entry *e, strange *s)
{
	static double block[BLOCK / sizeof(double)]; // holds any dtype
	*s = (strange){ .count = e->known == CHOIR_NONE ? CHOIR_NONE : 0 };
	if (e->known == CHOIR_NONE)
		return CHOIR_OK;
	const choir_dtype dtype = (choir_dtype) e->known;
	const int64_t n = choir_shape_elements(&e->shape);
	const size_t size = n == 0 ? 1 : (size_t) (e->bytes / (uint64_t) n);
	for (uint64_t done = 0; done < e->bytes; done += sizeof block) {
		const uint64_t left = e->bytes - done;
		const size_t bytes = left < sizeof block ? (size_t) left : sizeof block;
		CHOIR_TRY(read_block(file, path, e, done, bytes, block));
		for (size_t i = 0; i < bytes / size; i++)
			if (!isfinite(number_at(dtype, block, (int64_t) i)) && s->count++ == 0)
				s->first = e->first + done + i * size;
	}
	return CHOIR_OK;
}

static void print_weights(const choir_weights_entry *e, const strange *s, bool json)
{
	char shape[SHAPE_TEXT], name[CLEAN_TEXT], dtype[CLEAN_TEXT];
	if (json) {
		json_begin_item();
		json_text("name", e->name);
		json_text("dtype", e->dtype);
		json_list("shape", (size_t) e->shape.rank, e->shape.dim);
		json_integer("first", (int64_t) e->first);
		json_integer("bytes", (int64_t) e->bytes);
		if (s->count != CHOIR_NONE)
			json_integer("nonfinite", s->count);
		if (s->count > 0)
			json_integer("first_nonfinite", (int64_t) s->first);
		json_end_item();
		return;
	}
	printf("  %-32s %-5s %-20s %12llu bytes from %llu", clean_text(e->name, name),
			clean_text(e->dtype, dtype), shape_text(&e->shape, shape),
			(unsigned long long) e->bytes, (unsigned long long) e->first);
	if (s->count > 0)
		printf("; %lld not finite, the first at byte %llu", (long long) s->count,
				(unsigned long long) s->first);
	putchar('\n');
}

static void print_line(const char *key, const char *value)
{
	char name[CLEAN_TEXT];
	const size_t n = strlen(value);
	const bool more = n > MAX_SHOWN;
	printf("  %s = ", clean_text(key, name));
	clean_write(stdout, value, more ? MAX_SHOWN : n, &(clean_options){ .more = more });
	puts(more ? " ..." : "");
}

static void print_metadata(const choir_weights_list *l, bool json)
{
	if (json)
		json_begin_object("metadata");
	const char *key;
	for (size_t i = 0; (key = choir_weights_list_key(l, i)) != NULL; i++) {
		const char *value = choir_weights_list_value(l, i);
		if (json)
			json_text(key, value);
		else
			print_line(key, value);
	}
	if (json)
		json_end_item();
}

static void print_head(const choir_weights_list *l, const char *path, bool json)
{
	const choir_weights_entry *e;
	double bytes = 0, elements = 0;
	char text[32];
	for (size_t i = 0; (e = choir_weights_list_entry(l, i)) != NULL; i++) {
		bytes += (double) e->bytes;
		elements += (double) choir_shape_elements(&e->shape);
	}
	if (json) {
		json_begin();
		json_text("file", path);
		json_text("kind", "safetensors");
		return;
	}
	clean_print(stdout, path);
	printf(": safetensors, %zu tensors, %.0f elements, %s\n", choir_weights_list_entries(l),
			elements, print_bytes(bytes, text));
}

static choir_status print_tensors(
		const choir_weights_list *l, FILE *file, const char *path, bool json)
{
	choir_status status = CHOIR_OK;
	const choir_weights_entry *e;
	if (json)
		json_begin_list("tensors");
	for (size_t i = 0; status == CHOIR_OK && (e = choir_weights_list_entry(l, i)) != NULL; i++) {
		strange s;
		status = inspect_values(file, path, e, &s);
		if (status == CHOIR_OK)
			print_weights(e, &s, json);
	}
	if (json)
		json_end_list();
	return status;
}

choir_status inspect_weights(const char *path, bool json)
{
	choir_weights_list *l = choir_weights_list_new(path);
	if (l == NULL)
		return choir_error_status();
	FILE *file = fopen(path, "rb");
	choir_status status =
			file == NULL ? choir_fail(CHOIR_IO, "%s: %s", path, strerror(errno)) : CHOIR_OK;
	if (file != NULL) {
		print_head(l, path, json);
		print_metadata(l, json);
		status = print_tensors(l, file, path, json);
		if (json)
			json_end();
		fclose(file);
	}
	choir_weights_list_free(l);
	return status;
}
