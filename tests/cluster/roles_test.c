// Roles: TF_CONFIG and its kin, every rule of tasks, and every error.
#include "base/alloc.h"
#include "base/options.h"
#include "base/registry.h"
#include "choir/cluster.h"
#include "cluster/launcher.h"
#include "cluster/roles.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static const char *const variables[] = { "TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK",
	"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK",
	"SLURM_PROCID", "SLURM_STEP_NUM_TASKS" };

static int clean(void **state)
{
	(void) state;
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
		unsetenv(variables[i]);
	return 0;
}

static const choir_cluster_options none = { .size = sizeof none };

static void assert_says(const char *words)
{
	if (!text_holds(choir_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", choir_error(), words);
}

static chi_roles read(const char *config)
{
	chi_roles r;
	setenv("TF_CONFIG", config, 1);
	if (chi_roles_find(&r, &none) != CHOIR_OK)
		fail_msg("%s: %s", config, choir_error());
	return r;
}

#define CLUSTER \
	"{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"], \"ps\": [\"d:1\"]}"

// spec: D22
TEST_WITHIN(tf_config_makes_tasks, clean, NULL)
{
	chi_roles r = read(CLUSTER ", \"task\": {\"type\": \"chief\", \"index\": 0}}");
	assert_int_equal(r.worker, 0);
	assert_int_equal(r.workers, 3);
	r = read(CLUSTER
			", \"task\": {\"type\": \"worker\", \"index\": \"1\"}, \"rpc_layer\": [{}, 1]}");
	assert_int_equal(r.worker, 2);
	assert_int_equal(r.index, 1);
	assert_int_equal(r.workers, 3);
	r = read("{\"task\": {\"index\": 1, \"type\": \"worker\", \"trial\": \"x\"}, \"cluster\": "
			 "{\"worker\": {\"0\": \"a:1\", \"1\": \"b:1\"}}}");
	assert_int_equal(r.worker, 1);
	assert_int_equal(r.workers, 2);
	r = read(CLUSTER ", \"task\": {\"type\": \"evaluator\", \"index\": 0}}");
	assert_int_equal(r.workers, 1);
	assert_int_equal(r.worker, 0);
	assert_int_equal(r.task, CHI_TASK_EVALUATOR);
}

TEST_WITHIN(an_empty_tf_config_is_none, clean, NULL)
{
	static const char *const empty[] = { "", "{}", "{\"cluster\": {}}",
		"{\"cluster\": {}, \"task\": {}}", "{\"environment\": \"cloud\"}",
		"{\"task\": {\"type\": \"worker\", \"index\": 0}}",
		"{\"cluster\": {}, \"task\": {\"type\": \"chief\", \"index\": 0}}" };
	for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
		const chi_roles r = read(empty[i]);
		assert_null(r.source);
		assert_int_equal(r.workers, 1);
	}
}

TEST_WITHIN(wrong_tasks_are_refused, clean, NULL)
{
	static const struct {
		const char *config, *words;
	} wrong[] = {
		{ CLUSTER "}", "the task of this process" },
		{ CLUSTER ", \"task\": {\"type\": \"master\", \"index\": 0}}",
				"\"master\"*chief, worker" },
		{ CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": 2}}", "task worker 2*2" },
		{ "{\"task\": {\"type\": \"worker\", \"index\": 1}}", "worker 1*has no worker" },
		{ CLUSTER ", \"task\": {\"type\": \"evaluator\", \"index\": 1}}", "has no evaluator" },
		{ CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": -1}}", "index*number" },
		{ CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": \"-1\"}}", "index*0" },
		{ CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": 1.5}}", "index" },
		{ CLUSTER ", \"task\": {\"type\": \"worker\"}}", "needs a type and an index" },
		{ "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"ps\", \"index\": 0}}",
				"the cluster has no ps" },
		{ "{\"cluster\": {\"chief\": [\"a\", \"b\"]}, \"task\": {\"type\": \"chief\", \"index\": "
		  "0}}",
				"2 tasks of type chief*1" },
		{ "{\"cluster\": {\"evaluator\": [\"a\", \"b\"], \"worker\": [\"c\"]}, \"task\": "
		  "{\"type\": \"worker\", \"index\": 0}}",
				"2 tasks of type evaluator" },
		{ "{\"cluster\": {\"master\": [\"a\"]}}", "job \"master\"*chief, worker" },
		{ "{\"cluster\": {\"worker\": [\"a\"], \"worker\": []}}", "cluster.worker\"*twice" },
		{ "{\"cluster\": {}, \"cluster\": {}}", "\"cluster\", byte*twice" },
		{ "{\"cluster\": {\"worker\": [1]}}",
				"TF_CONFIG: \"cluster.worker\", byte 25:*address*text" },
		{ "{\"cluster\": {\"worker\": \"a\"}}", "cluster.worker\"*list of addresses" },
		{ "{\"cluster\": {\"worker\": [\"a\"]}, \"task\": {\"type\": 1}}",
				"\"task.type\", byte*a text" },
		{ "{\"cluster\": {\"worker\": [\"a\"]}, \"task\": {\"index\": []}}",
				"\"task.index\", byte*0 or more" },
		{ "{\"cluster\": [1]}", "\"cluster\", byte 13:*object" },
		{ "{\"cluster\": {\"worker\": []}}", "TF_CONFIG: the job \"worker\" has no addresses" },
		{ "{\"cluster\": {\"ps\": [], \"chief\": []}, \"task\": {\"type\": \"chief\", "
		  "\"index\": 0}}",
				"the job \"chief\" has no addresses" },
		{ "{\"cluster\"", "TF_CONFIG: byte 10:*colon" },
		{ "{\"cluster\": {\"worker\" [\"a\"]}}", "byte 22:*colon" },
		{ "{} 1", "TF_CONFIG: byte 3" },
		{ "[]", "object" },
		{ "x", "TF_CONFIG: byte 0" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		chi_roles r;
		setenv("TF_CONFIG", wrong[i].config, 1);
		if (chi_roles_find(&r, &none) != CHOIR_INVALID)
			fail_msg("%s was taken", wrong[i].config);
		assert_says(wrong[i].words);
	}
}

TEST_WITHIN(roles_by_hand, clean, NULL)
{
	setenv("TF_CONFIG", "not looked at", 1);
	choir_cluster_options o = { .size = sizeof o,
		.cluster_spec = "{\"worker\": [\"a\", \"b\"]}",
		.task_type = "worker",
		.task_index = 1 };
	chi_roles r;
	assert_int_equal(chi_roles_find(&r, &o), CHOIR_OK);
	assert_int_equal(r.worker, 1);
	assert_int_equal(r.workers, 2);
	o.task_type = NULL;
	assert_int_equal(chi_roles_find(&r, &o), CHOIR_INVALID);
	assert_says("cluster_spec:*task of this process");
	o.cluster_spec = "{\"worker\": [2]}";
	assert_int_equal(chi_roles_find(&r, &o), CHOIR_INVALID);
	assert_says("cluster_spec: \"worker\", byte 13:*address");
	o.task_type = "boss";
	o.cluster_spec = "{\"worker\": [\"a\", \"b\"]}";
	assert_int_equal(chi_roles_find(&r, &o), CHOIR_INVALID);
	assert_says("evaluator");
	o = (choir_cluster_options){ .size = sizeof o, .task_type = "worker" };
	assert_int_equal(chi_roles_find(&r, &o), CHOIR_INVALID);
	assert_says("cluster_spec");
}

TEST_WITHIN(torchrun_numbers_workers, clean, NULL)
{
	chi_roles r;
	setenv("RANK", "1", 1);
	setenv("WORLD_SIZE", "4", 1);
	assert_int_equal(chi_roles_find(&r, &none), CHOIR_OK);
	assert_null(r.source); // RANK alone is anybody's variable
	setenv("LOCAL_RANK", "1", 1);
	assert_int_equal(chi_roles_find(&r, &none), CHOIR_OK);
	assert_int_equal(r.worker, 1);
	assert_int_equal(r.workers, 4);
	setenv("RANK", "4", 1);
	assert_int_equal(chi_roles_find(&r, &none), CHOIR_INVALID);
	assert_says("RANK*4*WORLD_SIZE");
	setenv("RANK", "four", 1);
	assert_int_equal(chi_roles_find(&r, &none), CHOIR_INVALID);
	assert_says("RANK:*\"four\"");
}

TEST_WITHIN(launchers_are_told_apart, clean, NULL)
{
	chi_launcher l;
	assert_int_equal(chi_launcher_find(&l), CHOIR_OK);
	assert_null(l.name);
	setenv("SLURM_PROCID", "1", 1);
	setenv("SLURM_STEP_NUM_TASKS", "2", 1);
	assert_int_equal(chi_launcher_find(&l), CHOIR_INVALID);
	assert_says("--mpi");
	setenv("PMIX_RANK", "1", 1);
	assert_int_equal(chi_launcher_find(&l), CHOIR_OK);
	assert_string_equal(l.mpi, "openmpi");
	assert_int_equal(l.workers, 2);
	setenv("PMI_RANK", "3", 1); // mpiexec inside of a Slurm job
	setenv("PMI_SIZE", "8", 1);
	assert_int_equal(chi_launcher_find(&l), CHOIR_OK);
	assert_string_equal(l.mpi, "mpich");
	assert_int_equal(l.worker, 3);
	setenv("OMPI_COMM_WORLD_RANK", "0", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
	assert_int_equal(chi_launcher_find(&l), CHOIR_OK);
	assert_string_equal(l.mpi, "openmpi");
	setenv("OMPI_COMM_WORLD_SIZE", "", 1);
	assert_int_equal(chi_launcher_find(&l), CHOIR_OK);
	assert_string_equal(l.mpi, "mpich");
}

TEST_WITHIN(a_program_without_a_launcher_is_alone, clean, NULL)
{
	choir_cluster *c = choir_cluster_new(NULL);
	assert_non_null(c);
	assert_int_equal(choir_cluster_workers(c), 1);
	assert_true(choir_cluster_is_chief(c));
	assert_string_equal(choir_cluster_task_type(c), "worker");
	assert_int_equal(choir_cluster_barrier(c), CHOIR_OK);
	choir_cluster_free(c);
	setenv("TF_CONFIG", CLUSTER ", \"task\": {\"type\": \"evaluator\", \"index\": 0}}", 1);
	c = choir_cluster_new(NULL);
	assert_non_null(c);
	assert_string_equal(choir_cluster_task_type(c), "evaluator");
	assert_true(choir_cluster_is_chief(c));
	choir_cluster_free(c);
}

static void refused(const choir_cluster_options *o, choir_status status, const char *words)
{
	assert_null(choir_cluster_new(o));
	assert_int_equal(choir_error_status(), status);
	assert_says(words);
}

TEST_WITHIN(what_contradicts_is_refused, clean, NULL)
{
	setenv("TF_CONFIG", CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": 0}}", 1);
	refused(NULL, CHOIR_INVALID, "TF_CONFIG*3 workers");
	setenv("TF_CONFIG", CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": 0}}", 1);
	refused(NULL, CHOIR_UNSUPPORTED, "process");
	clean(NULL);
	refused(CHOIR_OPTIONS(choir_cluster_options, .transport = "pigeons"), CHOIR_NOT_FOUND,
			"transport \"pigeons\":*alone");
	refused(CHOIR_OPTIONS(choir_cluster_options, .timeout = -2), CHOIR_INVALID, "-2*timeout");
	refused(CHOIR_OPTIONS(choir_cluster_options, .transport = "mpi", .mpi = "lam"), CHOIR_INVALID,
			"openmpi");
	refused(CHOIR_OPTIONS(choir_cluster_options, .transport = "mpi", .mpi = "/no/such.so"),
			CHOIR_NOT_FOUND, "/no/such.so");
	refused(&(choir_cluster_options){ .size = 4 }, CHOIR_INVALID,
			"cluster:*options*4*CHOIR_OPTIONS");
	int handle = 0;
	assert_null(choir_cluster_from_mpi(NULL, sizeof handle, NULL));
	assert_says("NULL");
	assert_null(choir_cluster_from_mpi(&handle, sizeof handle,
			CHOIR_OPTIONS(choir_cluster_options, .task_type = "worker", .task_index = 0)));
	assert_says("transport");
}

TEST_WITHIN(the_nth_allocation_fails, clean, NULL)
{
	setenv("TF_CONFIG",
			"{\"cluster\": {\"worker\": [\"a\"]}, \"task\": "
			"{\"type\": \"worker\", \"index\": 0}}",
			1);
	choir_cluster *c = NULL;
	for (uint64_t n = 1; c == NULL; n++) {
		assert_true(n < 100);
		chi_alloc_fail(n, false);
		c = choir_cluster_new(CHOIR_OPTIONS(choir_cluster_options, .program = "test"));
		chi_alloc_fail(0, false);
		if (c == NULL)
			assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	}
	choir_cluster_free(c);
}

TEST_WITHIN(tables_are_registered, clean, NULL)
{
	choir_transport_table table = {
		.size = sizeof table, .version = CHOIR_TABLE_VERSION, .name = "bare"
	};
	assert_int_equal(choir_register_transport(&table), CHOIR_OK);
	assert_int_equal(choir_register_transport(&table), CHOIR_INVALID);
	assert_says("\"bare\":*already");
	table.name = "mpi";
	assert_int_equal(choir_register_transport(&table), CHOIR_INVALID);
	table.size--;
	assert_int_equal(choir_register_transport(&table), CHOIR_INVALID);
	assert_says("the table's size is");
	choir_cluster *c = choir_cluster_new(
			CHOIR_OPTIONS(choir_cluster_options, .transport = "bare")); // every slot missing
	assert_non_null(c);
	assert_string_equal(choir_cluster_transport(c), "bare: no description");
	assert_int_equal(choir_cluster_barrier(c), CHOIR_OK);
	choir_cluster_abort(c, NULL);
	assert_int_equal(choir_cluster_barrier(c), CHOIR_CANCELLED);
	assert_says("reason");
	choir_cluster_free(c);
}

TEST_WITHIN(tables_of_another_size, clean, NULL)
{
	struct {
		choir_transport_table table;
		void *more[2];
	} newer = { .table = {
						.size = sizeof newer, .version = CHOIR_TABLE_VERSION, .name = "newer" } };
	memset(newer.more, 0xff, sizeof newer.more);
	assert_int_equal(choir_register_transport(&newer.table), CHOIR_OK);
	choir_transport_table older = { .size = offsetof(choir_transport_table, send),
		.version = CHOIR_TABLE_VERSION,
		.name = "older" };
	memset((char *) &older + older.size, 0xff, sizeof older - older.size);
	assert_int_equal(choir_register_transport(&older), CHOIR_OK);
	static const char *const names[] = { "newer", "older" };
	for (int i = 0; i < 2; i++) {
		choir_cluster *c =
				choir_cluster_new(CHOIR_OPTIONS(choir_cluster_options, .transport = names[i]));
		assert_non_null(c);
		assert_int_equal(choir_cluster_barrier(c), CHOIR_OK);
		choir_cluster_free(c);
	}
	older.size = offsetof(choir_transport_table, name);
	assert_int_equal(choir_register_transport(&older), CHOIR_INVALID);
	assert_says("transport:*size*16*24");
	// libchoir-mpi's table comes in the same way.
	choir_transport_table taken;
	newer.table.name = "mpi";
	assert_int_equal(
			chi_table_take("mpi", &taken, sizeof taken, sizeof(chi_table_head), &newer.table),
			CHOIR_OK);
	assert_int_equal(taken.size, sizeof taken);
}
