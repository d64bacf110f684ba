// What the workers of a strategy tell each other about their data, so that they stop together and
// nobody waits for one that has stopped. A word goes from each to each when a distributed dataset
// is made, and in each step: how it went, how many examples there are, and of a failure its text.
// So a step is one if anybody has examples, all know how many there are in it, and who fails alone
// fails everywhere, with the same step behind all of them.
#include "input/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cross/peers.h"
#include "strategy/strategy.h"

enum { MOST_TEXT = 232 };

struct chi_input_word {
	int32_t status;
	int32_t end; // CHOIR_END: no examples
	int64_t examples; // of this worker's replicas
	int64_t whole; // of all, where each worker reads all of them; else 0
	char text[MOST_TEXT]; // of a failure
};
typedef chi_input_word word;

static word make_word(choir_status status, int64_t examples, int64_t whole)
{
	word w = { .status = (int32_t) status, .examples = examples, .whole = whole };
	if (status == CHOIR_END) {
		w.status = CHOIR_OK;
		w.end = 1;
	}
	if (w.status != CHOIR_OK)
		snprintf(w.text, sizeof w.text, "%.*s", MOST_TEXT - 1, choir_error());
	return w;
}

// Of several failures, each worker reports its own, and all others the first one's.
static choir_status find_failure(const chi_peers *p, const word all[])
{
	if (all[p->worker].status != CHOIR_OK)
		return choir_error_status();
	for (int w = 0; w < p->workers; w++)
		if (all[w].status != CHOIR_OK)
			return choir_fail(CHOIR_CANCELLED, "distributed dataset: worker %d: %.*s", w,
					MOST_TEXT - 1, all[w].text);
	return CHOIR_OK;
}

chi_input_word *chi_input_new_words(const choir_strategy *s)
{
	return chi_alloc_array((size_t) s->peers->workers, sizeof(word));
}

choir_status chi_input_agree_made(
		choir_strategy *s, choir_status own, uint64_t signature, const char *differs)
{
	if (s->peers == NULL)
		return own;
	word *all = chi_input_new_words(s);
	if (all == NULL)
		return chi_strategy_give_up(s, choir_error_status());
	const word w = make_word(own, 0, (int64_t) signature);
	choir_status status =
			chi_peers_gather(s->peers, &w, sizeof w, all, "making a distributed dataset");
	if (status == CHOIR_OK)
		status = find_failure(s->peers, all);
	for (int i = 0; status == CHOIR_OK && i < s->peers->workers; i++)
		if (all[i].whole != all[0].whole)
			status = choir_fail(CHOIR_INVALID, "worker %d's %s", i, differs);
	chi_free(all);
	return status;
}

// How many examples the step has; the same for all.
static choir_status count_step(choir_distributed_dataset *data, const word all[])
{
	const chi_peers *p = data->strategy->peers;
	bool ended = true;
	data->all = 0;
	for (int w = 0; w < p->workers; w++) {
		data->all += all[w].examples;
		ended = ended && all[w].end;
		if (all[w].whole != all[0].whole)
			return choir_fail(CHOIR_INVALID,
					"distributed dataset: step %" PRId64 ": worker %d read %" PRId64
					" examples and worker 0 %" PRId64 ": their data differ",
					data->steps, w, all[w].whole, all[0].whole);
	}
	return ended ? CHOIR_END : CHOIR_OK;
}

choir_status chi_input_agree_step(
		choir_distributed_dataset *data, const chi_target *to, choir_status own)
{
	choir_strategy *s = data->strategy;
	int64_t examples = 0;
	for (int i = 0; own == CHOIR_OK && i < s->replicas; i++)
		examples += to->rows[i];
	data->all = examples;
	if (s->peers == NULL)
		return own;
	const word w = make_word(own, examples, own == CHOIR_OK ? to->whole : 0);
	choir_status status = chi_peers_gather(s->peers, &w, sizeof w, data->words,
			"reading step %" PRId64 " of pass %" PRId64 " of the data", data->steps, data->pass);
	if (status == CHOIR_OK)
		status = find_failure(s->peers, data->words);
	return status == CHOIR_OK ? count_step(data, data->words) : status;
}
