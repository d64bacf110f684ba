// The tables of connections run one suite: the simulation, Unix sockets, TCP with and without
// encryption. Peers without the key get no byte.
#include "net/connections.h"

#include "net/net_sim.h"
#include "net/suite.h"
#include "test.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
