// A job's own key. It lives as long as the job, and no file has it.
#include "supervisor/job_key.h"

#include "base/entropy.h"
#include "base/descriptor_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

choir_status chi_job_key_make(chi_key *key)
{
	*key = (chi_key){ .size = CHI_JOB_KEY_BYTES };
	return chi_entropy(key->bytes, CHI_JOB_KEY_BYTES);
}

void chi_job_key_text(const chi_key *key, char out[CHI_JOB_KEY_TEXT])
{
	for (size_t i = 0; i < CHI_JOB_KEY_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", key->bytes[i]);
}

void chi_job_task_socket(const char *path, int worker, char *out, size_t size)
{
	const int at = snprintf(out, size, "%s" CHI_JOB_TASK_SOCKET, path);
	if (worker > 0 && (size_t) at < size) // coordinator/task.c
		snprintf(out + at, size - (size_t) at, ".ps%d", worker - 1);
}

static bool parse(const char *text, chi_key *key)
{
	*key = (chi_key){ .size = CHI_JOB_KEY_BYTES };
	for (size_t i = 0; i < CHI_JOB_KEY_BYTES; i++) {
		const char digits[] = { text[2 * i], text[2 * i] == '\0' ? '\0' : text[2 * i + 1], '\0' };
		char *end;
		key->bytes[i] = (unsigned char) strtoul(digits, &end, 16);
		if (strlen(digits) != 2 || *end != '\0' || strchr("+- ", digits[0]) != NULL)
			return false;
	}
	return text[CHI_JOB_KEY_TEXT - 1] == '\0' || text[CHI_JOB_KEY_TEXT - 1] == '\n';
}

choir_status chi_job_key_take(chi_key *key)
{
	char line[CHI_JOB_KEY_TEXT + 1] = "";
	const char *text = getenv(CHI_JOB_KEY);
	if (text == NULL) {
		size_t at = 0, got = 0;
		bool ended = false;
		while (at < CHI_JOB_KEY_TEXT && !ended &&
				chi_pipe_read(STDIN_FILENO, line + at, CHI_JOB_KEY_TEXT - at, &got, &ended) ==
						CHOIR_OK)
			at += got;
		text = line;
	}
	const bool right = strlen(text) >= CHI_JOB_KEY_TEXT - 1 && parse(text, key);
	explicit_bzero(line, sizeof line);
	return right ? CHOIR_OK
				 : choir_fail(CHOIR_INVALID,
						   "agent: neither %s nor standard input has the job's key", CHI_JOB_KEY);
}
