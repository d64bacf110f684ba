// What a disk holds after a power cut, at any moment of a series of saves. The file operations of
// the series are written down; then states of the disk are made from them: those before the cut,
// of which what was not synced is there or not, in any combination (so also in any order), and
// writes may be torn. What the series promises must hold in every state: a save that returned is
// there, or a newer one, whole, and nothing is called a step that is not one. Protocols that are
// wrong, which are made by moving or leaving out operations, must be found.
// CHOIR_CRASH_STATES: how many random states (3000).
#include "base/fs.h"
#include "base/hash.h"
#include "train/files.h"
#include "train/saved.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "checkpoints"
enum { MAX = 512, SAVES = 5, MAX_NODES = 256, NAME = 64, PATH = 700 };

// An operation, with what it is about as numbers of nodes: files and folders, whatever they are
// called.
typedef struct {
	chi_fs_operation_kind kind;
	int node; // opened, created, written, synced, renamed or removed
	int directory; // in which the name is
	char name[NAME], to[NAME];
	char *data;
	size_t bytes;
	int acknowledged; // saves that had returned before it
} operation;

typedef struct {
	int n;
	operation at[MAX];
} series;

typedef struct {
	series ops;
	char root[512];
	int nodes;
	struct {
		bool directory, there;
		int in;
		char name[NAME];
	} node[MAX_NODES];
	int of_fd[256];
	int acknowledged;
} recorder;

static recorder recording;
static uint64_t hash_of_save[SAVES + 1]; // of the weights; 0: before the first
static int states_tried;

// ---- Writing down.

// The node of a path below the root, or of a name in an open folder; and its folder and name.
static int find(int open_directory, const char *path, int *checkpoint_directory, char name[NAME])
{
	const bool whole = open_directory == AT_FDCWD;
	const size_t root = whole ? strlen(recording.root) : 0;
	const char *rest = path + root;
	assert_int_equal(strncmp(path, recording.root, root), 0);
	int at = whole ? 0 : recording.of_fd[open_directory], in = at;
	name[0] = '\0';
	while (*rest == '/' || (rest == path && strcmp(path, ".") != 0)) {
		rest += *rest == '/';
		const size_t length = strcspn(rest, "/");
		in = at;
		snprintf(name, NAME, "%.*s", (int) length, rest);
		at = -1;
		for (int i = 1; i < recording.nodes; i++)
			if (recording.node[i].there && recording.node[i].in == in &&
					strcmp(recording.node[i].name, name) == 0)
				at = i;
		rest += length;
	}
	*checkpoint_directory = in;
	return at;
}

static int add_node(int checkpoint_directory, const char name[NAME], bool is_directory)
{
	assert_true(recording.nodes < MAX_NODES);
	recording.node[recording.nodes].directory = is_directory;
	recording.node[recording.nodes].there = true;
	recording.node[recording.nodes].in = checkpoint_directory;
	memcpy(recording.node[recording.nodes].name, name, NAME);
	return recording.nodes++;
}

static void record(const chi_fs_operation *o, void *user)
{
	(void) user;
	operation *op = &recording.ops.at[recording.ops.n];
	assert_true(recording.ops.n < MAX);
	*op = (operation){ .kind = o->kind, .acknowledged = recording.acknowledged };
	if (o->kind == CHI_FS_WRITE || o->kind == CHI_FS_SYNC) {
		op->node = recording.of_fd[o->fd];
	} else {
		op->node = find(o->directory, o->path, &op->directory, op->name);
		if (o->kind == CHI_FS_CREATE || o->kind == CHI_FS_MAKE_DIRECTORY)
			op->node = add_node(op->directory, op->name, o->kind == CHI_FS_MAKE_DIRECTORY);
	}
	if (o->kind == CHI_FS_OPEN || o->kind == CHI_FS_CREATE)
		recording.of_fd[o->fd] = op->node;
	if (o->kind == CHI_FS_WRITE) {
		op->bytes = o->bytes;
		op->data = malloc(o->bytes);
		memcpy(op->data, o->data, o->bytes);
	}
	if (o->kind == CHI_FS_RENAME) {
		int checkpoint_directory;
		find(o->directory, o->to, &checkpoint_directory, op->to);
		assert_int_equal(checkpoint_directory, op->directory);
		memcpy(recording.node[op->node].name, op->to, NAME);
	}
	if (o->kind == CHI_FS_REMOVE || o->kind == CHI_FS_REMOVE_DIRECTORY)
		recording.node[op->node].there = false;
	if (o->kind != CHI_FS_OPEN)
		recording.ops.n++;
}

static void write_series(void)
{
	snprintf(recording.root, sizeof recording.root, "%s", saved_directory());
	char directory[600];
	snprintf(directory, sizeof directory, "%s/" DIRECTORY, recording.root);
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	recording.nodes = 1; // the folder in which the manager makes its directory
	recording.node[0].directory = recording.node[0].there = true;
	assert_int_equal(mkdir(recording.root, 0777), 0);
	chi_fs_record(record, NULL);
	choir_checkpoint_manager *m = saved_manage(
			p.strategy, directory, CHOIR_OPTIONS(choir_checkpoint_options, .max_to_keep = 2));
	for (int i = 1; i <= SAVES; i++) {
		saved_train(&p, 1);
		hash_of_save[i] = choir_strategy_hash(p.strategy);
		saved_must(choir_checkpoint_manager_save(m, NULL));
		recording.acknowledged = i;
	}
	chi_fs_record(NULL, NULL);
	choir_checkpoint_manager_free(m);
	problem_close(&p);
}

// ---- A state of the disk.

typedef struct {
	int in[MAX_NODES]; // folder of each node; -1: it has no name
	char name[MAX_NODES][NAME];
	char *data[MAX_NODES];
	size_t bytes[MAX_NODES];
} disk;

static bool is_of_directory(const operation *o)
{
	return o->kind == CHI_FS_CREATE || o->kind == CHI_FS_MAKE_DIRECTORY ||
			o->kind == CHI_FS_RENAME || o->kind == CHI_FS_REMOVE ||
			o->kind == CHI_FS_REMOVE_DIRECTORY;
}

// Whether operation i had to be on the disk when only the first end operations were made.
static bool is_durable(const series *s, int i, int end)
{
	const operation *o = &s->at[i];
	const int target = is_of_directory(o) ? o->directory : o->node;
	for (int k = i + 1; k < end; k++)
		if (s->at[k].kind == CHI_FS_SYNC && s->at[k].node == target)
			return true;
	return false;
}

static void write_part(disk *d, const operation *o, size_t offset, size_t bytes)
{
	if (offset + bytes > d->bytes[o->node]) {
		d->data[o->node] = realloc(d->data[o->node], offset + bytes);
		assert_non_null(d->data[o->node]);
		// Where data of before did not come, there are zeros.
		memset(d->data[o->node] + d->bytes[o->node], 0, offset + bytes - d->bytes[o->node]);
		d->bytes[o->node] = offset + bytes;
	}
	memcpy(d->data[o->node] + offset, o->data, bytes);
}

static void apply_name(disk *d, const operation *o)
{
	if (o->kind == CHI_FS_REMOVE || o->kind == CHI_FS_REMOVE_DIRECTORY) {
		d->in[o->node] = -1;
		return;
	}
	d->in[o->node] = o->directory;
	memcpy(d->name[o->node], o->kind == CHI_FS_RENAME ? o->to : o->name, NAME);
}

// The disk after a cut behind end operations. lost: for each of them whether it did not get there,
// as far as that may be; torn: of those that write, a part.
static void make_disk(const series *s, int end, const uint8_t lost[], uint64_t torn, disk *d)
{
	memset(d, 0, sizeof *d);
	size_t offset[MAX_NODES] = { 0 };
	for (int i = 0; i < MAX_NODES; i++)
		d->in[i] = -1;
	for (int i = 0; i < end; i++) {
		const operation *o = &s->at[i];
		const bool there = is_durable(s, i, end) || lost[i] == 0;
		if (is_of_directory(o) && there)
			apply_name(d, o);
		if (o->kind != CHI_FS_WRITE)
			continue;
		if (there)
			write_part(d, o, offset[o->node], o->bytes);
		else if (lost[i] == 2)
			write_part(d, o, offset[o->node], (size_t) (torn % (o->bytes + 1)));
		offset[o->node] += o->bytes;
	}
}

static void put_file(const char *path, const char *data, size_t bytes)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	assert_true(bytes == 0 || write(fd, data, bytes) == (ssize_t) bytes);
	close(fd);
}

// Adds to path where in it a node is; false: nowhere.
static bool find_path(const disk *d, int node, char path[PATH])
{
	if (node == 0)
		return true;
	if (d->in[node] < 0 || !find_path(d, d->in[node], path))
		return false;
	const size_t length = strlen(path);
	snprintf(path + length, PATH - length, "/%s", d->name[node]);
	return true;
}

// A folder is made before what is in it.
static void put_disk(const disk *d, const char *root)
{
	assert_int_equal(mkdir(root, 0777), 0);
	for (int i = 1; i < recording.nodes; i++) {
		char path[PATH];
		snprintf(path, sizeof path, "%s", root);
		if (!find_path(d, i, path))
			continue;
		if (recording.node[i].directory)
			(void) mkdir(path, 0777);
		else
			put_file(path, d->data[i], d->bytes[i]);
	}
}

// ---- What must hold.

static problem looker; // whose strategy looks at every state

// NULL, or what is wrong.
static const char *judge_disk(const char *root, int acknowledged)
{
	choir_checkpoint_list *l = choir_checkpoint_list_new(root);
	if (l == NULL && acknowledged == 0 && choir_error_status() == CHOIR_NOT_FOUND)
		return NULL; // the directory is not there yet
	if (l == NULL)
		return "it cannot be listed";
	const char *wrong = NULL;
	for (size_t i = 0; i < choir_checkpoint_list_steps(l); i++)
		if (strstr(choir_checkpoint_list_path(l, i), "/step-") != NULL &&
				choir_checkpoint_list_check(l, i) != CHOIR_OK)
			wrong = "what is called a step is none";
	choir_checkpoint_list_free(l);
	if (wrong != NULL)
		return wrong;
	choir_checkpoint_manager *m = choir_checkpoint_manager_new(looker.strategy, root, NULL);
	if (m == NULL)
		return "it cannot be used";
	const choir_status status = choir_checkpoint_manager_restore_latest(m);
	const uint64_t hash = choir_strategy_hash(looker.strategy);
	if (status == CHOIR_OK) {
		wrong = "what is restored was never saved, or is older than what was said to be saved";
		for (int i = acknowledged > 0 ? acknowledged : 1; i <= SAVES; i++)
			if (hash == hash_of_save[i])
				wrong = NULL;
	} else if (status != CHOIR_NOT_FOUND)
		wrong = "restoring fails";
	else if (acknowledged > 0)
		wrong = "a save that returned is lost";
	choir_checkpoint_manager_free(m);
	return wrong;
}

static const char *try_state(const series *s, int end, const uint8_t lost[], uint64_t torn)
{
	static int n;
	char name[32];
	static disk d;
	make_disk(s, end, lost, torn, &d);
	snprintf(name, sizeof name, "disk-%d", n++ % 2);
	const char *root = files_path(name);
	put_disk(&d, root);
	// Before the operation is made, the saves before it have returned; behind the last all have.
	char directory[PATH];
	snprintf(directory, sizeof directory, "%s/" DIRECTORY, root);
	const char *wrong = judge_disk(directory, end < s->n ? s->at[end].acknowledged : SAVES);
	files_remove_directory(root);
	for (int i = 0; i < MAX_NODES; i++)
		free(d.data[i]);
	states_tried++;
	return wrong;
}

// Every moment with all that is not synced lost, there, or lost or alone there one by one.
static const char *try_all(const series *s, int *where)
{
	uint8_t lost[MAX];
	for (int end = 0; end <= s->n; end++) {
		*where = end;
		for (int what = 0; what < 3; what++) {
			memset(lost, what, sizeof lost);
			const char *wrong = try_state(s, end, lost, 7);
			if (wrong != NULL)
				return wrong;
		}
		for (int i = end - 1, k = 0; i >= 0 && k < 8; i--) {
			if (is_durable(s, i, end) || s->at[i].kind == CHI_FS_SYNC)
				continue;
			k++;
			for (int rest = 0; rest < 2; rest++) {
				memset(lost, rest, sizeof lost);
				lost[i] = (uint8_t) !rest;
				const char *wrong = try_state(s, end, lost, 0);
				if (wrong != NULL)
					return wrong;
			}
		}
	}
	return NULL;
}

static const char *try_random(const series *s, int states, uint64_t seed, int *where)
{
	uint8_t lost[MAX];
	for (int n = 0; n < states; n++) {
		uint64_t state = chi_hash_mix(seed + (uint64_t) n);
		const int end = (int) (state % (uint64_t) (s->n + 1));
		for (int i = 0; i < end; i++) {
			state = chi_hash_mix(state + 1);
			lost[i] = (uint8_t) (state >> 20) % 3;
		}
		*where = end;
		const char *wrong = try_state(s, end, lost, state);
		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

TEST(saves_survive)
{
	const char *given = getenv("CHOIR_CRASH_STATES");
	int where = 0;
	const char *wrong = try_all(&recording.ops, &where);
	if (wrong == NULL)
		wrong = try_random(&recording.ops, given != NULL ? atoi(given) : 3000, 1, &where);
	if (wrong != NULL)
		fail_msg("a cut before operation %d of %d: %s: %s", where, recording.ops.n, wrong,
				choir_error());
	print_message("%d states of %d operations\n", states_tried, recording.ops.n);
}

// ---- Protocols that are wrong.

static bool leave_out_syncs(series *s, bool of_directories)
{
	int n = 0, left_out = 0;
	for (int i = 0; i < s->n; i++)
		if (s->at[i].kind == CHI_FS_SYNC &&
				recording.node[s->at[i].node].directory == of_directories)
			left_out++;
		else
			s->at[n++] = s->at[i];
	s->n = n;
	return left_out > 0;
}

// The first sync there is.
static void leave_out_sync_of_parent(series *s)
{
	int i = 0;
	while (s->at[i].kind != CHI_FS_SYNC)
		i++;
	assert_int_equal(s->at[i].node, 0);
	s->n--;
	memmove(&s->at[i], &s->at[i + 1], (size_t) (s->n - i) * sizeof s->at[0]);
}

static void must_find(const series *s, const char *protocol)
{
	int where;
	if (try_all(s, &where) == NULL && try_random(s, 2000, 2, &where) == NULL)
		fail_msg("%s was not found", protocol);
}

TEST(no_sync_of_files)
{
	series s = recording.ops;
	assert_true(leave_out_syncs(&s, false));
	must_find(&s, "no fsync of files");
}

TEST(no_sync_of_directories)
{
	series s = recording.ops;
	assert_true(leave_out_syncs(&s, true));
	must_find(&s, "no fsync of folders");
}

TEST(no_sync_of_the_parent)
{
	series s = recording.ops;
	leave_out_sync_of_parent(&s);
	must_find(&s, "no fsync of the directory's folder");
}

// Each step gets its name and its manifest before the weights are written.
TEST(manifest_before_data)
{
	series s = recording.ops;
	int moved = 0;
	for (int i = 0; i < s.n; i++) {
		if (s.at[i].kind != CHI_FS_RENAME || strncmp(s.at[i].to, "step-", 5) != 0)
			continue;
		int first = i;
		while (s.at[first].kind != CHI_FS_WRITE || s.at[first - 1].kind != CHI_FS_CREATE ||
				strcmp(s.at[first - 1].name, "weights.safetensors") != 0)
			first--;
		// The manifest's creation, write and sync, and the rename, go to where the weights begin.
		int manifest = i;
		while (strcmp(s.at[manifest].name, "manifest.json") != 0)
			manifest--;
		operation kept[MAX];
		int n = 0;
		for (int k = first; k < manifest; k++)
			kept[n++] = s.at[k];
		memmove(&s.at[first], &s.at[manifest], (size_t) (i - manifest + 1) * sizeof(operation));
		memcpy(&s.at[first + i - manifest + 1], kept, (size_t) n * sizeof(operation));
		moved++;
	}
	assert_int_equal(moved, SAVES);
	must_find(&s, "the manifest before the data");
}

static int begin(void **state)
{
	(void) state;
	looker = saved_open(0, 2, CHOIR_ADAM, NULL);
	write_series();
	return 0;
}

static int end(void **state)
{
	(void) state;
	for (int i = 0; i < recording.ops.n; i++)
		free(recording.ops.at[i].data);
	problem_close(&looker);
	files_remove();
	return 0;
}

TEST_GROUP(begin, end)
