// The caller's or the manager's thread writes a copy of the strategy's state; the next save waits
// for the latter. Workers make the same calls and get the chief's status; it alone uses the
// directory.
#include "choir/checkpoint.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/status.h"
#include "base/directory.h"
#include "base/log.h"
#include "base/options.h"
#include "base/thread.h"
#include "strategy/context.h"
#include "train/weights/weights.h"
#include "train/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { KEEP = 5 };

struct choir_checkpoint_manager {
	choir_strategy *strategy;
	choir_checkpoint_options o;
	char *directory, *best;
	chi_directory_lock *lock;
	chi_snapshot snapshot;
	chi_metadata metadata;
	uint64_t saves;
	char *path;
	chi_thread thread;
	bool writing;
	bool touching;
	chi_atomic32 written;
	chi_error failure;
};

static choir_status complete(const choir_checkpoint_options *given, choir_checkpoint_options *o)
{
	CHOIR_TRY(chi_options_take("checkpoint_manager: the options'", o, sizeof *o, given));
	if (o->max_to_keep < CHOIR_ALL || o->max_best_to_keep < 0)
		return choir_fail(CHOIR_INVALID,
				"checkpoint_manager: %s is %d; 0 (the default) or more is needed%s",
				o->max_to_keep < CHOIR_ALL ? "max_to_keep" : "max_best_to_keep",
				o->max_to_keep < CHOIR_ALL ? o->max_to_keep : o->max_best_to_keep,
				o->max_to_keep < CHOIR_ALL ? ", or CHOIR_ALL" : "");
	if (o->max_to_keep == 0)
		o->max_to_keep = KEEP;
	if (o->max_best_to_keep == 0)
		o->max_best_to_keep = 1;
	return CHOIR_OK;
}

static choir_status clean(const char *directory, chi_checkpoints *steps)
{
	for (size_t i = 0; i < steps->n; i++) {
		chi_checkpoint *half = &steps->step[i];
		if (!half->half)
			continue;
		chi_log(CHOIR_LOG_WARNING, "%s: was left half-written by a job that died; it is removed",
				half->path);
		CHOIR_TRY(chi_checkpoints_remove(directory, 1, &half));
	}
	return CHOIR_OK;
}

static bool writes(const choir_checkpoint_manager *m)
{
	return choir_strategy_is_chief(m->strategy);
}

static choir_status open_directory(choir_checkpoint_manager *m)
{
	chi_checkpoints steps = { 0 };
	if (!writes(m))
		return CHOIR_OK;
	CHOIR_TRY(chi_directory_make_synced(m->directory));
	chi_directory *checkpoint_directory = chi_directory_open(m->directory);
	m->lock = checkpoint_directory == NULL ? NULL : chi_directory_lock_new(checkpoint_directory);
	chi_directory_close(checkpoint_directory);
	if (m->lock == NULL)
		return choir_error_status();
	choir_status status = chi_checkpoints_find(m->directory, &steps);
	if (status == CHOIR_OK)
		status = clean(m->directory, &steps);
	for (size_t i = 0; i < steps.n; i++)
		if (steps.step[i].readable && steps.step[i].manifest.save > m->saves)
			m->saves = steps.step[i].manifest.save;
	chi_checkpoints_free(&steps);
	return status;
}

static choir_status fill(
		choir_checkpoint_manager *m, const char *directory, const choir_checkpoint_options *o)
{
	CHOIR_TRY(complete(o, &m->o));
	if (directory == NULL || directory[0] == '\0')
		return choir_fail(
				CHOIR_INVALID, "checkpoint_manager: the directory has no name; one is needed");
	m->directory = chi_strdup(directory);
	if (m->o.best_metric != NULL)
		m->best = chi_strdup(m->o.best_metric);
	if (m->directory == NULL || (m->o.best_metric != NULL && m->best == NULL))
		return CHOIR_NO_MEMORY;
	m->o.best_metric = m->best;
	return open_directory(m);
}

choir_checkpoint_manager *choir_checkpoint_manager_new(
		choir_strategy *s, const char *directory, const choir_checkpoint_options *o)
{
	if (s == NULL)
		s = choir_strategy_current();
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK ||
			chi_context_need_cross(s, "making a checkpoint manager") != CHOIR_OK)
		return NULL;
	choir_checkpoint_manager *m = chi_alloc(sizeof *m);
	choir_status status = CHOIR_NO_MEMORY;
	if (m != NULL) {
		m->strategy = s;
		status = fill(m, directory, o);
	}
	if (chi_strategy_agree(s, status, "opening a directory of checkpoints") == CHOIR_OK)
		return m;
	choir_checkpoint_manager_free(m);
	return NULL;
}

static void join(choir_checkpoint_manager *m)
{
	if (m->writing)
		chi_thread_join(&m->thread);
	m->writing = m->touching = false;
}

void choir_checkpoint_manager_free(choir_checkpoint_manager *m)
{
	if (m == NULL)
		return;
	join(m);
	if (m->failure.status != CHOIR_OK)
		chi_log(CHOIR_LOG_WARNING, "%s: a save failed: %s", m->directory, m->failure.text);
	chi_snapshot_free(&m->snapshot);
	chi_metadata_free(&m->metadata);
	chi_directory_lock_free(m->lock);
	chi_free(m->directory);
	chi_free(m->best);
	chi_free(m->path);
	chi_free(m);
}

static bool best_number(const char *value, double *number)
{
	return value != NULL && chi_parse_double(value, number);
}

// False: none, or NAN.
static bool find_best(const choir_checkpoint_manager *m, const chi_checkpoint *s, double *number)
{
	return best_number(chi_manifest_find(&s->manifest, m->best), number) && !isnan(*number);
}

static int better(
		const choir_checkpoint_manager *m, const chi_checkpoints *steps, size_t i, double mine)
{
	int n = 0;
	for (size_t k = 0; k < steps->n; k++) {
		double its;
		const chi_checkpoint *s = &steps->step[k];
		if (k == i || !s->readable || !find_best(m, s, &its))
			continue;
		const double by = m->o.best_is_lowest ? mine - its : its - mine;
		n += by > 0 || (by == 0 && k > i);
	}
	return n;
}

// Damaged checkpoints stay for inspection and do not count.
static bool is_to_go(const choir_checkpoint_manager *m, const chi_checkpoints *steps, size_t i)
{
	const chi_checkpoint *s = &steps->step[i];
	int newer = 0;
	double mine;
	if (!s->readable || m->o.max_to_keep == CHOIR_ALL)
		return false;
	for (size_t k = i + 1; k < steps->n; k++)
		newer += steps->step[k].readable;
	if (newer < m->o.max_to_keep)
		return false;
	return m->best == NULL || !find_best(m, s, &mine) ||
			better(m, steps, i, mine) >= m->o.max_best_to_keep;
}

static choir_status remove_old(const choir_checkpoint_manager *m)
{
	chi_checkpoints steps;
	choir_status status = chi_checkpoints_find(m->directory, &steps);
	chi_checkpoint **old = status == CHOIR_OK ? chi_alloc_array(steps.n + 1, sizeof *old) : NULL;
	size_t n = 0;
	if (old == NULL && status == CHOIR_OK)
		status = CHOIR_NO_MEMORY;
	for (size_t i = 0; status == CHOIR_OK && i < steps.n; i++)
		if (is_to_go(m, &steps, i))
			old[n++] = &steps.step[i];
	if (status == CHOIR_OK)
		status = chi_checkpoints_remove(m->directory, n, old);
	chi_free(old);
	chi_checkpoints_free(&steps);
	return status;
}

static choir_status write_step(choir_checkpoint_manager *m)
{
	const chi_checkpoint_plan plan = { .directory = m->directory,
		.lock = m->lock,
		.snapshot = &m->snapshot,
		.save = ++m->saves,
		.pairs = m->metadata.n,
		.pair = m->metadata.pair };
	char *path;
	CHOIR_TRY(chi_checkpoint_write(&plan, &path));
	chi_free(m->path);
	m->path = path;
	if (remove_old(m) != CHOIR_OK)
		chi_log(CHOIR_LOG_WARNING, "%s: older steps were not removed: %s", m->directory,
				choir_error());
	return CHOIR_OK;
}

static void write_behind(void *arg)
{
	choir_checkpoint_manager *m = arg;
	chi_thread_take_leftovers(); // a caller that waits sleeps
	if (write_step(m) != CHOIR_OK)
		chi_error_save(&m->failure);
	chi_atomic32_store(&m->written, 1);
}

static void touch_behind(void *arg)
{
	choir_checkpoint_manager *m = arg;
	chi_thread_stand_back(); // done before the first save
	chi_snapshot_touch(&m->snapshot);
	chi_atomic32_store(&m->written, 1);
}

static choir_status start(choir_checkpoint_manager *m, void (*fn)(void *arg))
{
	chi_atomic32_store(&m->written, 0);
	CHOIR_TRY(chi_thread_start(&m->thread, "choir-save", fn, m));
	m->writing = true;
	return CHOIR_OK;
}

// For the next save, which alone reports a failure.
static void make_ready(choir_checkpoint_manager *m)
{
	chi_error before;
	const size_t bytes = m->snapshot.memory.scratch.capacity;
	if (!m->o.asynchronous || !writes(m) || chi_strategy_check(m->strategy) != CHOIR_OK)
		return;
	chi_error_save(&before);
	if (chi_snapshot_reserve(&m->snapshot, m->strategy) == CHOIR_OK &&
			m->snapshot.memory.scratch.capacity > bytes)
		m->touching = start(m, touch_behind) == CHOIR_OK;
	chi_error_restore(&before);
}

static choir_status report(choir_checkpoint_manager *m)
{
	const choir_status status = m->failure.status;
	if (status != CHOIR_OK)
		chi_error_restore(&m->failure);
	m->failure = (chi_error){ .status = CHOIR_OK };
	return status;
}

static choir_status take_metadata(choir_checkpoint_manager *m, const char *metadata)
{
	chi_metadata_free(&m->metadata);
	CHOIR_TRY(chi_metadata_cut(metadata, &m->metadata));
	double number;
	if (m->best == NULL || best_number(chi_metadata_find(&m->metadata, m->best), &number))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"save: the metadata has no number for \"%.100s\", which decides about the best step",
			m->best);
}

static choir_status write_somehow(choir_checkpoint_manager *m)
{
	if (!writes(m))
		return CHOIR_OK;
	if (!m->o.asynchronous)
		return write_step(m);
	chi_error before = m->failure;
	m->failure = (chi_error){ .status = CHOIR_OK };
	CHOIR_TRY(start(m, write_behind));
	if (before.status != CHOIR_OK)
		chi_error_restore(&before);
	return before.status;
}

static choir_status tell_path(choir_checkpoint_manager *m)
{
	void *path = m->path;
	size_t bytes = path == NULL || !writes(m) ? 0 : strlen(path) + 1;
	if (!writes(m))
		path = NULL;
	CHOIR_TRY(chi_strategy_share(m->strategy, &path, &bytes, "a checkpoint's path"));
	if (writes(m))
		return CHOIR_OK;
	chi_free(m->path);
	m->path = bytes == 0 ? NULL : path;
	if (bytes == 0)
		chi_free(path);
	return CHOIR_OK;
}

choir_status choir_checkpoint_manager_save(choir_checkpoint_manager *m, const char *metadata)
{
	if (m == NULL)
		return choir_fail(CHOIR_INVALID, "save: the manager is NULL");
	CHOIR_TRY(chi_strategy_check(m->strategy));
	CHOIR_TRY(chi_context_need_cross(m->strategy, "save"));
	join(m);
	CHOIR_TRY(chi_strategy_agree(
			m->strategy, take_metadata(m, metadata), "the metadata of a checkpoint"));
	CHOIR_TRY(chi_snapshot_take(&m->snapshot, m->strategy));
	const choir_status status =
			chi_strategy_agree(m->strategy, write_somehow(m), "saving a checkpoint");
	return status != CHOIR_OK || m->o.asynchronous ? status : tell_path(m);
}

choir_status choir_checkpoint_manager_wait(choir_checkpoint_manager *m)
{
	if (m == NULL)
		return choir_fail(CHOIR_INVALID, "wait: the manager is NULL");
	CHOIR_TRY(chi_strategy_check(m->strategy));
	CHOIR_TRY(chi_context_need_cross(m->strategy, "wait"));
	join(m);
	CHOIR_TRY(chi_strategy_agree(m->strategy, report(m), "saving in the background"));
	return tell_path(m);
}

choir_status choir_checkpoint_manager_check(choir_checkpoint_manager *m)
{
	if (m == NULL)
		return choir_fail(CHOIR_INVALID, "check: the manager is NULL");
	CHOIR_TRY(chi_context_need_cross(m->strategy, "check"));
	if (m->writing && chi_atomic32_load(&m->written) == 0)
		return CHOIR_OK;
	join(m);
	make_ready(m);
	return report(m);
}

static choir_status none_whole(const choir_checkpoint_manager *m, size_t damaged)
{
	if (damaged == 0)
		return choir_fail(CHOIR_NOT_FOUND, "%s: there is no checkpoint yet", m->directory);
	chi_error last;
	chi_error_save(&last);
	return choir_fail(CHOIR_NOT_FOUND, "%s: all checkpoints are damaged, %zu in number; %.250s",
			m->directory, damaged, last.text);
}

static choir_status read_newest(
		const choir_checkpoint_manager *m, const chi_checkpoints *steps, chi_checkpoint_content *c)
{
	size_t damaged = 0;
	// Without a manifest a checkpoint's age is unknown.
	for (size_t i = 0; i < steps->n; i++) {
		if (steps->step[i].half || steps->step[i].readable)
			continue;
		damaged++;
		if (chi_checkpoint_content_read(&steps->step[i], c) != CHOIR_OK)
			chi_log(CHOIR_LOG_WARNING, "%s; it is skipped", choir_error());
		chi_checkpoint_content_free(c);
	}
	for (size_t i = steps->n; i-- > 0;) {
		if (!steps->step[i].readable)
			continue;
		const choir_status status = chi_checkpoint_content_read(&steps->step[i], c);
		if (!chi_checkpoint_is_damage(status))
			return status;
		chi_checkpoint_content_free(c);
		damaged++;
		chi_log(CHOIR_LOG_WARNING, "%s; it is skipped", choir_error());
	}
	return none_whole(m, damaged);
}

static choir_status no_such_step(
		const choir_checkpoint_manager *m, const chi_checkpoints *steps, int64_t step)
{
	chi_name_list list = { .what = "there are" };
	chi_text text = { 0 };
	for (size_t i = 0; i < steps->n; i++)
		if (!steps->step[i].half)
			chi_name_list_add(&list, steps->step[i].name, "");
	chi_name_list_print(&text, &list);
	choir_fail(CHOIR_NOT_FOUND, "%s: has no step %" PRId64 "; %s", m->directory, step,
			text.data == NULL ? "it has none" : text.data);
	chi_text_free(&text);
	chi_text_free(&list.text);
	return CHOIR_NOT_FOUND;
}

static choir_status read_one(const choir_checkpoint_manager *m, const chi_checkpoints *steps,
		int64_t step, chi_checkpoint_content *c)
{
	for (size_t i = steps->n; i-- > 0;)
		if (!steps->step[i].half && step >= 0 && steps->step[i].step == (uint64_t) step)
			return chi_checkpoint_content_read(&steps->step[i], c);
	return no_such_step(m, steps, step);
}

static choir_status read_here(choir_checkpoint_manager *m, int64_t step, chi_checkpoint_content *c)
{
	chi_checkpoints steps = { 0 };
	if (!writes(m))
		return CHOIR_OK;
	join(m);
	choir_status status = chi_checkpoints_find(m->directory, &steps);
	if (status == CHOIR_OK)
		status = step == CHOIR_NONE ? read_newest(m, &steps, c) : read_one(m, &steps, step, c);
	chi_checkpoints_free(&steps);
	return status;
}

static choir_status restore(choir_checkpoint_manager *m, int64_t step)
{
	chi_checkpoint_content c = { 0 };
	if (m == NULL)
		return choir_fail(CHOIR_INVALID, "restore: the manager is NULL");
	CHOIR_TRY(chi_strategy_check(m->strategy));
	CHOIR_TRY(chi_context_need_cross(m->strategy, "restore"));
	choir_status status = chi_checkpoint_content_apply(m->strategy, read_here(m, step, &c), &c);
	if (status == CHOIR_OK) {
		chi_free(m->path);
		m->path = c.path;
		c.path = NULL;
	}
	chi_checkpoint_content_free(&c);
	return status;
}

choir_status choir_checkpoint_manager_restore_latest(choir_checkpoint_manager *m)
{
	return restore(m, CHOIR_NONE);
}

choir_status choir_checkpoint_manager_restore(choir_checkpoint_manager *m, int64_t step)
{
	return restore(m, step < 0 ? INT64_MIN : step);
}

const char *choir_checkpoint_manager_latest(const choir_checkpoint_manager *m)
{
	return m == NULL || (m->writing && !m->touching) ? NULL : m->path;
}
