// Quotas of processor time, read from trees of files like those that the kernel shows; processors
// are counted and pinned to.
#include "base/processors.h"
#include "test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A tree in a folder of its own: "groups" is the list of groups, "fs" the mount.
static char home[] = "cgroup_test.XXXXXX";
static char root[256];

static int make_tree(void **state)
{
	(void) state;
	static char name[sizeof(home)];
	memcpy(name, home, sizeof(home));
	if (!getcwd(root, sizeof(root)) || !mkdtemp(name) || chdir(name) != 0)
		return -1;
	return mkdir("fs", 0777);
}

static int remove_tree(void **state)
{
	(void) state;
	char here[256], command[300];
	if (!getcwd(here, sizeof(here)) || chdir(root) != 0)
		return -1;
	snprintf(command, sizeof(command), "rm -r '%s'", here);
	return system(command);
}

static void put(const char *path, const char *text)
{
	char directory[128];
	for (const char *c = path; (c = strchr(c, '/')); c++) {
		snprintf(directory, sizeof(directory), "%.*s", (int) (c - path), path);
		mkdir(directory, 0777);
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int quota(void)
{
	return chi_processor_quota("groups", "fs");
}

TEST_WITHIN(test_version_2, make_tree, remove_tree)
{
	put("groups", "0::/a/b\n");
	assert_int_equal(quota(), 0);
	put("fs/a/b/cpu.max", "max 100000\n");
	assert_int_equal(quota(), 0);
	put("fs/a/b/cpu.max", "400000 100000\n");
	assert_int_equal(quota(), 4);
	put("fs/a/cpu.max", "250000 100000\n"); // above, and smaller: rounded up
	assert_int_equal(quota(), 3);
	put("fs/cpu.max", "1000 100000\n");
	assert_int_equal(quota(), 1);
	put("groups", "0::/a\n");
	put("fs/cpu.max", "900000 100000\n");
	assert_int_equal(quota(), 3);
}

TEST_WITHIN(test_version_1, make_tree, remove_tree)
{
	put("groups", "7:memory:/a\n4:cpu,cpuacct:/docker/x\n0::/\n");
	put("fs/memory/a/cpu.cfs_quota_us", "100000\n"); // not the processors' hierarchy
	put("fs/memory/a/cpu.cfs_period_us", "100000\n");
	put("fs/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"); // no limit
	put("fs/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota(), 0);
	put("fs/cpu,cpuacct/cpu.cfs_quota_us", "150000\n"); // /docker/x is not seen from within
	assert_int_equal(quota(), 2);
	put("fs/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "50000\n");
	put("fs/cpu,cpuacct/docker/x/cpu.cfs_period_us", "50000\n");
	assert_int_equal(quota(), 1);
	put("groups", "4:cpuset,cpu:/\n"); // mounted under a name of its own
	assert_int_equal(quota(), 0);
	put("fs/cpu/cpu.cfs_quota_us", "500000\n");
	put("fs/cpu/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota(), 5);
}

TEST_WITHIN(test_both_versions, make_tree, remove_tree)
{
	put("groups", "1:cpu:/\n0::/u\n");
	put("fs/unified/u/cpu.max", "300000 100000\n");
	assert_int_equal(quota(), 3);
	put("fs/cpu/cpu.cfs_quota_us", "200000\n");
	put("fs/cpu/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota(), 2);
}

TEST_WITHIN(test_nonsense, make_tree, remove_tree)
{
	static const char *const groups[] = { "", "\n\n", "nonsense", "1:cpu",
		"1:cpu:", "::", ":::::", "0::relative", "1:,,cpu,:/", "0::/../../x//y/\n" };
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		put("groups", groups[i]);
		assert_int_equal(quota(), 0);
	}
	static const char *const limits[] = { "", "100000", "100000 0", "-5 -5", "x y", "0 100000",
		"9999999999999999999999 1" };
	put("groups", "0::/\n");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		put("fs/cpu.max", limits[i]);
		assert_int_equal(quota(), 0);
	}
	assert_int_equal(chi_processor_quota("missing", "fs"), 0);
	char deep[5000] = "0::";
	memset(deep + 3, '/', sizeof(deep) - 4);
	put("groups", deep); // longer than a path may be
	assert_int_equal(quota(), 0);
}

static int allowed(void)
{
	cpu_set_t set;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return CPU_COUNT(&set);
}

TEST(test_count)
{
	int count = chi_processor_count(),
		quota = chi_processor_quota("/proc/self/cgroup", "/sys/fs/cgroup");
	assert_true(count >= 1 && count <= allowed());
	assert_true(quota >= 0);
	assert_int_equal(count, quota > 0 && quota < allowed() ? quota : allowed());
	assert_int_equal(chi_processor_mask_is_narrowed(), allowed() < sysconf(_SC_NPROCESSORS_ONLN));
}

TEST(test_pin)
{
	int all = allowed();
	cpu_set_t sets[2];
	for (int first = 0; first <= all; first++) {
		assert_true(chi_thread_pin(first, 1));
		assert_int_equal(allowed(), 1);
		if (first % all == 0)
			assert_int_equal(sched_getaffinity(0, sizeof(sets[0]), &sets[first / all]), 0);
	}
	assert_true(CPU_EQUAL(&sets[0], &sets[1])); // counted round
	assert_int_equal(chi_processor_count() >= 1 ? allowed() : 0, 1);
	assert_true(chi_thread_pin(1, all)); // from a pinned thread to all that the process has
	assert_int_equal(allowed(), all);
	assert_true(chi_thread_pin(0, all + 7));
	assert_int_equal(allowed(), all);
	assert_false(chi_thread_pin(-1, 1));
	assert_false(chi_thread_pin(0, 0));
	assert_true(chi_thread_pin(all - 1, 1));
	assert_true(chi_thread_pin(0, all)); // as it was
	assert_int_equal(allowed(), all);
}

TEST(test_sets)
{
	chi_processor_set own, other = { 0 };
	chi_processor_set_read(&own);
	assert_true(chi_processor_sets_overlap(&own, &own));
	assert_false(chi_processor_sets_overlap(&own, &other));
	for (int i = 0; i < CHI_PROCESSOR_WORDS; i++)
		other.word[i] = ~own.word[i];
	assert_false(chi_processor_sets_overlap(&own, &other));
}
