// The calls of system.h, in terms of the scheduler. Mutexes and conditions are kept where the
// system's would be; all zeros is an open mutex, as PTHREAD_MUTEX_INITIALIZER has it.
#include "system.h"

#include "base/processors.h"
#include "scheduler.h"

#include <errno.h>
#include <linux/futex.h>

static int processors = 1;

void scheduled_machine(int count)
{
	processors = count;
}

// A thread and one; 0: nobody.
static int *owner_of(pthread_mutex_t *m)
{
	return &m->__data.__lock;
}

int scheduled_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attributes)
{
	(void) attributes;
	*owner_of(m) = 0;
	return 0;
}

int scheduled_mutex_destroy(pthread_mutex_t *m)
{
	(void) m;
	return 0;
}

int scheduled_mutex_lock(pthread_mutex_t *m)
{
	scheduler_point();
	while (*owner_of(m) != 0)
		scheduler_wait(m, "for a mutex", -1);
	*owner_of(m) = scheduler_current() + 1;
	return 0;
}

int scheduled_mutex_unlock(pthread_mutex_t *m)
{
	*owner_of(m) = 0;
	scheduler_wake(m, true);
	scheduler_point();
	return 0;
}

int scheduled_cond_init(pthread_cond_t *c, const pthread_condattr_t *attributes)
{
	(void) c, (void) attributes;
	return 0;
}

int scheduled_cond_destroy(pthread_cond_t *c)
{
	(void) c;
	return 0;
}

static double seconds_of(const struct timespec *t)
{
	return t == NULL ? -1 : (double) t->tv_sec + 1e-9 * (double) t->tv_nsec;
}

static int wait_for(pthread_cond_t *c, pthread_mutex_t *m, double deadline)
{
	*owner_of(m) = 0;
	scheduler_wake(m, true);
	const bool in_time = scheduler_wait(c, "for a condition", deadline);
	scheduled_mutex_lock(m);
	return in_time ? 0 : ETIMEDOUT;
}

int scheduled_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	return wait_for(c, m, -1);
}

int scheduled_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	return wait_for(c, m, seconds_of(until));
}

int scheduled_cond_signal(pthread_cond_t *c)
{
	scheduler_wake(c, false);
	scheduler_point();
	return 0;
}

int scheduled_cond_broadcast(pthread_cond_t *c)
{
	scheduler_wake(c, true);
	scheduler_point();
	return 0;
}

int scheduled_create(
		pthread_t *id, const pthread_attr_t *attributes, void *(*fn)(void *arg), void *arg)
{
	(void) attributes;
	*id = (pthread_t) scheduler_start(fn, arg);
	scheduler_point();
	return 0;
}

int scheduled_join(pthread_t id, void **result)
{
	(void) result;
	scheduler_join((int) id);
	return 0;
}

pthread_t scheduled_self(void)
{
	return (pthread_t) scheduler_current();
}

int scheduled_setname(pthread_t id, const char *name)
{
	scheduler_name((int) id, name);
	return 0;
}

int scheduled_clock(clockid_t clock, struct timespec *t)
{
	(void) clock;
	const double now = scheduler_now();
	t->tv_sec = (time_t) now;
	t->tv_nsec = (long) ((now - (double) t->tv_sec) * 1e9);
	return 0;
}

long scheduled_syscall(long number, void *word, int operation, uint32_t value,
		const struct timespec *until, void *other, unsigned bits)
{
	(void) number, (void) other, (void) bits;
	scheduler_point();
	if ((operation & FUTEX_CMD_MASK) == FUTEX_WAKE) {
		scheduler_wake(word, value > 1);
		return 0;
	}
	// The kernel compares and puts to sleep under a lock of its own.
	if (*(_Atomic uint32_t *) word != value)
		errno = EAGAIN;
	else if (scheduler_wait(word, "at a futex", seconds_of(until)))
		return 0;
	else
		errno = ETIMEDOUT;
	return -1;
}

// Instead of src/base/processors.c: neither the machine nor the container of the tests has a say.
int chi_processor_count(void)
{
	return processors;
}

bool chi_processor_mask_is_narrowed(void)
{
	return false;
}

void chi_processor_set_read(chi_processor_set *out)
{
	*out = (chi_processor_set){ 0 };
}

bool chi_processor_sets_overlap(const chi_processor_set *a, const chi_processor_set *b)
{
	(void) a, (void) b;
	return false;
}

bool chi_thread_pin(int first, int count)
{
	(void) first, (void) count;
	return true;
}

void scheduled_point(void)
{
	scheduler_point();
}

void scheduled_write(void)
{
	scheduler_write();
}

void scheduled_spin(void)
{
	scheduler_spin();
}
