// Names of devices in all of TensorFlow's spellings; "cpu:0" is printed. Job, replica and task are
// ignored: devices are this worker's.
#include "base/text.h"
#include "device/device.h"
#include "device/remote/remote_device.h"

#include <limits.h>
#include <string.h>

enum { KIND_SIZE = 16, NAME_SIZE = 128, SHOWN_SIZE = 96 };

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take_word(const char **at, const char *word)
{
	size_t length = strlen(word);
	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_number(const char **at, int *out)
{
	if (!is_digit(**at))
		return false;
	int number = 0;
	for (; is_digit(**at); (*at)++) {
		int digit = **at - '0';
		if (number > (INT_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*out = number;
	return true;
}

static bool take_job_name(const char **at)
{
	if (!is_letter(**at))
		return false;
	while (is_letter(**at) || is_digit(**at) || **at == '_')
		(*at)++;
	return true;
}

static bool take_place(const char **at)
{
	bool job = false, replica = false, task = false;
	int number;
	for (;;) {
		if (take_word(at, "/job:")) {
			if (job || !take_job_name(at))
				return false;
			job = true;
		} else if (take_word(at, "/replica:")) {
			if (replica || !take_number(at, &number))
				return false;
			replica = true;
		} else if (take_word(at, "/task:")) {
			if (task || !take_number(at, &number))
				return false;
			task = true;
		} else {
			return take_word(at, "/");
		}
	}
}

bool chi_device_parse(const char *name, char kind[16], int *index)
{
	if (name == NULL)
		return false;
	const char *at = name;
	if (*at == '/') {
		if (!take_place(&at))
			return false;
		take_word(&at, "device:");
	}
	char word[KIND_SIZE] = { 0 };
	int length = 0;
	for (; is_letter(*at) && length < KIND_SIZE - 1; at++, length++)
		word[length] = *at >= 'a' ? *at : (char) (*at - 'A' + 'a');
	int number = 0;
	if (length == 0 || (*at != '\0' && (*at++ != ':' || !take_number(&at, &number))))
		return false;
	if (*at != '\0')
		return false;
	memcpy(kind, word, sizeof word);
	*index = number;
	return true;
}

static bool copy_element(const char *at, const char *end, char out[NAME_SIZE])
{
	while (at < end && *at == ' ')
		at++;
	while (end > at && end[-1] == ' ')
		end--;
	size_t length = (size_t) (end - at);
	if (length >= NAME_SIZE)
		return false;
	memcpy(out, at, length);
	out[length] = '\0';
	return true;
}

static choir_device *find_element(
		const char *names, const char *element, int position, choir_device *const before[])
{
	char shown[SHOWN_SIZE];
	if (element[0] == '\0')
		return chi_fail_null(CHOIR_INVALID, "devices \"%s\": name %d of the list is empty",
				chi_text_clean(names, shown, sizeof shown), position + 1);
	choir_device *d = choir_device_find(element);
	for (int i = 0; i < position && d != NULL; i++) {
		if (before[i] != d)
			continue;
		choir_fail(CHOIR_INVALID, "devices \"%s\": %s occurs twice, as names %d and %d",
				chi_text_clean(names, shown, sizeof shown), choir_device_name(d), i + 1,
				position + 1);
		return NULL;
	}
	return d;
}

static choir_status refuse_length(const char *names, int position)
{
	char shown[SHOWN_SIZE];
	return choir_fail(CHOIR_NOT_FOUND, "devices \"%s\": name %d is too long",
			chi_text_clean(names, shown, sizeof shown), position);
}

// One device, or all of a server.
static choir_status add_element(
		const char *names, const char *element, int capacity, choir_device *devices[], int *count)
{
	char shown[SHOWN_SIZE];
	chi_remote_names all;
	int n;
	CHOIR_TRY(chi_remote_expand(element, all, &n));
	for (int i = 0; i < (n > 0 ? n : 1); i++) {
		if (*count == capacity)
			return choir_fail(CHOIR_INVALID, "devices \"%s\": more than %d names",
					chi_text_clean(names, shown, sizeof shown), capacity);
		devices[*count] = find_element(names, n > 0 ? all[i] : element, *count, devices);
		if (devices[*count] == NULL)
			return choir_error_status();
		++*count;
	}
	return CHOIR_OK;
}

choir_status chi_device_list(const char *names, int capacity, choir_device *devices[], int *count)
{
	*count = 0;
	if (names == NULL || names[0] == '\0')
		return choir_fail(
				CHOIR_INVALID, "devices: the list is empty; names such as cpu:0,cpu:1 are needed");
	char element[NAME_SIZE];
	choir_status status = CHOIR_OK;
	for (const char *at = names; status == CHOIR_OK;) {
		const char *end = at + strcspn(at, ",");
		status = copy_element(at, end, element)
				? add_element(names, element, capacity, devices, count)
				: refuse_length(names, *count + 1);
		if (*end == '\0')
			break;
		at = end + 1;
	}
	*count = status == CHOIR_OK ? *count : 0;
	return status;
}
