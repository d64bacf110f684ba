// Groups are lines "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1). The smallest quota
// of a group and its parents counts. Containers may lack a path.
#include "base/processors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_SIZE = 8192 };

static bool read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size_t length = 0;
	while (length < size - 1) {
		ssize_t got = read(fd, text + length, size - 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t) got;
	}
	close(fd);
	text[length] = '\0';
	return length > 0;
}

static bool read_in(const char *directory, const char *name, char *text, size_t size)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
	return length > 0 && (size_t) length < sizeof(path) && read_small(path, text, size);
}

static int whole_processors(long long quota, long long period)
{
	if (quota <= 0 || period <= 0)
		return 0;
	long long count = quota / period + (quota % period != 0);
	return count < INT_MAX ? (int) count : 0;
}

static int directory_quota(const char *directory)
{
	char text[128], period[128];
	if (read_in(directory, "cpu.max", text, sizeof(text))) {
		char *end;
		long long quota = strtoll(text, &end, 10);
		return whole_processors(quota, strtoll(end, NULL, 10));
	}
	if (read_in(directory, "cpu.cfs_quota_us", text, sizeof(text)) &&
			read_in(directory, "cpu.cfs_period_us", period, sizeof(period)))
		return whole_processors(strtoll(text, NULL, 10), strtoll(period, NULL, 10));
	return 0;
}

static int smaller_limit(int a, int b)
{
	if (a == 0 || b == 0)
		return a + b;
	return a < b ? a : b;
}

static int path_quota(const char *mount, const char *path)
{
	char directory[PATH_MAX];
	int length = snprintf(directory, sizeof(directory), "%s%s", mount, path);
	if (length < 0 || (size_t) length >= sizeof(directory))
		return 0;
	int quota = 0;
	size_t root = strlen(mount);
	while (strlen(directory) > root) {
		quota = smaller_limit(quota, directory_quota(directory));
		*strrchr(directory, '/') = '\0';
	}
	return smaller_limit(quota, directory_quota(mount));
}

static int hierarchy_quota(const char *mount, const char *name, const char *path)
{
	char directory[PATH_MAX];
	int length = snprintf(directory, sizeof(directory), "%s%s%s", mount, *name ? "/" : "", name);
	if (length < 0 || (size_t) length >= sizeof(directory))
		return 0;
	return path_quota(directory, path);
}

static bool lists_processors(const char *controllers)
{
	for (const char *c = controllers; c; c = strchr(c, ',')) {
		c += *c == ',';
		size_t length = strcspn(c, ",");
		if (length == 3 && memcmp(c, "cpu", 3) == 0)
			return true;
	}
	return false;
}

static int line_quota(char *line, const char *mount)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path || path[1] != '/')
		return 0;
	controllers++;
	*path++ = '\0';
	if (*controllers == '\0')
		return smaller_limit(
				hierarchy_quota(mount, "", path), hierarchy_quota(mount, "unified", path));
	if (!lists_processors(controllers))
		return 0;
	int quota = hierarchy_quota(mount, controllers, path);
	return quota ? quota : hierarchy_quota(mount, "cpu", path);
}

int chi_processor_quota(const char *groups_path, const char *mount)
{
	char text[TEXT_SIZE];
	if (!read_small(groups_path, text, sizeof(text)))
		return 0;
	int quota = 0;
	char *rest = NULL;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		quota = smaller_limit(quota, line_quota(line, mount));
	return quota;
}

static struct {
	cpu_set_t mask;
	int count;
	int quota;
	bool narrowed;
} processors;
static pthread_once_t processors_once = PTHREAD_ONCE_INIT;

static void find_processors(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	if (online < 1)
		online = 1;
	if (sched_getaffinity(0, sizeof(processors.mask), &processors.mask) != 0) {
		// More processors than a mask has bits.
		CPU_ZERO(&processors.mask);
		for (long i = 0; i < online && i < CPU_SETSIZE; i++)
			CPU_SET((size_t) i, &processors.mask);
	}
	processors.count = CPU_COUNT(&processors.mask);
	processors.narrowed = processors.count < online && processors.count < CPU_SETSIZE;
	processors.quota = chi_processor_quota("/proc/self/cgroup", "/sys/fs/cgroup");
}

int chi_processor_count(void)
{
	pthread_once(&processors_once, find_processors);
	if (processors.quota > 0 && processors.quota < processors.count)
		return processors.quota;
	return processors.count > 0 ? processors.count : 1;
}

bool chi_processor_mask_is_narrowed(void)
{
	pthread_once(&processors_once, find_processors);
	return processors.narrowed;
}

void chi_processor_set_read(chi_processor_set *out)
{
	pthread_once(&processors_once, find_processors);
	static_assert(sizeof *out <= sizeof processors.mask, "a part of the mask");
	memcpy(out, &processors.mask, sizeof *out);
}

bool chi_processor_sets_overlap(const chi_processor_set *a, const chi_processor_set *b)
{
	uint64_t common = 0;
	for (int i = 0; i < CHI_PROCESSOR_WORDS; i++)
		common |= a->word[i] & b->word[i];
	return common != 0;
}

static bool in_range(int place, int first, int count, int total)
{
	int distance = (place - first % total) % total;
	return (distance < 0 ? distance + total : distance) < count;
}

bool chi_thread_pin(int first, int count)
{
	pthread_once(&processors_once, find_processors);
	if (first < 0 || count < 1 || processors.count < 1)
		return false;
	cpu_set_t set;
	CPU_ZERO(&set);
	int place = 0;
	for (size_t i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &processors.mask))
			continue;
		if (in_range(place, first, count, processors.count))
			CPU_SET(i, &set);
		place++;
	}
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}
