// Libraries that are opened while the program runs, by the system's loader.
#include "base/module.h"

#include "choir/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static chi_module *open_module(const char *path, int symbols)
{
	void *handle = dlopen(path, RTLD_NOW | symbols);
	if (handle == NULL)
		choir_fail(CHOIR_NOT_FOUND, "%s", dlerror());
	return handle;
}

chi_module *chi_module_open(const char *path)
{
	// What MPIs open by themselves later expects to find them so.
	return open_module(path, RTLD_GLOBAL);
}

chi_module *chi_module_open_alone(const char *path)
{
	return open_module(path, RTLD_LOCAL);
}

void *chi_module_symbol(chi_module *m, const char *name)
{
	return dlsym(m, name);
}

bool chi_module_find(const char *name, void (**function)(void))
{
	void *found = dlsym(RTLD_DEFAULT, name);
	memcpy(function, &found, sizeof found); // C has no conversion between the two
	return found != NULL;
}

const char *chi_module_folder(char *out, size_t size)
{
	Dl_info info;
	int (*own)(void) = choir_version;
	void *address;
	memcpy(&address, &own, sizeof address);
	out[0] = '\0';
	const bool known = dladdr(address, &info) != 0 && info.dli_fname != NULL;
	// Linked into a program, it is known by the name that the program was started with.
	if (known && strchr(info.dli_fname, '/') != NULL) {
		snprintf(out, size, "%s", info.dli_fname);
	} else {
		const ssize_t length = readlink("/proc/self/exe", out, size - 1);
		out[length > 0 ? length : 0] = '\0';
	}
	char *slash = strrchr(out, '/');
	*(slash != NULL ? slash : out) = '\0';
	return out;
}

bool chi_module_exists(const char *path)
{
	return access(path, R_OK) == 0;
}
