// Making strategies: options, devices, and how replicas are dealt.
#include "choir/op.h"

#include "base/alloc.h"
#include "base/processors.h"
#include "far/far.h"
#include "strategy/device_placement.h"
#include "strategy/world.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void refused(choir_strategy *s, choir_status status, const char *first, const char *second)
{
	if (s != NULL)
		fail_msg("a strategy, where a failure was expected");
	world_failed(choir_error_status(), status, first, second);
}

#define MIRRORED(...) \
	choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, __VA_ARGS__))
#define ONE_DEVICE(...) \
	choir_one_device_strategy_new(CHOIR_OPTIONS(choir_strategy_options, __VA_ARGS__))

// spec: A7, E11, E26, E27, M1, 2.19
TEST(options_that_cannot_be)
{
	refused(MIRRORED(.replicas = -1), CHOIR_INVALID, "replicas*-1", NULL);
	refused(MIRRORED(.replicas = 1 << 21), CHOIR_INVALID, "replicas", "are possible");
	refused(MIRRORED(.devices = "gpu:0"), CHOIR_NOT_FOUND, "\"gpu:0\"", "cpu:0");
	refused(MIRRORED(.devices = "cpu:0,,cpu:1"), CHOIR_INVALID, "cpu:0,,cpu:1", NULL);
	refused(MIRRORED(.devices = "cpu:0,CPU:0"), CHOIR_INVALID, "\"cpu:0,CPU:0\"", "1 and 2");
	refused(MIRRORED(.devices = "nonsense"), CHOIR_NOT_FOUND, "nonsense", NULL);
	refused(MIRRORED(.timeout = (double) NAN), CHOIR_INVALID, "timeout", NULL);
	refused(MIRRORED(.timeout = -2), CHOIR_INVALID, "-2*timeout", "0 or more");
	refused(MIRRORED(.cores_per_device = -1), CHOIR_INVALID, "-1*cores", "0 or more");
	refused(MIRRORED(.cross_device_ops = "star"), CHOIR_NOT_FOUND, "\"star\"", "direct");
	refused(MIRRORED(.devices = "far:0,cpu:0", .cross_device_ops = "direct"), CHOIR_UNSUPPORTED,
			"\"direct\"", NULL);
	refused(ONE_DEVICE(.replicas = 2), CHOIR_INVALID, "\"one_device\"*1 replica*2", NULL);
	refused(ONE_DEVICE(.devices = "cpu:0,cpu:1"), CHOIR_INVALID, "device", "cpu:0,cpu:1");
	choir_strategy_options o = { .size = 3 };
	refused(choir_mirrored_strategy_new(&o), CHOIR_INVALID, "strategy:*3", "CHOIR_OPTIONS");
	refused(choir_one_device_strategy_new(&o), CHOIR_INVALID, "strategy:*3", "CHOIR_OPTIONS");
	o.size = sizeof o + 8;
	refused(choir_mirrored_strategy_new(&o), CHOIR_INVALID, "options' size", NULL);
	refused(choir_strategy_copy_new(NULL), CHOIR_INVALID, "NULL", NULL);
	refused(choir_strategy_copy_new(choir_default_strategy()), CHOIR_STATE, "default", NULL);
}

// Nothing of them is kept or changed, so one struct can make any number of strategies.
// spec: B32
TEST(options_are_copied)
{
	char devices[] = "cpu:0,cpu:1", ops[] = "reduce_to_one_device";
	choir_strategy_options o = {
		.size = sizeof o, .replicas = 3, .devices = devices, .cross_device_ops = ops
	};
	const choir_strategy_options before = o;
	choir_strategy *s = choir_mirrored_strategy_new(&o);
	assert_non_null(s);
	assert_memory_equal(&o, &before, sizeof o);
	memset(devices, 'x', sizeof devices - 1);
	memset(ops, 'x', sizeof ops - 1);
	memset(&o, 0xff, sizeof o);
	choir_strategy *copy = choir_strategy_copy_new(s);
	world_works(s);
	assert_int_equal(choir_strategy_replicas(copy), 3);
	assert_int_equal(choir_strategy_worker_devices(copy), 2);
	world_works(copy);
	choir_strategy_free(copy);
	choir_strategy_free(s);
}

// A program compiled with fewer fields knows nothing of those behind its own.
TEST(shorter_options)
{
	struct {
		size_t size;
		const char *devices;
		int replicas;
	} *old = malloc(sizeof *old);
	*old = (__typeof__(*old)){ offsetof(choir_strategy_options, cores_per_device), "cpu:0", 3 };
	choir_strategy *s = choir_mirrored_strategy_new((const choir_strategy_options *) (void *) old);
	free(old);
	assert_non_null(s);
	assert_int_equal(choir_strategy_replicas(s), 3);
	world_works(s);
	choir_strategy_free(s);
	const size_t size = sizeof(size_t);
	s = choir_one_device_strategy_new((const choir_strategy_options *) (const void *) &size);
	assert_non_null(s);
	choir_strategy_free(s);
}

// spec: A6, B6, B7
TEST(replicas_are_dealt_in_blocks)
{
	char text[256];
	for (int replicas = 1; replicas <= 9; replicas++)
		for (int devices = 1; devices <= 9; devices++) {
			choir_strategy *s = world_new(replicas, world_cpus(devices, text), 0);
			const int used = replicas < devices ? replicas : devices;
			assert_int_equal(s->devices, used);
			assert_int_equal(s->first[0], 0);
			assert_int_equal(s->first[used], replicas);
			for (int i = 0; i < used; i++) {
				assert_int_equal(
						s->first[i + 1] - s->first[i], replicas / used + (i < replicas % used));
				for (int r = s->first[i]; r < s->first[i + 1]; r++) {
					assert_int_equal(chi_strategy_device_index(s, r), i);
					assert_ptr_equal(s->replica_device[r], choir_strategy_worker_device(s, i));
				}
			}
			choir_strategy_free(s);
		}
}

// spec: A6, A33, A34, A35, B3, B12, C12, C13, C18, C19, D31, D32
TEST(what_one_may_ask)
{
	choir_strategy *s = world_new(3, "cpu:1,cpu:0", 0);
	assert_int_equal(choir_strategy_replicas(s), 3);
	assert_int_equal(choir_strategy_worker_devices(s), 2);
	assert_string_equal(choir_device_name(choir_strategy_worker_device(s, 0)), "cpu:1");
	assert_int_equal(choir_strategy_worker_device_index(s, choir_device_find("cpu:0")), 1);
	assert_int_equal(
			choir_strategy_worker_device_index(s, choir_device_find("cpu:7")), CHOIR_NONE);
	assert_null(choir_strategy_worker_device(s, 2));
	assert_null(choir_strategy_worker_device(s, -1));
	assert_int_equal(choir_strategy_parameter_devices(s), 2);
	assert_ptr_equal(choir_strategy_parameter_device(s, 1), choir_device_find("cpu:0"));
	assert_false(choir_strategy_require_static_shapes(s));
	assert_true(choir_strategy_is_chief(s));
	assert_int_equal(choir_strategy_replicas(NULL), 0);
	assert_int_equal(choir_strategy_worker_devices(NULL), 0);
	assert_null(choir_strategy_worker_device(NULL, 0));
	assert_false(choir_strategy_is_chief(NULL));
	assert_null(choir_strategy_cluster(s));
	assert_null(choir_strategy_cluster(NULL));
	choir_strategy *copy = choir_strategy_copy_new(s);
	assert_int_equal(choir_strategy_replicas(copy), 3);
	assert_ptr_equal(choir_strategy_worker_device(copy, 0), choir_strategy_worker_device(s, 0));
	choir_strategy_free(s);
	world_works(copy);
	choir_strategy_free(copy);
	choir_strategy_free(NULL);
}

// spec: A7, B5, M1
TEST(defaults)
{
	const int cores = chi_processor_count();
	unsetenv("CHOIR_DEVICES");
	choir_strategy *s = choir_mirrored_strategy_new(NULL);
	assert_int_equal(choir_strategy_replicas(s), 1);
	choir_strategy_free(s);
	s = MIRRORED(.replicas = 64);
	assert_int_equal(choir_strategy_worker_devices(s), cores < 64 ? cores : 64);
	choir_strategy_free(s);
	s = MIRRORED(.devices = "", .replicas = 2); // an empty list is none
	assert_int_equal(choir_strategy_worker_devices(s), cores < 2 ? cores : 2);
	choir_strategy_free(s);
	s = MIRRORED(.devices = "cpu:0, cpu:3");
	assert_int_equal(choir_strategy_replicas(s), 2);
	choir_strategy_free(s);
	setenv("CHOIR_DEVICES", "cpu:0,cpu:1,cpu:2", 1);
	s = choir_mirrored_strategy_new(NULL);
	assert_int_equal(choir_strategy_replicas(s), 3);
	choir_strategy_free(s);
	s = MIRRORED(.devices = "cpu:0"); // said in the program
	assert_int_equal(choir_strategy_replicas(s), 1);
	choir_strategy_free(s);
	s = choir_one_device_strategy_new(NULL); // takes the first
	assert_int_equal(choir_strategy_replicas(s), 1);
	assert_int_equal(choir_strategy_worker_devices(s), 1);
	world_works(s);
	choir_strategy_free(s);
	setenv("CHOIR_DEVICES", "nowhere:0", 1);
	refused(choir_mirrored_strategy_new(NULL), CHOIR_NOT_FOUND, "nowhere:0", NULL);
	unsetenv("CHOIR_DEVICES");
}

// spec: B8
TEST(cross_device_ops_by_name)
{
	choir_strategy *s = MIRRORED(.replicas = 5, .devices = "cpu:0,cpu:1",
			.cross_device_ops = "reduce_to_one_device");
	assert_string_equal(choir_strategy_cross_device_ops(s), "reduce_to_one_device");
	world_works(s);
	choir_strategy *copy = choir_strategy_copy_new(s);
	assert_string_equal(choir_strategy_cross_device_ops(copy), "reduce_to_one_device");
	choir_strategy_free(s);
	choir_strategy_free(copy);
	s = MIRRORED(.devices = "cpu:0,cpu:1"); // by score
	assert_string_equal(choir_strategy_cross_device_ops(s), "direct");
	choir_strategy_free(s);
	assert_string_equal(choir_strategy_cross_device_ops(choir_default_strategy()), "direct");
	assert_string_equal(choir_strategy_cross_device_ops(NULL), "");
}

TEST(one_device)
{
	choir_strategy *s = ONE_DEVICE(.devices = "far:1");
	assert_string_equal(choir_device_name(choir_strategy_worker_device(s, 0)), "far:1");
	world_works(s);
	choir_strategy_free(s);
}

// spec: A10, A34, A35, D32
TEST(the_default_strategy)
{
	choir_strategy *s = choir_default_strategy();
	assert_non_null(s);
	assert_ptr_equal(choir_default_strategy(), s);
	choir_strategy_free(s); // does nothing
	assert_ptr_equal(choir_default_strategy(), s);
	assert_int_equal(choir_strategy_replicas(s), 1);
	// It has devices, unlike TensorFlow's, so that a program need not ask which strategy it has.
	assert_int_equal(choir_strategy_worker_devices(s), 1);
	assert_ptr_equal(choir_strategy_parameter_device(s, 0), choir_strategy_worker_device(s, 0));
	assert_false(choir_strategy_require_static_shapes(s));
	assert_null(choir_strategy_copy_new(s));
	world_failed(choir_error_status(), CHOIR_STATE, "the default strategy cannot be copied", NULL);
	world_works(s);
	choir_variable *v = choir_variable_new("plain", CHOIR_SHAPE(2), NULL);
	assert_true(choir_strategy_variable_created_in_scope(s, v));
	choir_replica *r = choir_replica_current();
	assert_non_null(choir_variable_read(v, r->frame));
	world_ok(choir_variable_assign_add(v, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1)));
	choir_frame_clear(r->frame);
}

TEST(no_timeout)
{
	choir_strategy *s = world_new(4, "cpu:0,cpu:1", CHOIR_NONE);
	assert_true(s->timeout < 0);
	world_works(s);
	choir_strategy_free(s);
}

// Two strategies on the same devices share nothing.
// spec: M21
TEST(strategies_side_by_side)
{
	choir_strategy *a = world_new(3, "cpu:0,cpu:1", 0), *b = world_new(5, "cpu:0,cpu:1", 0);
	for (int i = 0; i < 5; i++) {
		world_works(a);
		world_works(b);
	}
	choir_strategy_free(a);
	world_works(b);
	choir_strategy_free(b);
}

static int freed;

static void note_freed(void *self)
{
	freed = 10 * freed + *(int *) self;
}

TEST(members_are_freed_newest_first)
{
	choir_strategy *s = world_new(1, "cpu:0", 0);
	int one = 1, two = 2, three = 3;
	world_ok(chi_strategy_own(s, note_freed, &one));
	world_ok(chi_strategy_own(s, note_freed, &two));
	chi_alloc_fail(1, false);
	assert_int_equal(chi_strategy_own(s, note_freed, &three), CHOIR_NO_MEMORY);
	chi_alloc_fail(0, false);
	assert_int_equal(freed, 3); // at once, since nobody else will
	choir_strategy_free(s);
	assert_int_equal(freed, 321);
}

TEST_BEFORE(world_watch)

static int two(void)
{
	return 2;
}

// The last test: its kind of device stays the default.
TEST(accelerators_are_the_default_devices)
{
	choir_device_table table = far_table;
	table.kind = "swift";
	table.count = two;
	table.accelerator = true;
	unsetenv("CHOIR_DEVICES");
	world_ok(choir_register_device(&table));
	choir_strategy *s = choir_mirrored_strategy_new(NULL);
	assert_int_equal(choir_strategy_replicas(s), 2);
	assert_string_equal(choir_device_name(choir_strategy_worker_device(s, 1)), "swift:1");
	choir_strategy_free(s);
	s = MIRRORED(.replicas = 1);
	assert_int_equal(choir_strategy_worker_devices(s), 1);
	choir_strategy_free(s);
	assert_null(MIRRORED(.wire = CHOIR_BF16)); // the kind has no kernels
	assert_text_holds(choir_error(), "strategy: .wire is bf16*swift:0 cannot add bf16");
	s = MIRRORED(.devices = "cpu:0");
	assert_string_equal(choir_device_name(choir_strategy_worker_device(s, 0)), "cpu:0");
	choir_strategy_free(s);
}
