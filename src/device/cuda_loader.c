// libchoir links no CUDA. Without NVIDIA's driver, a single look at its files is the only cost.
#include "device/cuda_loader.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/dynamic_library.h"
#include "base/status.h"
#include "base/thread.h"
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, WHY = 400 };

#ifndef CHI_LIBRARY_DIRECTORY
#define CHI_LIBRARY_DIRECTORY "../lib" // relative to programs
#endif

// Ranked below the list of devices, to which the library adds its own.
static chi_mutex cuda_mutex = CHI_MUTEX_STATIC(CHI_RANK_CLUSTER, "libchoir-cuda");
static chi_atomic32 asked_for; // set last; then all are constant
static const choir_cuda_plugin *cuda;
static bool wanted; // named, or found beside a driver
static chi_atomic32 warned;
static char missing_why[WHY] = "no device of the kind gpu was asked for";

static bool has_driver(void)
{
	// The driver's; the last is WSL's.
	static const char *const files[] = { "/dev/nvidiactl", "/proc/driver/nvidia/version",
		"/dev/dxg" };
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (chi_dynamic_library_exists(files[i]))
			return true;
	return false;
}

static chi_dynamic_library *open_library(void)
{
	static const char *const places[] = { "", "/" CHI_LIBRARY_DIRECTORY };
	char directory[PATH], path[PATH + 64];
	chi_dynamic_library_directory(directory, sizeof directory);
	for (int i = 0; i < 2 && directory[0] != '\0'; i++) {
		snprintf(path, sizeof path, "%s%s/libchoir-cuda.so", directory, places[i]);
		if (chi_dynamic_library_exists(path))
			return chi_dynamic_library_open_alone(path);
	}
	return chi_dynamic_library_open_alone("libchoir-cuda.so");
}

static void *device_self(const choir_device *d)
{
	return strcmp(d->table->kind, "gpu") == 0 ? d->self : NULL;
}

static bool release_unused(const choir_device *d)
{
	bool (*release)(const choir_device *) =
			(bool (*)(const choir_device *))(uintptr_t) chi_atomic64_load(&d->release_unused);
	return release != NULL && release(d);
}

static choir_status open_plugin(chi_dynamic_library *m)
{
	static const choir_cuda_argument argument = { .size = sizeof argument,
		.fail = choir_fail,
		.error = choir_error,
		.log = chi_log,
		.device_self = device_self,
		.fork_generation = chi_fork_generation,
		.release_unused = release_unused };
	const choir_cuda_plugin *plugin = chi_dynamic_library_symbol(m, CHOIR_CUDA_PLUGIN_SYMBOL);
	if (plugin == NULL || plugin->version != CHOIR_CUDA_PLUGIN_VERSION)
		return choir_fail(CHOIR_INVALID, "the library is not a libchoir-cuda of version %d",
				CHOIR_CUDA_PLUGIN_VERSION);
	CHOIR_TRY(plugin->open(&argument));
	CHOIR_TRY(choir_register_device(plugin->device));
	cuda = plugin;
	return CHOIR_OK;
}

// CHOIR_CUDA is "off", or the path of a library, which is then opened on any machine.
static choir_status find(void)
{
	const char *asked = getenv("CHOIR_CUDA");
	chi_dynamic_library *m;
	if (asked != NULL && strcmp(asked, "off") == 0)
		return choir_fail(CHOIR_NOT_FOUND, "CHOIR_CUDA is \"off\"");
	wanted = asked != NULL && asked[0] != '\0';
	if (wanted && strchr(asked, '/') == NULL)
		return choir_fail(CHOIR_INVALID,
				"CHOIR_CUDA: \"%.60s\" is unknown; off, or the path of a libchoir-cuda needed",
				asked);
	if (wanted) {
		m = chi_dynamic_library_open_alone(asked);
	} else {
		if (!has_driver())
			return choir_fail(CHOIR_NOT_FOUND, "this machine has no NVIDIA driver");
		m = open_library();
		wanted = m != NULL;
	}
	return m == NULL ? choir_error_status() : open_plugin(m);
}

const choir_cuda_plugin *chi_cuda_open(void)
{
	if (chi_atomic32_load(&asked_for))
		return cuda;
	chi_mutex_lock(&cuda_mutex);
	if (!chi_atomic32_load(&asked_for)) {
		chi_error before;
		chi_error_save(&before);
		if (find() != CHOIR_OK)
			snprintf(missing_why, sizeof missing_why, "%s", choir_error());
		chi_error_restore(&before);
		chi_atomic32_store(&asked_for, 1);
	}
	chi_mutex_unlock(&cuda_mutex);
	return cuda;
}

const choir_cuda_plugin *chi_cuda_plugin(void)
{
	return chi_atomic32_load(&asked_for) ? cuda : NULL;
}

void chi_cuda_warn(void)
{
	if (chi_cuda_plugin() == NULL && wanted && chi_atomic32_exchange(&warned, 1) == 0)
		chi_log(CHOIR_LOG_WARNING, "gpu: %s; CPUs are used", missing_why);
}

const char *chi_cuda_missing(void)
{
	return missing_why;
}
