// libchoir links no MPI: each MPI has a libchoir-mpi-NAME.so. With another MPI than the
// launcher's, each process would be its own job; two MPIs in one process would call each other's
// functions.
#include "cluster/mpi_loader.h"

#include "base/clock.h"
#include "base/dynamic_library.h"
#include "base/options.h"
#include "base/registry.h"
#include "base/thread.h"
#include "choir/extend/mpi.h"
#include "cluster/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = { "openmpi", "mpich" };
enum { KNOWN = sizeof known / sizeof known[0] };

static const char *loaded(void)
{
	void (*found)(void);
	if (!chi_dynamic_library_find("MPI_Get_library_version", &found))
		return NULL;
	char text[8192] = "";
	int length = 0;
	int (*version)(char *, int *);
	memcpy(&version, &found, sizeof version);
	version(text, &length);
	return strstr(text, "Open MPI") != NULL ? "openmpi" : "mpich";
}

static chi_dynamic_library *open_library(const char *mpi)
{
	char name[64];
	snprintf(name, sizeof name, "mpi-%.40s", mpi);
	return chi_dynamic_library_open_own(name, false);
}

static bool is_known(const char *mpi)
{
	for (int i = 0; i < KNOWN; i++)
		if (strcmp(mpi, known[i]) == 0)
			return true;
	return false;
}

// By the options or the environment, or NULL.
static const char *asked_for(const choir_cluster_options *o)
{
	const char *mpi = o->mpi != NULL ? o->mpi : getenv("CHOIR_MPI");
	return mpi == NULL || mpi[0] == '\0' ? NULL : mpi;
}

static chi_dynamic_library *open_any(const char *wanted)
{
	chi_dynamic_library *m = NULL;
	for (int i = 0; i < KNOWN && m == NULL; i++)
		if (wanted == NULL || strcmp(wanted, known[i]) == 0)
			m = open_library(known[i]);
	if (m != NULL)
		return m;
	char why[CHI_ERROR_SIZE];
	snprintf(why, sizeof why, "%s", choir_error());
	choir_fail(CHOIR_NOT_FOUND,
			"mpi: no libchoir-mpi for %s; build Choir where %s is installed, or set CHOIR_MPI to "
			"the path of one (%s)",
			wanted == NULL ? "any MPI" : wanted,
			wanted == NULL || strcmp(wanted, "openmpi") == 0 ? "libopenmpi-dev (or libmpich-dev)"
															 : "libmpich-dev",
			why);
	return NULL;
}

static chi_dynamic_library *open_module(const choir_cluster_options *o, const chi_launcher *l)
{
	const char *asked = asked_for(o), *here = loaded();
	if (asked != NULL && strchr(asked, '/') != NULL) {
		chi_dynamic_library *m = chi_dynamic_library_open(asked);
		if (m == NULL)
			chi_error_prefix("mpi");
		return m;
	}
	if (asked != NULL && !is_known(asked))
		return chi_fail_null(CHOIR_INVALID,
				"mpi: \"%.60s\" is unknown; openmpi, mpich, or the path of a libchoir-mpi needed",
				asked);
	if (asked != NULL && here != NULL && strcmp(asked, here) != 0)
		return chi_fail_null(CHOIR_INVALID,
				"mpi: %s is requested, but this program has loaded %s; both must be the same",
				asked, here);
	return open_any(asked != NULL ? asked : here != NULL ? here : l->mpi);
}

static choir_status check_launcher(const choir_cluster *c, const chi_launcher *l, const char *mpi)
{
	if (l->name == NULL || (c->workers == l->workers && c->worker == l->worker))
		return CHOIR_OK;
	if (l->mpi != NULL && strcmp(l->mpi, mpi) != 0)
		return choir_fail(CHOIR_INVALID,
				"mpi: %s has started %d processes, but this one uses %s and finds %d; set "
				"CHOIR_MPI=%s, or start it with %s",
				l->name, l->workers, mpi, c->workers, l->mpi,
				strcmp(mpi, "mpich") == 0 ? "mpiexec of MPICH (mpirun.mpich)"
										  : "mpirun of Open MPI (mpirun.openmpi)");
	return choir_fail(CHOIR_INVALID,
			"mpi: by %s this is worker %d of %d, but by %s it is worker %d of %d", l->name,
			l->worker, l->workers, mpi, c->worker, c->workers);
}

static choir_status find_gpu_aware(choir_toggle *aware)
{
	const char *asked = getenv("CHOIR_GPU_AWARE_MPI");
	*aware = CHOIR_DEFAULT;
	if (asked == NULL || asked[0] == '\0')
		return CHOIR_OK;
	if (strcmp(asked, "on") != 0 && strcmp(asked, "off") != 0)
		return choir_fail(CHOIR_INVALID,
				"mpi: CHOIR_GPU_AWARE_MPI: '%.60s' is unknown; known: on, off", asked);
	*aware = strcmp(asked, "on") == 0 ? CHOIR_ON : CHOIR_OFF;
	return CHOIR_OK;
}

// Workers wait for each other when they come and leave.
static void nap(void)
{
	chi_thread_nap(50e-6);
}

choir_cluster *chi_mpi_open(const choir_cluster_options *o, const chi_launcher *l,
		const void *communicator, size_t size)
{
	chi_dynamic_library *m = open_module(o, l);
	if (m == NULL)
		return NULL;
	const choir_mpi_plugin *plugin = chi_dynamic_library_symbol(m, CHOIR_MPI_PLUGIN_SYMBOL);
	choir_transport_table transport;
	if (plugin == NULL || plugin->version != CHOIR_MPI_PLUGIN_VERSION ||
			chi_table_take("mpi", &transport, sizeof transport, sizeof(chi_table_head),
					plugin->table) != CHOIR_OK)
		return chi_fail_null(CHOIR_INVALID, "mpi: the library is not a libchoir-mpi of version %d",
				CHOIR_MPI_PLUGIN_VERSION);
	choir_toggle gpu_aware;
	if (find_gpu_aware(&gpu_aware) != CHOIR_OK)
		return NULL;
	const choir_mpi_argument argument = { .communicator = communicator,
		.size = size,
		.fail = choir_fail,
		.now = chi_clock_now,
		.yield = nap,
		.seconds = chi_cluster_start_seconds(o),
		.gpu_aware = gpu_aware };
	choir_cluster *c = chi_cluster_open(&transport, &argument, o);
	if (c != NULL)
		c->one_thread = plugin->one_thread(c->self);
	if (c != NULL && communicator == NULL && check_launcher(c, l, plugin->mpi) != CHOIR_OK) {
		chi_cluster_give_up(c);
		choir_cluster_free(c);
		return NULL;
	}
	return c;
}

choir_cluster *choir_cluster_from_mpi(
		const void *communicator, size_t size, const choir_cluster_options *given)
{
	choir_cluster_options o;
	const chi_launcher launcher = { 0 };
	const chi_roles roles = { 0 };
	if (chi_cluster_take_options(given, &o) != CHOIR_OK)
		return NULL;
	if (communicator == NULL || o.transport != NULL || o.cluster_spec != NULL ||
			o.task_type != NULL)
		return chi_fail_null(CHOIR_INVALID, "from_mpi: %s",
				communicator == NULL ? "the communicator is NULL"
									 : "a transport, cluster_spec or task_type is given as well");
	return chi_cluster_settle(chi_mpi_open(&o, &launcher, communicator, size), &roles, &o);
}
