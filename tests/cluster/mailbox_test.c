// The public suite of transports (choir/extend/suite.h) on a transport from outside, and on
// relatives of it that do one thing wrong.
#include "choir/extend/suite.h"
#include "cluster/mailbox.h"
#include "test.h"

enum { ROUNDS = 16 };

static const void *argument_of(int round, int worker, void *user)
{
	static mailbox_argument arguments[ROUNDS][2];
	mailbox **boxes = user;
	if (boxes[round] == NULL)
		boxes[round] = mailbox_new();
	arguments[round][worker] = (mailbox_argument){ boxes[round], worker };
	return &arguments[round][worker];
}

static choir_status run(const choir_transport_table *table)
{
	mailbox *boxes[ROUNDS] = { NULL };
	const choir_status status = choir_suite_run(
			CHOIR_OPTIONS(choir_suite_options, .transport = table, .argument = argument_of), NULL,
			boxes);
	for (int i = 0; i < ROUNDS; i++)
		mailbox_free(boxes[i]);
	return status;
}

TEST(the_mailbox_passes)
{
	if (run(&mailbox_table) != CHOIR_OK)
		fail_msg("%s", choir_error());
}

static int always_zero(const void *self)
{
	(void) self;
	return 0;
}

static choir_status send_an_empty_message(
		void *self, int to, int tag, const void *data, size_t bytes, uint64_t *request)
{
	return mailbox_table.send(self, to, tag, data, bytes == 7 ? 0 : bytes, request);
}

static choir_status send_more(
		void *self, int to, int tag, const void *data, size_t bytes, uint64_t *request)
{
	return mailbox_table.send(self, to, tag, data, bytes == 100 ? 101 : bytes, request);
}

static choir_status send_by_half_a_tag(
		void *self, int to, int tag, const void *data, size_t bytes, uint64_t *request)
{
	return mailbox_table.send(self, to, tag / 2, data, bytes, request);
}

static choir_status receive_by_half_a_tag(
		void *self, int from, int tag, void *data, size_t capacity, uint64_t *request)
{
	return mailbox_table.receive(self, from, tag / 2, data, capacity, request);
}

static void abort_without_a_reason(void *self, const char *why)
{
	(void) why;
	mailbox_table.abort(self, "");
}

static choir_status test_without_a_name(void *self, uint64_t request, bool *done, size_t *bytes)
{
	const choir_status status = mailbox_table.test(self, request, done, bytes);
	return status == CHOIR_PEER_LOST ? choir_fail(status, "the other worker left") : status;
}

static void assert_found(const choir_transport_table *table, const char *check)
{
	assert_int_equal(run(table), CHOIR_INTERNAL);
	assert_text_holds(choir_error(), check);
}

TEST(broken_transports_fail)
{
	choir_transport_table t = mailbox_table;
	t.worker = always_zero;
	assert_found(&t, "the first: workers are numbered");
	t = mailbox_table;
	t.send = send_an_empty_message;
	assert_found(&t, "the first: bytes arrive");
	t.send = send_more;
	assert_found(&t, "the first: a message may be shorter than its room");
	t.send = send_by_half_a_tag;
	t.receive = receive_by_half_a_tag;
	assert_found(&t, "the first: tags keep their order");
	t = mailbox_table;
	t.abort = abort_without_a_reason;
	assert_found(&t, "1 of 7*the first: an abort reaches the other worker");
	t = mailbox_table;
	t.test = test_without_a_name;
	assert_found(&t, "1 of 7*the first: a worker that leaves is named");
}

TEST(wrong_subjects_are_refused)
{
	choir_transport_table t = mailbox_table;
	t.test = NULL;
	assert_int_equal(run(&t), CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"mailbox\"*slot test");
	t.version = 9;
	assert_int_equal(run(&t), CHOIR_INVALID);
	assert_text_holds(choir_error(), "version 9*version 1");
}
