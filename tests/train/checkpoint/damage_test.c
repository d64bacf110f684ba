// Checkpoints of other programs, damaged, half written or of a newer Choir; and what happens when
// each call of the system and each allocation fails in turn.
#include "base/alloc.h"
#include "base/fs.h"
#include "base/status.h"
#include "base/hash.h"
#include "choir/log.h"
#include "train/files.h"
#include "train/saved.h"
#include "short.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(another_program)
{
	const char *directory = saved_directory();
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	saved_train(&p, 1);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_checkpoint_manager_free(m);
	problem_close(&p);

	p = saved_open(0, 2, CHOIR_MOMENTUM, NULL);
	saved_train(&p, 2);
	const uint64_t before = choir_strategy_hash(p.strategy);
	m = saved_manage(p.strategy, directory, NULL);
	assert_failed(
			choir_checkpoint_manager_restore_latest(m), CHOIR_INVALID, "\"momentum/loss_scale\"");
	assert_int_equal(choir_strategy_hash(p.strategy), before);
	choir_checkpoint_manager_free(m);
	problem_close(&p);

	p = saved_open(0, 2, CHOIR_ADAM, NULL);
	CHOIR_SCOPE (p.strategy)
		assert_non_null(choir_variable_new("extra", CHOIR_SHAPE(3), NULL));
	m = saved_manage(p.strategy, directory, NULL);
	assert_failed(choir_checkpoint_manager_restore_latest(m), CHOIR_INVALID, "\"extra\"");
	choir_checkpoint_manager_free(m);
	problem_close(&p);

	choir_strategy *s = mirrored("cpu:0", 1); // the weights, and nothing else
	CHOIR_SCOPE (s) {
		choir_dense_new("hidden", 12, 9, CHOIR_GELU);
		choir_dense_new("scores", 9, 4, CHOIR_LINEAR);
	}
	m = saved_manage(s, directory, NULL);
	assert_failed(choir_checkpoint_manager_restore_latest(m), CHOIR_INVALID, "\"accuracy/count\"");
	choir_checkpoint_manager_free(m);
	choir_strategy_free(s);
}

// Writes what the file of the newest step holds, changed.
static void change(const char *path, const char *what, const char *to)
{
	size_t size;
	char *data = files_read(path, &size);
	char *at = strstr(data, what);
	assert_non_null(at);
	memcpy(at, to, strlen(to));
	files_write(path, data, size);
	free(data);
}

static char logged[4096];

static void keep_log(choir_log_level level, const char *line, void *user)
{
	(void) level;
	(void) user;
	strncat(logged, line, sizeof logged - strlen(logged) - 2);
	strcat(logged, "\n");
}

TEST(damage)
{
	char path[600], directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	uint64_t weights[4];
	for (int i = 0; i < 4; i++) {
		saved_train(&p, 1);
		saved_must(choir_checkpoint_manager_save(m, NULL));
		weights[i] = choir_strategy_hash(p.strategy);
	}
	// Step 4: a byte of a tensor; step 3: its manifest; step 2: a file is gone.
	size_t size;
	snprintf(path, sizeof path, "%s/step-4/weights.safetensors", directory);
	char *data = files_read(path, &size);
	data[size - 1] ^= 1;
	files_write(path, data, size);
	free(data);
	assert_failed(choir_checkpoint_manager_restore(m, 4), CHOIR_CORRUPT,
			"step-4/weights.safetensors*\"scores/kernel\"");
	snprintf(path, sizeof path, "%s/step-3/manifest.json", directory);
	change(path, "\"replicas\":2", "\"replicas\":3");
	assert_failed(choir_checkpoint_manager_restore(m, 3), CHOIR_CORRUPT,
			"step-3/manifest.json:*damaged");
	snprintf(path, sizeof path, "%s/step-2/state.safetensors", directory);
	assert_int_equal(unlink(path), 0);
	assert_failed(choir_checkpoint_manager_restore(m, 2), CHOIR_NOT_FOUND, path);
	assert_int_equal(choir_strategy_hash(p.strategy), weights[3]);
	logged[0] = '\0';
	choir_logger_set(CHOIR_LOG_WARNING, keep_log, NULL);
	saved_must(choir_checkpoint_manager_restore_latest(m));
	choir_logger_set(0, NULL, NULL);
	assert_int_equal(choir_strategy_hash(p.strategy), weights[0]);
	assert_non_null(strstr(logged, "step-4/weights.safetensors: tensor \"scores/kernel\""));
	assert_non_null(strstr(logged, "step-3/manifest.json"));
	assert_non_null(strstr(logged, "step-2/state.safetensors"));
	snprintf(path, sizeof path, "%s/step-1/weights.safetensors", directory);
	assert_int_equal(truncate(path, 100), 0);
	assert_failed(choir_checkpoint_manager_restore_latest(m), CHOIR_NOT_FOUND, "damaged, 4");
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

// Any bit of any of the three files, at random: it is found, and what is named is the file, or in
// the data the tensor. CHOIR_FLIPS: how many (1500, or 500).
TEST(random_bits)
{
	static const char *const names[] = { "weights.safetensors", "state.safetensors",
		"manifest.json" };
	char path[600], directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	saved_train(&p, 1);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	const uint64_t before = choir_strategy_hash(p.strategy);
	const char *given = getenv("CHOIR_FLIPS");
	const int flips = given != NULL ? atoi(given) : 1500 / STRIDE;
	int named = 0;
	for (int n = 0; n < flips; n++) {
		const uint64_t dice = chi_hash_mix((uint64_t) n + 3);
		size_t size;
		snprintf(path, sizeof path, "%s/step-1/%s", directory, names[dice % 3]);
		char *data = files_read(path, &size);
		const size_t at = (size_t) (dice >> 8) % size;
		data[at] = (char) (data[at] ^ 1 << (dice >> 4) % 8);
		files_write(path, data, size);
		const choir_status status = choir_checkpoint_manager_restore(m, 1);
		if (status != CHOIR_CORRUPT || strstr(choir_error(), names[dice % 3]) == NULL)
			fail_msg("bit %d of byte %zu of %s: %s: %s", (int) ((dice >> 4) % 8), at,
					names[dice % 3], choir_status_name(status), choir_error());
		named += text_holds(choir_error(), ": tensor \"");
		data[at] = (char) (data[at] ^ 1 << (dice >> 4) % 8);
		files_write(path, data, size);
		free(data);
	}
	assert_int_equal(choir_strategy_hash(p.strategy), before);
	assert_true(named > flips / 5);
	saved_must(choir_checkpoint_manager_restore(m, 1));
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

TEST(half_written)
{
	char path[600], directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	assert_int_equal(mkdir(directory, 0777), 0);
	snprintf(path, sizeof path, "%s/.step-12.tmp", directory);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof path, "%s/.step-12.tmp/weights.safetensors", directory);
	files_write(path, "abc", 3);
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	assert_int_equal(choir_checkpoint_list_steps(l), 1);
	assert_failed(choir_checkpoint_list_check(l, 0), CHOIR_CORRUPT, "written");
	assert_failed(choir_checkpoint_list_check(l, 1), CHOIR_INVALID, "index 1*1 steps");
	choir_checkpoint_list_free(l);
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	logged[0] = '\0';
	choir_logger_set(CHOIR_LOG_WARNING, keep_log, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	choir_logger_set(0, NULL, NULL);
	assert_non_null(strstr(logged, ".step-12.tmp: was left half-written by a job that died"));
	assert_int_equal(access(path, F_OK), -1);
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

// What the checksum of a manifest would be that says it is of format 9 is worked out here by hand:
// the CRC-32C of its bytes before it.
TEST(a_newer_format)
{
	char path[600], directory[512];
	snprintf(directory, sizeof directory, "%s", saved_directory());
	assert_int_equal(mkdir(directory, 0777), 0);
	snprintf(path, sizeof path, "%s/step-1", directory);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof path, "%s/step-1/manifest.json", directory);
	static const char body[] = "{\"choir_checkpoint\":9,\"who\":[\"knows\"]";
	uint32_t crc = 0xffffffffu;
	for (const char *b = body; *b != '\0'; b++) {
		crc ^= (unsigned char) *b;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
	}
	char text[128];
	const int n = snprintf(text, sizeof text, "%s,\"crc32c\":\"%08x\"}\n", body, ~crc);
	files_write(path, text, (size_t) n);
	problem p = saved_open(0, 1, CHOIR_ADAM, NULL);
	assert_null(choir_checkpoint_manager_new(p.strategy, directory, NULL));
	assert_failed(choir_error_status(), CHOIR_UNSUPPORTED, "format 9");
	problem_close(&p);
}

// ---- Each call of the system, and each allocation, fails in turn.

TEST(each_call_fails_saving)
{
	static const int errors[] = { ENOSPC, EIO };
	for (int e = 0; e < 4; e++) {
		const char *directory = saved_directory();
		problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
		choir_checkpoint_manager *m = saved_manage(p.strategy, directory,
				CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = 2, .asynchronous = e >= 2));
		uint64_t last = 0, newest = 0;
		int failures = 0;
		bool failed = true;
		for (int n = 1; failed; n++) {
			saved_train(&p, 1);
			newest = choir_strategy_hash(p.strategy);
			chi_fs_fail(n, errors[e % 2]);
			choir_status status = choir_checkpoint_manager_save(m, NULL);
			if (status == CHOIR_OK)
				status = choir_checkpoint_manager_wait(m);
			failed = chi_fs_failed();
			chi_fs_fail(0, 0);
			failures += status != CHOIR_OK;
			if (status != CHOIR_OK) {
				assert_non_null(strstr(choir_error(), directory)); // the folder, or a file in it
				assert_failed(status, CHOIR_IO, strerror(errors[e % 2]));
			}
			// What a fresh look finds is the newest that was said to be saved, or newer.
			problem q = saved_open(0, 2, CHOIR_ADAM, NULL);
			choir_checkpoint_manager_free(m);
			m = saved_manage(q.strategy, directory, NULL);
			const choir_status restored = choir_checkpoint_manager_restore_latest(m);
			if (status == CHOIR_OK)
				last = newest;
			if (last == 0 && restored != CHOIR_OK)
				assert_failed(restored, CHOIR_NOT_FOUND, "checkpoint");
			else {
				saved_must(restored);
				const uint64_t have = choir_strategy_hash(q.strategy);
				assert_true(have == last || have == newest);
			}
			choir_checkpoint_manager_free(m);
			problem_close(&q);
			m = saved_manage(p.strategy, directory,
					CHOIR_OPTIONS(
							choir_checkpoint_options, .max_to_keep = 2, .asynchronous = e >= 2));
			// Also removes what could not be.
			saved_train(&p, 1);
			saved_must(choir_checkpoint_manager_save(m, NULL));
			saved_must(choir_checkpoint_manager_wait(m));
			last = choir_strategy_hash(p.strategy);
		}
		assert_true(failures > 15);
		choir_checkpoint_manager_free(m);
		problem_close(&p);
	}
}

// Behind the program's back: it is told once, without waiting, and goes on if it likes.
TEST(a_failure_is_told_once)
{
	const char *directory = saved_directory();
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(
			p.strategy, directory, CHOIR_OPTIONS(choir_checkpoint_options, .asynchronous = true));
	saved_train(&p, 1);
	saved_must(choir_checkpoint_manager_check(m)); // nothing was saved
	saved_must(choir_checkpoint_manager_save(m, NULL));
	saved_must(choir_checkpoint_manager_wait(m));
	saved_train(&p, 1);
	chi_fs_fail(9, ENOSPC);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	choir_status status = CHOIR_OK;
	for (int i = 0; i < 2000 && status == CHOIR_OK; i++) { // 20 s
		status = choir_checkpoint_manager_check(m);
		usleep(10000);
	}
	chi_fs_fail(0, 0);
	assert_failed(status, CHOIR_IO, "step 2");
	saved_must(choir_checkpoint_manager_check(m));
	saved_must(choir_checkpoint_manager_wait(m));
	assert_non_null(strstr(choir_checkpoint_manager_latest(m), "/step-1"));
	saved_train(&p, 1);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	saved_must(choir_checkpoint_manager_wait(m));
	assert_non_null(strstr(choir_checkpoint_manager_latest(m), "/step-3"));
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

// Nobody asked before the manager was freed.
TEST(a_failure_is_not_lost)
{
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, saved_directory(),
			CHOIR_OPTIONS(choir_checkpoint_options, .asynchronous = true));
	saved_train(&p, 1);
	chi_fs_fail(9, ENOSPC);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	logged[0] = '\0';
	choir_logger_set(CHOIR_LOG_WARNING, keep_log, NULL);
	choir_checkpoint_manager_free(m);
	choir_logger_set(0, NULL, NULL);
	chi_fs_fail(0, 0);
	assert_non_null(strstr(logged, "a save failed: "));
	assert_non_null(strstr(logged, "step 1 was not saved: "));
	problem_close(&p);
}

TEST(each_call_fails_restoring)
{
	const char *directory = saved_directory();
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	choir_checkpoint_manager *m = saved_manage(p.strategy, directory, NULL);
	saved_train(&p, 1);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	saved_train(&p, 1);
	saved_must(choir_checkpoint_manager_save(m, NULL));
	const uint64_t saved = choir_strategy_hash(p.strategy);
	saved_train(&p, 1);
	const uint64_t other = choir_strategy_hash(p.strategy);
	bool failed = true;
	int n = 1;
	for (; failed; n++) {
		chi_fs_fail(n, EIO);
		const choir_status status = choir_checkpoint_manager_restore_latest(m);
		failed = chi_fs_failed();
		chi_fs_fail(0, 0);
		if (failed) {
			assert_non_null(strstr(choir_error(), directory));
			assert_failed(status, CHOIR_IO, strerror(EIO));
			assert_int_equal(choir_strategy_hash(p.strategy), other);
		} else
			saved_must(status);
	}
	assert_true(n > 10);
	assert_int_equal(choir_strategy_hash(p.strategy), saved);
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

TEST(memory_runs_out)
{
	const char *directory = saved_directory();
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	saved_train(&p, 2);
	const uint64_t weights = choir_strategy_hash(p.strategy);
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		choir_checkpoint_manager *m = choir_checkpoint_manager_new(p.strategy, directory,
				CHOIR_OPTIONS(choir_checkpoint_options, .best_metric = "a", .max_to_keep = 1));
		choir_status status =
				m == NULL ? choir_error_status() : choir_checkpoint_manager_save(m, "a=1");
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			assert_failed(status, CHOIR_NO_MEMORY, "memory");
		choir_checkpoint_manager_free(m);
		m = saved_manage(
				p.strategy, directory, CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = 1));
		saved_must(choir_checkpoint_manager_save(m, "a=0")); // also removes what could not be
		choir_checkpoint_manager_free(m);
	}
	problem q = saved_open(1, 2, CHOIR_ADAM, NULL);
	const uint64_t fresh_weights = choir_strategy_hash(q.strategy);
	choir_checkpoint_manager *m = saved_manage(q.strategy, directory, NULL);
	failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		const choir_status status = choir_checkpoint_manager_restore_latest(m);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status == CHOIR_OK)
			continue;
		assert_failed(status, CHOIR_NO_MEMORY, "memory");
		const uint64_t now = choir_strategy_hash(q.strategy);
		assert_true(now == fresh_weights || now == weights || now == 0); // 0: undefined, and said
	}
	assert_int_equal(choir_strategy_hash(q.strategy), weights);
	choir_checkpoint_manager_free(m);
	problem_close(&q);
	problem_close(&p);
}

TEST_GROUP(NULL, files_teardown)
