// Training with several processes. Only the chief prints and writes.
#include "compare_options.h"
#include "train/train.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_alone(const training *t)
{
	return t->cluster == NULL || choir_cluster_workers(t->cluster) == 1;
}

static choir_status check_options(const train_options *o)
{
	if (strcmp(o->strategy, "mirrored") != 0 && strcmp(o->strategy, "multi_worker_mirrored") != 0)
		return choir_fail(CHOIR_INVALID,
				"--strategy %s: several processes were started; needs one process, or mirrored",
				o->strategy);
	return CHOIR_OK;
}

choir_status train_open_cluster(training *t)
{
	const double seconds = t->given->timeout;
	t->cluster = choir_cluster_new(CHOIR_OPTIONS(choir_cluster_options,
			.timeout = seconds < 0 ? 0
					: seconds == 0 ? CHOIR_FOREVER
								   : seconds,
			.lowest_instruction_set = t->given->lowest_set ? CHOIR_ON : CHOIR_OFF));
	if (t->cluster == NULL)
		return choir_error_status();
	if (is_alone(t))
		return CHOIR_OK;
	CHOIR_TRY(options_check_equal(&train_command, t->cluster));
	CHOIR_TRY(check_options(t->given));
	if (!choir_cluster_is_chief(t->cluster) && freopen("/dev/null", "w", stdout) == NULL)
		return choir_fail(CHOIR_IO, "/dev/null: %s", strerror(errno));
	return CHOIR_OK;
}

void train_close_cluster(training *t, choir_status status)
{
	if (t->cluster != NULL && status != CHOIR_OK)
		choir_cluster_abort(t->cluster, choir_error());
	choir_cluster_free(t->cluster);
	t->cluster = NULL;
}

choir_status train_compare_files(const training *t)
{
	static data_name name;
	if (is_alone(t) || train_shards_files(t))
		return CHOIR_OK;
	CHOIR_TRY(data_name_read(&name, t->given->data, DATA_LEARN));
	if (name.kind == DATA_MNIST || name.kind == DATA_DIGITS)
		return CHOIR_OK;
	choir_files *files = data_name_files(&name);
	const choir_status status =
			files == NULL ? choir_error_status() : choir_cluster_compare_files(t->cluster, files);
	choir_files_free(files);
	return status;
}

bool train_is_chief(const training *t)
{
	return t->cluster == NULL || choir_cluster_is_chief(t->cluster);
}

bool train_is_one_of_many(const training *t)
{
	return !is_alone(t);
}

const char *train_strategy(const training *t)
{
	return is_alone(t) ? t->given->strategy : "multi_worker_mirrored";
}
