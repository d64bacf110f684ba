// Shared libraries, by the system's loader.
#include "base/dynamic_library.h"

#include "base/file.h"
#include "choir/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { PATH = 4096 };

#ifndef CHI_LIBRARY_DIRECTORY
#define CHI_LIBRARY_DIRECTORY "../lib"
#endif

static chi_dynamic_library *open_library(const char *path, int symbols)
{
	void *handle = dlopen(path, RTLD_NOW | symbols);
	if (handle == NULL)
		choir_fail(CHOIR_NOT_FOUND, "%s", dlerror());
	return handle;
}

chi_dynamic_library *chi_dynamic_library_open(const char *path)
{
	// MPI's plugins look for global symbols.
	return open_library(path, RTLD_GLOBAL);
}

chi_dynamic_library *chi_dynamic_library_open_alone(const char *path)
{
	return open_library(path, RTLD_LOCAL);
}

void *chi_dynamic_library_symbol(chi_dynamic_library *library, const char *name)
{
	return dlsym(library, name);
}

bool chi_dynamic_library_find(const char *name, void (**function)(void))
{
	void *found = dlsym(RTLD_DEFAULT, name);
	memcpy(function, &found, sizeof found);
	return found != NULL;
}

static bool find_own(Dl_info *info)
{
	int (*own)(void) = choir_version;
	void *address;
	memcpy(&address, &own, sizeof address);
	return dladdr(address, info) != 0;
}

// Its ELF headers lie at its load address.
static bool is_program(void)
{
	Dl_info own, program;
	const unsigned long headers = getauxval(AT_PHDR);
	void *address = NULL;
	memcpy(&address, &headers, sizeof address);
	return !find_own(&own) || dladdr(address, &program) == 0 || own.dli_fbase == program.dli_fbase;
}

// "": unknown.
static const char *own_file(char *out, size_t size)
{
	Dl_info info;
	out[0] = '\0';
	// dladdr gives the name that the program was started with.
	if (is_program()) {
		const ssize_t length = readlink("/proc/self/exe", out, size - 1);
		out[length > 0 ? length : 0] = '\0';
	} else if (find_own(&info) && info.dli_fname != NULL) {
		snprintf(out, size, "%s", info.dli_fname);
	}
	return out;
}

const char *chi_dynamic_library_directory(char *out, size_t size)
{
	own_file(out, size);
	char *slash = strrchr(out, '/');
	*(slash != NULL ? slash : out) = '\0';
	return out;
}

bool chi_dynamic_library_exists(const char *path)
{
	return access(path, R_OK) == 0;
}

void chi_dynamic_library_fingerprint(char *out, size_t size)
{
	char path[PATH];
	if (is_program())
		snprintf(out, size, "in the program");
	else
		chi_file_fingerprint(own_file(path, sizeof path), out, size);
}

chi_dynamic_library *chi_dynamic_library_open_own(const char *name, bool alone)
{
	char directory[PATH], path[PATH + 128];
	chi_dynamic_library_directory(directory, sizeof directory);
	static const char *const places[] = { "", "/" CHI_LIBRARY_DIRECTORY };
	for (int i = 0; i < 2 && directory[0] != '\0'; i++) {
		snprintf(path, sizeof path, "%s%s/libchoir-%.60s.so", directory, places[i], name);
		if (chi_dynamic_library_exists(path))
			return open_library(path, alone ? RTLD_LOCAL : RTLD_GLOBAL);
	}
	snprintf(path, sizeof path, "libchoir-%.60s.so", name);
	return open_library(path, alone ? RTLD_LOCAL : RTLD_GLOBAL);
}
