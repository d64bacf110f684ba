// The tables of connections run one suite: the simulation, Unix sockets, TCP with and without
// encryption. Peers without the key get no byte.
#include "net/net_loader.h"

#include "net/net_sim.h"
#include "net/suite.h"
#include "test.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

TEST(simulated_connections_pass_the_suite)
{
	for (uint64_t seed = 0; seed < 3; seed++) {
		net_sim *s = net_sim_new(&(net_sim_options){
				.seed = seed, .slowest = seed == 0 ? 0 : 0.01, .piece = seed == 2 ? 7000 : 0 });
		assert_non_null(s);
		net_sim_wait_moves_time(s);
		const net_suite_place place = { .listener = net_sim_connections(s, 0),
			.dialler = net_sim_connections(s, 1),
			.address = "here",
			.nowhere = "nowhere" };
		net_suite_run(&place);
		chi_connections_free(place.dialler);
		chi_connections_free(place.listener);
		net_sim_free(s);
	}
}

static chi_key key_of(int seed)
{
	chi_key key = { .size = 40 };
	for (size_t i = 0; i < key.size; i++)
		key.bytes[i] = (unsigned char) (i * 7 + (size_t) seed);
	return key;
}

TEST(unix_sockets_pass_the_suite)
{
	char folder[] = "/tmp/choir_net_XXXXXX", path[64], nowhere[64];
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "unix:%s/s", folder);
	snprintf(nowhere, sizeof nowhere, "unix:%s/nobody", folder);
	const net_suite_place place = { .listener = chi_connections_open(NULL, false),
		.dialler = chi_connections_open(NULL, false),
		.address = path,
		.nowhere = nowhere };
	assert_non_null(place.listener);
	assert_non_null(place.dialler);
	net_suite_run(&place);
	chi_connections_free(place.dialler);
	chi_connections_free(place.listener);
	assert_int_equal(rmdir(folder), 0); // the socket's file is gone
}

static bool has_tcp(void)
{
	const chi_key key = key_of(1);
	uint64_t listener;
	char bound[64];
	chi_connections *c = chi_connections_open(&key, false);
	assert_non_null(c);
	const choir_status status =
			c->table.listen(c->self, "127.0.0.1:0", &listener, bound, sizeof bound);
	chi_connections_free(c);
	return status != CHOIR_UNSUPPORTED;
}

// plain: of the listening and of the dialling end.
static void run_tcp(const char *address, bool plain_listener, bool plain_dialler)
{
	const chi_key key = key_of(1);
	const net_suite_place place = { .listener = chi_connections_open(&key, plain_listener),
		.dialler = chi_connections_open(&key, plain_dialler),
		.address = address,
		.nowhere = "127.0.0.1:1" };
	net_suite_run(&place);
	chi_connections_free(place.dialler);
	chi_connections_free(place.listener);
}

TEST(tcp_passes_the_suite)
{
	if (!has_tcp())
		skip();
	run_tcp("127.0.0.1:0", false, false); // loopback
	run_tcp("localhost:0", true, true);
}

// The first address of this machine that is not loopback: "" if there is none.
static void own_address(char *out, size_t size)
{
	struct sockaddr_in far = { .sin_family = AF_INET, .sin_port = htons(9) }, own;
	socklen_t bytes = sizeof own;
	inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
	const int fd = socket(AF_INET, SOCK_DGRAM, 0); // sends nothing
	out[0] = '\0';
	if (connect(fd, (struct sockaddr *) &far, sizeof far) == 0 &&
			getsockname(fd, (struct sockaddr *) &own, &bytes) == 0) {
		char text[INET_ADDRSTRLEN] = "";
		inet_ntop(AF_INET, &own.sin_addr, text, sizeof text);
		snprintf(out, size, "%s:0", text);
	}
	close(fd);
}

TEST(tls_passes_the_suite)
{
	char address[64];
	own_address(address, sizeof address);
	if (!has_tcp() || address[0] == '\0')
		skip();
	run_tcp(address, false, false);
	run_tcp(address, true, false); // both ends must agree to send plain bytes
	run_tcp(address, false, true);
}

// ---- The host's program

enum { SIGNALS = 65 };

static volatile sig_atomic_t pipes;

static void count_pipe(int number)
{
	(void) number;
	pipes++;
}

static int threads(void)
{
	DIR *all = opendir("/proc/self/task");
	int n = -2; // "." and ".."
	assert_non_null(all);
	while (readdir(all) != NULL)
		n++;
	closedir(all);
	return n;
}

typedef struct {
	void (*handler)(int number);
	int flags, blocked; // blocked: by this thread
} signal_state;

static void read_signals(signal_state all[SIGNALS])
{
	sigset_t mask;
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	for (int i = 1; i < SIGNALS; i++) {
		struct sigaction found = { .sa_handler = SIG_DFL };
		(void) sigaction(i, NULL, &found); // glibc keeps two for itself
		all[i].handler = found.sa_handler;
		all[i].flags = found.sa_flags;
		all[i].blocked = sigismember(&mask, i);
	}
}

// The suite sends to peers that have gone. handler: the host's for SIGPIPE.
static void run_in_host(const char *address, void (*handler)(int number))
{
	signal_state before[SIGNALS] = { 0 }, after[SIGNALS] = { 0 };
	const chi_key key = key_of(1);
	void (*const old)(int number) = signal(SIGPIPE, handler);
	read_signals(before);
	const int count = threads();
	const net_suite_place place = { .listener = chi_connections_open(&key, false),
		.dialler = chi_connections_open(&key, false),
		.address = address,
		.nowhere = "127.0.0.1:1" };
	net_suite_run(&place);
	assert_int_equal(threads(), count);
	read_signals(after);
	assert_memory_equal(before, after, sizeof before);
	assert_int_equal(pipes, 0);
	chi_connections_free(place.dialler);
	chi_connections_free(place.listener);
	(void) signal(SIGPIPE, old);
}

TEST(a_hosts_signals_and_threads_are_its_own)
{
	char own[64];
	own_address(own, sizeof own);
	if (!has_tcp())
		skip();
	const char *const addresses[] = { "127.0.0.1:0", own[0] == '\0' ? "localhost:0" : own };
	for (int i = 0; i < 2; i++) {
		run_in_host(addresses[i], SIG_DFL);
		run_in_host(addresses[i], count_pipe);
	}
}

// ---- Peers without the key

static chi_connections *open_listener(const chi_key *key, uint64_t *listener, char bound[64])
{
	chi_key copy = *key;
	chi_connections *c = chi_connections_open(&copy, false);
	chi_key_clear(&copy);
	assert_non_null(c);
	assert_int_equal(c->table.listen(c->self, "127.0.0.1:0", listener, bound, 64), CHOIR_OK);
	return c;
}

static uint64_t accept_one(chi_connections *c, uint64_t listener)
{
	uint64_t connection = 0;
	choir_connection_wait w = { .connection = listener, .receive = true };
	for (int i = 0; i < 1000 && connection == 0; i++) {
		assert_int_equal(c->table.wait(c->self, &w, 1, chi_clock_now() + 0.01), CHOIR_OK);
		assert_int_equal(c->table.accept(c->self, listener, &connection), CHOIR_OK);
	}
	assert_true(connection != 0);
	return connection;
}

// Receives until a failure. No byte may come.
static choir_status refuses(chi_connections *c, uint64_t connection)
{
	choir_status status = CHOIR_OK;
	char byte;
	size_t got = 0;
	choir_connection_wait w = { .connection = connection, .receive = true };
	if (c->table.wait(c->self, &w, 1, chi_clock_now() + 0.01) == CHOIR_OK)
		status = c->table.receive(c->self, connection, &byte, 1, &got);
	assert_int_equal(got, 0);
	return status;
}

TEST(another_key_is_refused_on_both_ends)
{
	if (!has_tcp())
		skip();
	const chi_key keys[] = { key_of(1), key_of(2) };
	uint64_t listener, b;
	char bound[64];
	chi_connections *l = open_listener(&keys[0], &listener, bound);
	chi_key other = keys[1];
	chi_connections *d = chi_connections_open(&other, false);
	chi_key_clear(&other); // the table has a copy
	assert_int_equal(d->table.connect(d->self, bound, &b), CHOIR_OK);
	const uint64_t a = accept_one(l, listener);
	choir_status at_listener = CHOIR_OK, at_dialler = CHOIR_OK;
	for (int i = 0; i < 1000 && (at_listener == CHOIR_OK || at_dialler == CHOIR_OK); i++) {
		at_dialler = at_dialler == CHOIR_OK ? refuses(d, b) : at_dialler;
		at_listener = at_listener == CHOIR_OK ? refuses(l, a) : at_listener;
	}
	assert_int_equal(at_listener, CHOIR_INVALID);
	assert_int_equal(at_dialler, CHOIR_INVALID);
	assert_int_equal(refuses(l, a), CHOIR_PEER_LOST); // for ever
	chi_connections_free(d);
	chi_connections_free(l);
}

static int raw_socket(const char *bound)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t) atoi(strchr(bound, ':') + 1)) };
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
	return fd;
}

TEST(random_bytes_are_refused_without_a_byte_for_the_owner)
{
	if (!has_tcp())
		skip();
	const chi_key key = key_of(1);
	uint64_t listener;
	char bound[64];
	chi_connections *l = open_listener(&key, &listener, bound);
	unsigned char noise[65536];
	uint32_t x = 1;
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (unsigned char) ((x = x * 1664525u + 1013904223u) >> 24);
	for (int kind = 0; kind < 4; kind++) {
		// Random bytes; a TLS record of random bytes; a half record; a scanner that says nothing.
		static const unsigned char record[] = { 22, 3, 1, 0x10, 0 };
		const int fd = raw_socket(bound);
		const uint64_t a = accept_one(l, listener);
		if (kind == 1 || kind == 2)
			assert_int_equal(send(fd, record, sizeof record, 0), sizeof record);
		for (int i = 0; i < 160 && kind < 2; i++) // 10 MB
			(void) send(fd, noise, sizeof noise, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (kind >= 2)
			shutdown(fd, SHUT_WR);
		choir_status status = CHOIR_OK;
		for (int i = 0; i < 1000 && status == CHOIR_OK; i++)
			status = refuses(l, a);
		assert_int_equal(status, kind < 2 ? CHOIR_INVALID : CHOIR_PEER_LOST);
		l->table.drop(l->self, a);
		close(fd);
	}
	chi_connections_free(l);
}

TEST(no_more_descriptors_is_an_error)
{
	if (!has_tcp())
		skip();
	const chi_key key = key_of(1);
	uint64_t listener, none;
	char bound[64];
	chi_connections *l = open_listener(&key, &listener, bound);
	const int fd = raw_socket(bound);
	int all[1024], n = 0;
	struct rlimit before, low;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 40;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < 1024 && (all[n] = dup(fd)) >= 0)
		n++;
	assert_int_equal(l->table.accept(l->self, listener, &none), CHOIR_IO);
	assert_text_holds(choir_error(), "descriptors");
	assert_int_equal(l->table.connect(l->self, bound, &none), CHOIR_IO);
	while (n > 0)
		close(all[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(l->table.accept(l->self, listener, &none), CHOIR_OK);
	assert_int_equal(none, 0); // the stranger was sent away
	close(fd);
	chi_connections_free(l);
}

TEST(wrong_addresses_are_named)
{
	const chi_key key = key_of(1);
	static const char *const wrong[] = { "", ":", "host", "host:", "host:x", "host:123456",
		":7000", "[::1]", "127.0.0.1:65536", "[::1]:x", "unix:" };
	chi_connections *c = chi_connections_open(&key, false),
					*bare = chi_connections_open(NULL, false);
	uint64_t number;
	char bound[64], text[512];
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(c->table.connect(c->self, wrong[i], &number), CHOIR_INVALID);
		assert_int_equal(
				c->table.listen(c->self, wrong[i], &number, bound, sizeof bound), CHOIR_INVALID);
		assert_non_null(strstr(choir_error(), wrong[i]));
	}
	memset(text, 'a', sizeof text - 1);
	memcpy(text, "unix:", 5);
	text[sizeof text - 1] = '\0';
	assert_int_equal(c->table.connect(c->self, text, &number), CHOIR_INVALID);
	assert_int_equal(bare->table.connect(bare->self, "127.0.0.1:9", &number), CHOIR_INVALID);
	assert_text_holds(choir_error(), "key");
	if (has_tcp())
		assert_int_equal(
				c->table.connect(c->self, "no.such.host.invalid:9", &number), CHOIR_NOT_FOUND);
	chi_connections_free(bare);
	chi_connections_free(c);
}

static bool listens_at(const char *host, const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t) atoi(port)) };
	inet_pton(AF_INET, host, &to.sin_addr);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool connected = connect(fd, (const struct sockaddr *) &to, sizeof to) == 0;
	close(fd);
	return connected;
}

static bool is_loopback_name(const char *name)
{
	const struct addrinfo hints = { .ai_family = AF_INET };
	struct addrinfo *found;
	if (getaddrinfo(name, NULL, &hints, &found) != 0)
		return false;
	const struct sockaddr_in *first = (const struct sockaddr_in *) (const void *) found->ai_addr;
	const bool loopback = ntohl(first->sin_addr.s_addr) >> 24 == 127;
	freeaddrinfo(found);
	return loopback;
}

// In /etc/hosts, of a loopback address. Leaves to as it is if there is none.
static void find_other_name(const char *own, char *to, size_t size)
{
	const struct hostent *h;
	sethostent(0);
	while ((h = gethostent()) != NULL)
		if (h->h_addrtype == AF_INET && (unsigned char) h->h_addr_list[0][0] == 127 &&
				strcmp(h->h_name, own) != 0 && strchr(h->h_name, '.') == NULL)
			snprintf(to, size, "%.60s:0", h->h_name);
	endhostent();
}

// Other hosts know another address by this machine's name.
TEST(a_host_name_of_the_loopback_address_means_all_addresses)
{
	const chi_key key = key_of(1);
	char name[64] = "", address[80], bound[80], more[80], other[80] = "";
	uint64_t named, fixed;
	assert_int_equal(gethostname(name, sizeof name - 1), 0);
	if (!has_tcp() || !is_loopback_name(name) || strstr(name, "localhost") != NULL)
		skip();
	chi_connections *c = chi_connections_open(&key, false);
	snprintf(address, sizeof address, "%s:0", name);
	assert_int_equal(c->table.listen(c->self, address, &named, bound, sizeof bound), CHOIR_OK);
	assert_int_equal(strncmp(bound, name, strlen(name)), 0);
	assert_true(listens_at("127.9.9.9", strrchr(bound, ':') + 1));
	c->table.describe(c->self, named, more, sizeof more);
	assert_text_holds(more, "all addresses");
	find_other_name(name, other, sizeof other);
	const char *const exact[] = { "127.0.0.1:0", "localhost:0", other };
	for (int i = 0; i < (other[0] != '\0' ? 3 : 2); i++) {
		assert_int_equal(
				c->table.listen(c->self, exact[i], &fixed, bound, sizeof bound), CHOIR_OK);
		assert_true(listens_at("127.0.0.1", strrchr(bound, ':') + 1));
		assert_false(listens_at("127.9.9.9", strrchr(bound, ':') + 1));
		c->table.describe(c->self, fixed, more, sizeof more);
		assert_string_equal(more, "");
	}
	chi_connections_free(c);
}

// ---- Files

TEST(a_dead_processes_socket_is_replaced)
{
	char folder[] = "/tmp/choir_net_XXXXXX", address[64], bound[64];
	uint64_t number;
	assert_non_null(mkdtemp(folder));
	snprintf(address, sizeof address, "unix:%s/s", folder);
	struct sockaddr_un stale = { .sun_family = AF_UNIX };
	snprintf(stale.sun_path, sizeof stale.sun_path, "%s", address + 5);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *) &stale, sizeof stale), 0);
	close(fd); // without unlink, as by a kill
	chi_connections *c = chi_connections_open(NULL, false);
	assert_int_equal(c->table.listen(c->self, address, &number, bound, sizeof bound), CHOIR_OK);
	chi_connections_free(c);
	FILE *f = fopen(address + 5, "w"); // no socket: not removed
	assert_non_null(f);
	fclose(f);
	c = chi_connections_open(NULL, false);
	assert_int_equal(c->table.listen(c->self, address, &number, bound, sizeof bound), CHOIR_STATE);
	chi_connections_free(c);
	assert_int_equal(unlink(address + 5), 0);
	assert_int_equal(rmdir(folder), 0);
}

TEST(keys_are_files_of_their_owner)
{
	char folder[] = "/tmp/choir_net_XXXXXX", path[64], link[64];
	chi_key key, again;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/key", folder);
	snprintf(link, sizeof link, "%s/link", folder);
	assert_int_equal(chi_key_read(path, &key), CHOIR_NOT_FOUND);
	assert_int_equal(chi_key_make(path), CHOIR_OK);
	assert_int_equal(chi_key_make(path), CHOIR_STATE);
	assert_int_equal(chi_key_read(path, &key), CHOIR_OK);
	assert_int_equal(chi_key_read(path, &again), CHOIR_OK);
	assert_int_equal(key.size, 32);
	assert_memory_equal(key.bytes, again.bytes, 32);
	assert_true(chi_key_job(&key) == chi_key_job(&again) && chi_key_job(&key) != 0);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(chi_key_read(link, &again), CHOIR_INVALID);
	assert_text_holds(choir_error(), "link");
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(chi_key_read(path, &again), CHOIR_INVALID);
	assert_text_holds(choir_error(), "640");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 31), 0);
	assert_int_equal(chi_key_read(path, &again), CHOIR_INVALID);
	assert_text_holds(choir_error(), "31*32");
	assert_int_equal(truncate(path, 257), 0);
	assert_int_equal(chi_key_read(path, &again), CHOIR_INVALID);
	assert_int_equal(chi_key_read(folder, &again), CHOIR_INVALID);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}
