// Fuzzes name maps. The first line of the input is a tensor's name, the rest is the map.
// Independent code, which divides lines into words, applies an accepted map to the name again.
#include "fuzz.h"

#include "train/weights/name_map.h"

// Returns whether name matches pattern; star becomes the part of name that * matches.
static int is_like(const char *pattern, const char *name, const char *star[2])
{
	if (*pattern == '*') {
		const size_t behind = strlen(pattern + 1), length = strlen(name);
		if (length < behind || strcmp(name + length - behind, pattern + 1) != 0)
			return 0;
		star[0] = name;
		star[1] = name + length - behind;
		return 1;
	}
	if (*pattern != *name)
		return 0;
	return *pattern == '\0' || is_like(pattern + 1, name + 1, star);
}

// Checks the words after the two names: [reshape SHAPE] [axes AXES]. AXES alone needs no "axes".
static void check_rearrangement(char *word[4], const chi_rearrangement *how)
{
	const char *shape = word[1] != NULL && strcmp(word[0], "reshape") == 0 ? word[1] : NULL;
	const char *axes = word[1] == NULL ? word[0] : shape == NULL ? word[1] : word[3];
	demand(how->reshaped == (shape != NULL), "another use of a shape");
	demand(how->axes == (axes == NULL ? 0 : (int) (strlen(axes) + 1) / 2),
			"another number of axes");
	for (int i = 0; i < how->axes; i++)
		demand(how->axis[i] == axes[2 * i] - '0', "another axis");
	const int grouped = shape != NULL && strchr(shape, '(') != NULL;
	long long joined = 1;
	int axis = 0, open = 0;
	for (int i = 0; i < how->shape.rank; i++, shape++) {
		char *end;
		open |= *shape == '(';
		shape += *shape == '(';
		const long long dim = strtoll(shape, &end, 10);
		demand(dim == how->shape.dim[i], "another dimension");
		joined = open ? joined * dim : dim;
		open &= *end != ')';
		shape = end + (*end == ')');
		demand(*shape == (i + 1 < how->shape.rank ? ',' : '\0'), "another rank");
		if (!open && grouped)
			demand(axis < how->file.rank && how->file.dim[axis++] == joined, "another shape");
		joined = open ? joined : 1;
	}
	demand(axis == how->file.rank, "another rank of the file");
}

// Applies a line to name and compares the result; returns 0 if the line does not match.
static int apply(char *line, const char *name, const chi_mapped_name *found)
{
	char *word[6] = { NULL }, *save, *hash = strchr(line, '#');
	const char *star[2] = { name, name };
	char *expected = malloc(strlen(line) + strlen(name) + 1), *to = expected;
	if (hash != NULL)
		*hash = '\0';
	for (int i = 0; i < 6; i++)
		word[i] = strtok_r(i == 0 ? line : NULL, " \t\r", &save);
	const int applies = expected != NULL && word[1] != NULL && is_like(word[0], name, star);
	for (const char *p = word[1]; applies && *p != '\0'; p++)
		if (*p == '*') {
			memcpy(to, star[0], (size_t) (star[1] - star[0]));
			to += star[1] - star[0];
		} else {
			*to++ = *p;
		}
	if (applies) {
		*to = '\0';
		demand(found->left_out == (strcmp(word[1], "-") == 0), "another one is left out");
		demand(found->left_out || strcmp(found->name.data, expected) == 0, "another name");
		check_rearrangement(word + 2, &found->how);
	}
	free(expected);
	return applies;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *save;
	demand(text != NULL, "no memory");
	memcpy(text, data, size);
	text[size] = '\0';
	char *map = strchr(text, '\n');
	chi_error_clear();
	if (map != NULL)
		*map++ = '\0';
	chi_name_map read;
	if (chi_name_map_read(map, &read) != CHOIR_OK) {
		demand(strstr(choir_error(), "map: line ") != NULL, "refused without a line");
		chi_name_map_free(&read);
		free(text);
		return 0;
	}
	chi_mapped_name found;
	demand(chi_name_map_find(&read, text, &found) == CHOIR_OK, "no name");
	int applied = 0;
	for (char *line = map == NULL ? NULL : strtok_r(map, "\n", &save); line != NULL && !applied;
			line = strtok_r(NULL, "\n", &save))
		applied = apply(line, text, &found);
	if (!applied)
		demand(!found.left_out && found.how.axes == 0 && !found.how.reshaped &&
						strcmp(found.name.data == NULL ? "" : found.name.data, text) == 0,
				"a name that no line is for has changed");
	chi_text_free(&found.name);
	chi_name_map_free(&read);
	free(text);
	return 0;
}
