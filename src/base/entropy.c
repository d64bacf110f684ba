// Random bytes of the system.
#include "base/entropy.h"

#include <sys/random.h>

choir_status chi_entropy(void *to, size_t bytes)
{
	if (getrandom(to, bytes, 0) == (ssize_t) bytes)
		return CHOIR_OK;
	return choir_fail(CHOIR_IO, "the system gives no random bytes");
}
