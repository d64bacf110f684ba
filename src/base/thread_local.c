// Thread-local values by pthread keys, made on first use and never deleted.
#include "base/thread_local.h"

#include "choir/status.h"

void *chi_thread_local_get(chi_thread_local *s)
{
	return chi_atomic32_load(&s->made) ? pthread_getspecific(s->key) : NULL;
}

static bool make(chi_thread_local *s)
{
	chi_mutex_lock(&s->lock);
	bool made = chi_atomic32_load(&s->made);
	if (!made) {
		made = pthread_key_create(&s->key, s->free) == 0;
		chi_atomic32_store(&s->made, made);
	}
	chi_mutex_unlock(&s->lock);
	return made;
}

bool chi_thread_local_set(chi_thread_local *s, void *value)
{
	if (make(s) && pthread_setspecific(s->key, value) == 0)
		return true;
	choir_fail(CHOIR_NO_MEMORY, "%s: the system has no more room for thread-local values",
			s->lock.name);
	return false;
}
