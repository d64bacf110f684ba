// Directories of checkpoints that came from a stranger: what is a link in them is not followed,
// emptied or removed through, and no file is taken for the lock that is not one.
#include "choir/log.h"
#include "train/files.h"
#include "train/saved.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char secret[] = "a line that is nobody's business";
static char directory[512], elsewhere[600], file[700]; // elsewhere/file is to stay as it is

static const char *in_directory(const char *name)
{
	static char path[700];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return path;
}

// A new directory with nothing in it, and a folder beside it.
static void make_both(void)
{
	snprintf(directory, sizeof directory, "%s", saved_directory());
	snprintf(elsewhere, sizeof elsewhere, "%s-elsewhere", directory);
	snprintf(file, sizeof file, "%s/file", elsewhere);
	assert_int_equal(mkdir(directory, 0777) | mkdir(elsewhere, 0777), 0);
	files_write(file, secret, sizeof secret);
}

static void assert_untouched(void)
{
	size_t size;
	char *text = files_read(file, &size);
	assert_int_equal(size, sizeof secret);
	assert_string_equal(text, secret);
	free(text);
}

static void must_link(const char *target, const char *name)
{
	assert_int_equal(symlink(target, in_directory(name)), 0);
}

// The manager cannot be made, of what name is; nothing has happened.
static void must_refuse(const problem *p, const char *name, const char *what)
{
	struct stat before, after;
	char text[800];
	snprintf(text, sizeof text, "%s: is %s", in_directory(name), what);
	assert_int_equal(lstat(in_directory(name), &before), 0);
	assert_null(choir_checkpoint_manager_new(p->strategy, directory, NULL));
	assert_failed(choir_error_status(), CHOIR_CORRUPT, text);
	assert_int_equal(lstat(in_directory(name), &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_size, before.st_size);
	assert_untouched();
	files_remove_directory(in_directory(name));
}

TEST(the_lock_is_its_own)
{
	problem p = saved_open(0, 2, CHOIR_SGD, NULL);
	make_both();
	must_link(file, ".lock");
	must_refuse(&p, ".lock", "a link");
	must_link("nowhere", ".lock");
	must_refuse(&p, ".lock", "a link");
	assert_int_equal(link(file, in_directory(".lock")), 0);
	must_refuse(&p, ".lock", "a file of 33 bytes");
	files_write(in_directory(".lock"), "process 1 on a\nand more", 23);
	must_refuse(&p, ".lock", "a file of 23 bytes");
	assert_int_equal(mkfifo(in_directory(".lock"), 0666), 0);
	must_refuse(&p, ".lock", "not a file");
	files_write(in_directory(".lock"), "process 99999 on elsewhere\n", 27);
	choir_checkpoint_manager_free(saved_manage(p.strategy, directory, NULL));
	files_write(in_directory(".lock"), "", 0);
	choir_checkpoint_manager_free(saved_manage(p.strategy, directory, NULL));
	problem_close(&p);
}

TEST(what_is_left_is_no_link)
{
	static const char *const names[] = { ".step-1.tmp", ".step-3.old", ".step-2.7.old" };
	problem p = saved_open(0, 2, CHOIR_SGD, NULL);
	make_both();
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		must_link(elsewhere, names[i]);
		must_refuse(&p, names[i], "a link");
	}
	files_write(in_directory(".step-1.tmp"), "x", 1);
	must_refuse(&p, ".step-1.tmp", "not a directory");
	// Of links in a folder that is to go only the links go.
	assert_int_equal(mkdir(in_directory(".step-1.tmp"), 0777), 0);
	must_link(file, ".step-1.tmp/file");
	must_link(elsewhere, ".step-1.tmp/directory");
	choir_checkpoint_manager_free(saved_manage(p.strategy, directory, NULL));
	assert_int_equal(access(in_directory(".step-1.tmp"), F_OK), -1);
	assert_untouched();
	problem_close(&p);
}

static char logged[2000];

static void keep_log(choir_log_level level, const char *text, void *user)
{
	(void) level;
	(void) user;
	snprintf(logged, sizeof logged, "%s", text);
}

TEST(links_that_come_later)
{
	problem p = saved_open(0, 2, CHOIR_SGD, NULL);
	make_both();
	choir_checkpoint_manager *m = saved_manage(
			p.strategy, directory, CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = 1));
	saved_train(&p, 1);
	must_link(elsewhere, ".step-1.tmp");
	assert_failed(choir_checkpoint_manager_save(m, NULL), CHOIR_CORRUPT, "is a link");
	assert_untouched();
	unlink(in_directory(".step-1.tmp"));
	must_link("nowhere", "step-1"); // the name is taken
	saved_must(choir_checkpoint_manager_save(m, NULL));
	assert_non_null(strstr(choir_checkpoint_manager_latest(m), "/step-1.2"));
	must_link(elsewhere, ".step-1.2.old");
	saved_train(&p, 1);
	choir_logger_set(CHOIR_LOG_WARNING, keep_log, NULL);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_logger_set(0, NULL, NULL);
	assert_non_null(strstr(logged, "older steps were not removed: "));
	assert_non_null(strstr(logged, "/.step-1.2.old: is a link"));
	assert_untouched();
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

// One whole step in the directory, and the hash of its weights.
static uint64_t save_one(problem *p)
{
	saved_train(p, 1);
	choir_checkpoint_manager *m = saved_manage(p->strategy, directory, NULL);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_checkpoint_manager_free(m);
	return choir_strategy_hash(p->strategy);
}

static void must_be_corrupt(const char *what)
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	assert_non_null(l);
	assert_int_equal(choir_checkpoint_list_steps(l), 1);
	assert_failed(choir_checkpoint_list_check(l, 0), CHOIR_CORRUPT, what);
	choir_checkpoint_list_free(l);
}

TEST(a_step_is_no_link)
{
	char moved[650], inside[700];
	problem p = saved_open(0, 2, CHOIR_SGD, NULL);
	make_both();
	save_one(&p);
	snprintf(moved, sizeof moved, "%s/step-1", elsewhere);
	snprintf(inside, sizeof inside, "%s/manifest.json", moved);
	assert_int_equal(rename(in_directory("step-1"), moved), 0);
	must_link(moved, "step-1");
	must_be_corrupt("step-1: is a link; a directory is needed");
	assert_failed(choir_strategy_restore_checkpoint(p.strategy, in_directory("step-1")),
			CHOIR_CORRUPT, "step-1:*directory");
	choir_checkpoint_manager *m = saved_manage(
			p.strategy, directory, CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = 1));
	assert_failed(choir_checkpoint_manager_restore_latest(m), CHOIR_NOT_FOUND, "is a link");
	for (int i = 0; i < 3; i++) {
		saved_train(&p, 1);
		saved_must(choir_checkpoint_manager_save(m, NULL));
	}
	choir_checkpoint_manager_free(m);
	assert_int_equal(access(inside, F_OK), 0); // of what it leads to nothing was removed
	problem_close(&p);
}

TEST(a_file_is_no_link)
{
	static const char *const names[] = { "manifest.json", "weights.safetensors",
		"state.safetensors" };
	problem p = saved_open(0, 2, CHOIR_SGD, NULL);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char name[64], moved[700], text[100];
		make_both();
		save_one(&p);
		snprintf(name, sizeof name, "step-%d/%s", (int) i + 1, names[i]);
		snprintf(moved, sizeof moved, "%s/%s", elsewhere, names[i]);
		snprintf(text, sizeof text, "%s: is a link; a file is needed", name);
		assert_int_equal(rename(in_directory(name), moved), 0);
		must_link(moved, name);
		must_be_corrupt(text);
	}
	problem_close(&p);
}

// Another job may have the directory then.
TEST(the_lock_is_gone)
{
	problem p = saved_open(0, 2, CHOIR_SGD, NULL), q = saved_open(0, 2, CHOIR_SGD, NULL);
	make_both();
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL), *other;
	saved_train(&p, 1);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	assert_int_equal(unlink(in_directory(".lock")), 0);
	saved_train(&p, 1);
	assert_failed(choir_checkpoint_manager_save(m, NULL), CHOIR_STATE, "/.lock:*replaced");
	other = saved_manage(q.strategy, directory, NULL);
	saved_must(choir_checkpoint_manager_restore_latest(other));
	assert_failed(choir_checkpoint_manager_save(m, NULL), CHOIR_STATE, "/.lock:*removed");
	saved_must(choir_checkpoint_manager_save(other, NULL));
	assert_int_equal(access(in_directory("step-2"), F_OK), -1);
	assert_int_equal(access(in_directory("step-1.2"), F_OK), 0);
	choir_checkpoint_manager_free(m);
	choir_checkpoint_manager_free(other);
	problem_close(&p);
	problem_close(&q);
}

TEST_GROUP(NULL, files_teardown)
