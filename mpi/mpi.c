// MPI as a transport, compiled for each MPI (3.0 or later) with Choir's public headers. It makes
// only point-to-point calls on its own communicator. MPI does not report that a process stopped or
// left, so workers send notes, which are polled while tests find nothing.
#include <choir/extend/mpi.h>

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The limit of one MPI call, whose counts are int. It must be at least a page: only frames of
// messages, which are shorter, are received into a larger buffer.
#ifndef CHOIR_MPI_CHUNK
#define CHOIR_MPI_CHUNK ((size_t) 1 << 30)
#endif
enum { NOTE_TAG = CHOIR_TRANSPORT_TAGS, NOTE_BYTES = 512 };
// Polling for notes takes longer than a test, so it begins after LOOKS_BEFORE tests in vain and
// then follows every LOOKS_A_NOTE tests.
enum { LOOKS_A_NOTE = 16, LOOKS_BEFORE = 64 };
// Measured bytes that go without asking the receiver, less the MPI's headers.
#if defined(OPEN_MPI)
enum { EAGER = 4000 };
#elif defined(MPICH_VERSION)
enum { EAGER = 8000 };
#else
enum { EAGER = 0 };
#endif
// MPICH's launcher kills a job when a process ends without MPI_Finalize. Before MPICH 4.3 it then
// often loses the exit status and what the processes have printed (MPICH issue 7057). So after a
// failure workers wait this long for each other, to finalise together. On a busy machine they look
// less often, so they also wait for LOOKS_AFTER_FAILURE looks (0.2 s if idle), at most LEAVE_MAX.
#if defined(MPICH_VERSION)
static const double LEAVE_AFTER_FAILURE = 1, LEAVE_MAX = 5; // seconds
#else
static const double LEAVE_AFTER_FAILURE = 0, LEAVE_MAX = 0;
#endif
enum { LOOKS_AFTER_FAILURE = 2000 };

typedef struct {
	bool used, receiving;
	int peer, parts, finished;
	MPI_Request *request;
	int capacity; // of request
	size_t bytes;
} transfer;

typedef struct {
	int kind; // 'l': left, 'a': aborted; 0: none
	char text[NOTE_BYTES - sizeof(int)];
} note;

typedef struct {
	choir_mpi_argument with;
	MPI_Comm comm;
	bool open, own_mpi;
	bool failed; // a call of MPI
	bool aborted; // by this worker
	int worker, workers, threads;
	transfer *transfers;
	size_t transfer_capacity;
	double *left; // time at which each worker left, or 0
	unsigned looks; // tests in vain since the last success
	int aborted_by; // or CHOIR_NONE
	note abort;
	note *sent; // to each worker, by its request in sending
	MPI_Request *sending;
} mpi;

static const char *level_name(int level)
{
	return level == MPI_THREAD_MULTIPLE		 ? "MPI_THREAD_MULTIPLE"
			: level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
			: level == MPI_THREAD_FUNNELED	 ? "MPI_THREAD_FUNNELED"
											 : "MPI_THREAD_SINGLE";
}

static choir_status refused(mpi *m, const char *call, int error)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;
	MPI_Error_string(error, text, &length);
	m->failed = true;
	return m->with.fail(CHOIR_IO, "%s: %s", call, text);
}

#define CALL(call, ...) \
	do { \
		const int error_ = call(__VA_ARGS__); \
		if (error_ != MPI_SUCCESS) \
			return refused(m, #call, error_); \
	} while (0)

static choir_status no_memory(mpi *m)
{
	return m->with.fail(CHOIR_NO_MEMORY, "no memory for the state of MPI");
}

// Below MPI_THREAD_SERIALIZED only the initialising thread may call MPI.
static bool may_call(const mpi *m)
{
	int own = 1;
	if (m->threads < MPI_THREAD_SERIALIZED)
		MPI_Is_thread_main(&own);
	return own != 0;
}

static choir_status check_thread(mpi *m)
{
	if (may_call(m))
		return CHOIR_OK;
	return m->with.fail(CHOIR_UNSUPPORTED,
			"MPI was initialised with %s, so only the thread that initialised it may call it; "
			"call Choir from that thread, or MPI_Init_thread with MPI_THREAD_SERIALIZED",
			level_name(m->threads));
}

static atomic_bool is_finalising; // perhaps for ever

// Initialises MPI unless the program has.
static choir_status start(mpi *m)
{
	int initialised = 0, finalised = 0;
	MPI_Initialized(&initialised);
	MPI_Finalized(&finalised);
	if (finalised || atomic_load(&is_finalising))
		return m->with.fail(CHOIR_STATE,
				"MPI was finalised in this process and cannot be initialised again; keep one "
				"cluster until the program's end");
	if (!initialised && m->with.communicator != NULL)
		return m->with.fail(CHOIR_STATE, "a communicator is given, but MPI is not initialised");
	if (!initialised) {
		CALL(MPI_Init_thread, NULL, NULL, MPI_THREAD_MULTIPLE, &m->threads);
		m->own_mpi = true;
	}
	CALL(MPI_Query_thread, &m->threads);
	return check_thread(m);
}

// Makes Choir's own communicator. After a timeout MPI may still write *own, so it is leaked.
static choir_status duplicate(mpi *m, MPI_Comm from)
{
	int done = 0, processes = 0;
	MPI_Request request;
	MPI_Comm *own = malloc(sizeof *own);
	if (own == NULL)
		return no_memory(m);
	const double begun = m->with.now();
	CALL(MPI_Comm_size, from, &processes);
	CALL(MPI_Comm_idup, from, own, &request);
	m->open = true;
	CALL(MPI_Test, &request, &done, MPI_STATUS_IGNORE);
	while (!done) {
		if (m->with.seconds >= 0 && m->with.now() - begun > m->with.seconds)
			return m->with.fail(CHOIR_TIMEOUT, "not all %d processes came within %g s", processes,
					m->with.seconds);
		m->with.yield();
		CALL(MPI_Test, &request, &done, MPI_STATUS_IGNORE);
	}
	m->comm = *own;
	free(own);
	return CHOIR_OK;
}

// A communicator of Fortran is a number, also where that of C is a pointer.
static MPI_Comm given_communicator(const mpi *m)
{
	MPI_Comm from = MPI_COMM_WORLD;
	MPI_Fint number = 0;
	if (m->with.communicator == NULL)
		return from;
	const bool is_c = m->with.size == sizeof from;
	memcpy(is_c ? (void *) &from : &number, m->with.communicator, m->with.size);
	return is_c ? from : MPI_Comm_f2c(number);
}

static choir_status find_others(mpi *m)
{
	const MPI_Comm from = given_communicator(m);
	int is_inter = 0;
	if (from != MPI_COMM_NULL)
		CALL(MPI_Comm_test_inter, from, &is_inter);
	if (from == MPI_COMM_NULL || is_inter)
		return m->with.fail(CHOIR_INVALID,
				"the communicator is %s; an intracommunicator of this process is needed",
				is_inter ? "an intercommunicator" : "MPI_COMM_NULL");
	CHOIR_TRY(duplicate(m, from));
	CALL(MPI_Comm_set_errhandler, m->comm, MPI_ERRORS_RETURN);
	CALL(MPI_Comm_rank, m->comm, &m->worker);
	CALL(MPI_Comm_size, m->comm, &m->workers);
	m->left = calloc((size_t) m->workers, sizeof *m->left);
	m->sent = calloc((size_t) m->workers, sizeof *m->sent);
	m->sending = calloc((size_t) m->workers, sizeof *m->sending);
	if (m->left == NULL || m->sent == NULL || m->sending == NULL)
		return no_memory(m);
	for (int i = 0; i < m->workers; i++)
		m->sending[i] = MPI_REQUEST_NULL;
	return CHOIR_OK;
}

static choir_status open_mpi(void *self, const void *argument)
{
	mpi *m = self;
	m->with = *(const choir_mpi_argument *) argument;
	m->aborted_by = CHOIR_NONE;
	m->comm = MPI_COMM_NULL;
	if (m->with.communicator != NULL && m->with.size != sizeof(MPI_Comm) &&
			m->with.size != sizeof(MPI_Fint))
		return m->with.fail(CHOIR_INVALID,
				"a communicator of %zu bytes given, this MPI's have %zu, and Fortran's %zu",
				m->with.size, sizeof(MPI_Comm), sizeof(MPI_Fint));
	choir_status status = start(m);
	if (status == CHOIR_OK)
		status = find_others(m);
	m->failed = status != CHOIR_OK;
	return status;
}

static void read_notes(mpi *m)
{
	int there = 1;
	MPI_Status status;
	while (MPI_Iprobe(MPI_ANY_SOURCE, NOTE_TAG, m->comm, &there, &status) == MPI_SUCCESS &&
			there) {
		note n = { 0 };
		if (MPI_Recv(&n, sizeof n, MPI_BYTE, status.MPI_SOURCE, NOTE_TAG, m->comm,
					MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return;
		n.text[sizeof n.text - 1] = '\0';
		if (n.kind == 'l')
			m->left[status.MPI_SOURCE] = m->with.now();
		if (n.kind == 'a' && m->aborted_by == CHOIR_NONE) {
			m->aborted_by = status.MPI_SOURCE;
			m->abort = n;
		}
	}
}

// A note is small enough to need no answer, so no call waits for it.
static void send_notes(mpi *m, int kind, const char *text)
{
	for (int i = 0; i < m->workers; i++) {
		if (i == m->worker || m->sending[i] != MPI_REQUEST_NULL)
			continue;
		m->sent[i].kind = kind;
		snprintf(m->sent[i].text, sizeof m->sent[i].text, "%s", text);
		MPI_Isend(&m->sent[i], sizeof m->sent[i], MPI_BYTE, i, NOTE_TAG, m->comm, &m->sending[i]);
	}
}

static bool notes_are_sent(mpi *m)
{
	int done = 1;
	return MPI_Testall(m->workers, m->sending, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS || done;
}

static bool all_have_left(const mpi *m)
{
	for (int i = 0; i < m->workers; i++)
		if (i != m->worker && m->left[i] == 0)
			return false;
	return true;
}

static bool has_aborted(const mpi *m)
{
	return m->aborted || m->aborted_by != CHOIR_NONE;
}

// Waits until all workers have said that they leave. They send nothing afterwards.
static bool leave_together(mpi *m, double seconds)
{
	const double begun = m->with.now();
	bool told = false;
	for (int looks = 0;; looks += looks < LOOKS_AFTER_FAILURE) {
		const bool sent = notes_are_sent(m);
		if (sent && told && all_have_left(m))
			return true;
		if (sent && !told)
			send_notes(m, 'l', "");
		told = told || sent;
		read_notes(m);
		const double abort_limit = looks < LOOKS_AFTER_FAILURE ? LEAVE_MAX : LEAVE_AFTER_FAILURE;
		const double limit = has_aborted(m) ? abort_limit : seconds;
		if (limit >= 0 && m->with.now() - begun > limit)
			return false;
		m->with.yield();
	}
}

static bool has_transfers(const mpi *m)
{
	for (size_t i = 0; i < m->transfer_capacity; i++)
		if (m->transfers[i].used)
			return true;
	return false;
}

#if defined(MPICH_VERSION)
static void *finalise(void *finished)
{
	MPI_Finalize();
	atomic_store((atomic_bool *) finished, true);
	return NULL;
}

// In MPI_Finalize MPICH flushes its connections. Over UCX and TCP, a flush needs an answer of the
// other process. A process whose own flushes are answered waits in a barrier of the launcher and
// answers nobody. So no process may answer before it calls MPI_Finalize itself, and once all have
// left, all sleep for SETTLE. If a process comes later than that, the wait ends after LIMIT: all
// data have arrived.
static void finalise_in_time(mpi *m)
{
	static const double SETTLE = 0.2, LIMIT = 5; // seconds
	static atomic_bool finished; // lives on after the wait
	const double begun = m->with.now();
	pthread_t thread;
	atomic_store(&is_finalising, true);
	while (m->workers > 1 && m->with.now() - begun < SETTLE)
		m->with.yield();
	if (m->threads < MPI_THREAD_MULTIPLE ||
			pthread_create(&thread, NULL, finalise, &finished) != 0) {
		MPI_Finalize();
		return;
	}
	pthread_detach(thread);
	while (!atomic_load(&finished) && m->with.now() - begun < LIMIT)
		m->with.yield();
}
#endif

static bool may_leave(const mpi *m)
{
	return !has_aborted(m) ||
			(LEAVE_AFTER_FAILURE > 0 && m->own_mpi && !has_transfers(m) && may_call(m));
}

static void close_mpi(void *self, double seconds)
{
	mpi *m = self;
	bool whole = m->open && !m->failed && m->left != NULL && m->sending != NULL && may_leave(m);
	if (whole)
		whole = leave_together(m, seconds);
	// After a failure MPI may still use its memory, which is leaked.
	if (m->open && whole) {
		MPI_Comm_free(&m->comm);
		free(m->sent);
		free(m->sending);
	}
	for (size_t i = 0; i < m->transfer_capacity && (whole || !m->open); i++)
		free(m->transfers[i].request);
	if (whole || !m->open)
		free(m->transfers);
	free(m->left);
	if (m->own_mpi && (whole || !m->open))
#if defined(MPICH_VERSION)
		finalise_in_time(m);
#else
		MPI_Finalize();
#endif
}

static int worker_of(const void *self)
{
	return ((const mpi *) self)->worker;
}

static int workers_of(const void *self)
{
	return ((const mpi *) self)->workers;
}

// Whether this MPI takes memory of NVIDIA's GPUs in this process.
static bool takes_memory_of(const void *self, const char *kind)
{
	const choir_toggle asked = ((const mpi *) self)->with.gpu_aware;
	int takes = asked == CHOIR_ON;
#if defined(MPIX_GPU_SUPPORT_CUDA)
	if (asked == CHOIR_DEFAULT)
		MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &takes);
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
	if (asked == CHOIR_DEFAULT)
		takes = MPIX_Query_cuda_support();
#endif
	return takes != 0 && strcmp(kind, "gpu") == 0;
}

static void describe(const void *self, char *text, size_t size)
{
	const mpi *m = self;
	char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0;
	MPI_Get_library_version(version, &length);
	version[strcspn(version, ",\n\r")] = '\0';
	for (char *c = version; *c != '\0'; c++)
		*c = *c == '\t' ? ' ' : *c;
	snprintf(text, size, "%.80s, %s%s", version, level_name(m->threads),
			takes_memory_of(m, "gpu") ? ", GPU-aware" : "");
}

static transfer *new_transfer(mpi *m, int peer, size_t bytes, uint64_t *number)
{
	size_t i = 0;
	while (i < m->transfer_capacity && m->transfers[i].used)
		i++;
	if (i == m->transfer_capacity) {
		const size_t capacity = i == 0 ? 16 : 2 * i;
		transfer *grown = realloc(m->transfers, capacity * sizeof *grown);
		if (grown == NULL)
			return NULL;
		memset(grown + i, 0, (capacity - i) * sizeof *grown);
		m->transfers = grown;
		m->transfer_capacity = capacity;
	}
	transfer *t = &m->transfers[i];
	const size_t parts = bytes == 0 ? 1 : (bytes - 1) / CHOIR_MPI_CHUNK + 1;
	if (parts > INT_MAX)
		return NULL;
	if (t->capacity < (int) parts) {
		MPI_Request *grown = realloc(t->request, parts * sizeof *grown);
		if (grown == NULL)
			return NULL;
		t->request = grown;
		t->capacity = (int) parts;
	}
	for (size_t k = 0; k < parts; k++)
		t->request[k] = MPI_REQUEST_NULL;
	*t = (transfer){ .used = true,
		.peer = peer,
		.parts = (int) parts,
		.request = t->request,
		.capacity = t->capacity };
	*number = i;
	return t;
}

static int part_bytes(size_t bytes, int part)
{
	const size_t left = bytes - (size_t) part * CHOIR_MPI_CHUNK;
	return (int) (left < CHOIR_MPI_CHUNK ? left : CHOIR_MPI_CHUNK);
}

static choir_status send_bytes(
		void *self, int to, int tag, const void *data, size_t bytes, uint64_t *number)
{
	mpi *m = self;
	CHOIR_TRY(check_thread(m));
	transfer *t = new_transfer(m, to, bytes, number);
	if (t == NULL)
		return no_memory(m);
	for (int i = 0; i < t->parts; i++)
		CALL(MPI_Isend, (const char *) data + (size_t) i * CHOIR_MPI_CHUNK, part_bytes(bytes, i),
				MPI_BYTE, to, tag, m->comm, &t->request[i]);
	t->bytes = bytes;
	return CHOIR_OK;
}

static choir_status receive_bytes(
		void *self, int from, int tag, void *data, size_t capacity, uint64_t *number)
{
	mpi *m = self;
	CHOIR_TRY(check_thread(m));
	transfer *t = new_transfer(m, from, capacity, number);
	if (t == NULL)
		return no_memory(m);
	t->receiving = true;
	for (int i = 0; i < t->parts; i++)
		CALL(MPI_Irecv, (char *) data + (size_t) i * CHOIR_MPI_CHUNK, part_bytes(capacity, i),
				MPI_BYTE, from, tag, m->comm, &t->request[i]);
	return CHOIR_OK;
}

static choir_status test_parts(mpi *m, transfer *t)
{
	while (t->finished < t->parts) {
		int done = 0, count = 0;
		MPI_Status status;
		CALL(MPI_Test, &t->request[t->finished], &done, &status);
		if (!done)
			return CHOIR_OK;
		if (t->receiving) {
			CALL(MPI_Get_count, &status, MPI_BYTE, &count);
			t->bytes += (size_t) count;
		}
		t->finished++;
	}
	return CHOIR_OK;
}

// A message sent before leaving may still arrive within GRACE.
static bool is_lost(const mpi *m, const transfer *t)
{
	static const double GRACE = 0.5; // seconds
	return m->left[t->peer] != 0 && m->with.now() - m->left[t->peer] > GRACE;
}

static choir_status test_transfer(void *self, uint64_t number, bool *done, size_t *bytes)
{
	mpi *m = self;
	transfer *t = &m->transfers[number];
	const choir_status status = may_call(m) ? test_parts(m, t) : check_thread(m);
	*done = t->finished == t->parts;
	*bytes = t->bytes;
	if (status != CHOIR_OK)
		return status;
	if (*done) {
		t->used = false;
		m->looks = 0;
		return CHOIR_OK;
	}
	if (++m->looks > LOOKS_BEFORE && m->looks % LOOKS_A_NOTE == 0)
		read_notes(m);
	if (m->aborted_by != CHOIR_NONE)
		return m->with.fail(
				CHOIR_CANCELLED, "worker %d stopped: %s", m->aborted_by, m->abort.text);
	if (is_lost(m, t))
		return m->with.fail(CHOIR_PEER_LOST, "worker %d has left", t->peer);
	return CHOIR_OK;
}

// Cancels a receive that has not begun. A transfer in progress gets a short time: it ends, or its
// peer is gone and nothing uses the memory.
static void drop(void *self, uint64_t number)
{
	mpi *m = self;
	transfer *t = &m->transfers[number];
	const double begun = m->with.now();
	int done = 1;
	if (!may_call(m))
		return;
	for (int i = t->finished; i < t->parts; i++)
		if (t->receiving && t->request[i] != MPI_REQUEST_NULL)
			MPI_Cancel(&t->request[i]);
	do {
		if (MPI_Testall(t->parts, t->request, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
			break;
		if (!done)
			m->with.yield();
	} while (!done && t->receiving && m->with.now() - begun < 0.5);
	t->used = !done; // a hanging transfer is not reused
}

static void abort_all(void *self, const char *why)
{
	mpi *m = self;
	m->aborted = true;
	if (!m->open || m->sending == NULL || !may_call(m)) // the others will time out
		return;
	send_notes(m, 'a', why);
	const double begun = m->with.now();
	while (!notes_are_sent(m) && m->with.now() - begun < 0.1)
		m->with.yield();
}

static const choir_transport_table table = {
	.size = sizeof table,
	.version = CHOIR_TABLE_VERSION,
	.name = "mpi",
	.self_size = sizeof(mpi),
	.open = open_mpi,
	.close = close_mpi,
	.worker = worker_of,
	.workers = workers_of,
	.describe = describe,
	.send = send_bytes,
	.receive = receive_bytes,
	.test = test_transfer,
	.drop = drop,
	.abort = abort_all,
	.eager = EAGER,
	.takes_memory_of = takes_memory_of,
};

static bool one_thread(const void *self)
{
	return ((const mpi *) self)->threads < MPI_THREAD_SERIALIZED;
}

extern const choir_mpi_plugin choir_mpi_plugin_data;
__attribute__((visibility("default"))) const choir_mpi_plugin choir_mpi_plugin_data = {
	.version = CHOIR_MPI_PLUGIN_VERSION,
#if defined(OPEN_MPI)
	.mpi = "openmpi",
#elif defined(MPICH_VERSION)
	.mpi = "mpich",
#else
	.mpi = "other",
#endif
	.table = &table,
	.one_thread = one_thread,
};
