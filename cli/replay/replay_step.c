// Finds the last checkpoint before the step, and the first one at or after it.
#include "replay/replay.h"

#include "train/train.h"

#include <stdio.h>

enum { MAX_TEXT = 1024 };

// Whether it is undamaged and of choir train.
static bool usable(choir_checkpoint_list *l, size_t i, int64_t *steps)
{
	if (choir_checkpoint_list_check(l, i) == CHOIR_OK)
		return train_checkpoint_steps(l, i, steps);
	char text[MAX_TEXT];
	snprintf(text, sizeof text, "%s; skipped", choir_error());
	print_error("choir replay", text);
	return false;
}

choir_status replay_find(
		choir_checkpoint_list *l, const char *directory, int64_t step, replay_plan *plan)
{
	int64_t steps;
	size_t some = 0;
	*plan = (replay_plan){ 0 };
	for (size_t i = choir_checkpoint_list_steps(l); i-- > 0 && !plan->has_from;) {
		if (!usable(l, i, &steps))
			continue;
		some++;
		if (steps >= step) { // an earlier one is nearer to the step
			plan->next = i;
			plan->next_steps = steps;
			plan->has_next = true;
		} else {
			plan->from = i;
			plan->from_steps = steps;
			plan->has_from = true;
		}
	}
	return some > 0
			? CHOIR_OK
			: choir_fail(CHOIR_NOT_FOUND,
					  "%s: has no undamaged checkpoint; needs one of choir train", directory);
}
