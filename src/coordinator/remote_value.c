// A result stays with its closure until the program fetches it.
#include "coordinator/remote_value.h"

#include "coordinator/closure_message.h"

choir_status chi_remote_value_unpack(choir_remote_value *v)
{
	chi_unpack u = { .data = v->closure->result.data, .bytes = v->closure->result.bytes };
	v->set = choir_values_new(v->coordinator->strategy);
	CHOIR_TRY(chi_made(v->set));
	const choir_status status = u.bytes == 0 ? CHOIR_OK : chi_values_unpack(v->set, &u);
	chi_pack_free(&v->closure->result);
	return status;
}

void choir_remote_value_free(choir_remote_value *v)
{
	if (v == NULL)
		return;
	chi_mutex_lock(&v->coordinator->network.lock);
	chi_closure_drop(v->closure);
	chi_mutex_unlock(&v->coordinator->network.lock);
	choir_values_free(v->set);
	chi_free(v);
}
