// Memory of another process is copied, and reads that cannot be done fail.
#include "base/process_memory.h"

#include "base/alloc.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS = 2000 };

// A process that has the numbers from 1 on.
static pid_t start(int *numbers)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		alarm(20);
		for (int i = 0; i < NUMBERS; i++)
			numbers[i] = i + 1;
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

TEST(parts_of_another_process_are_read)
{
	int *numbers = chi_alloc_array(NUMBERS, sizeof *numbers);
	int *found = chi_alloc_array(NUMBERS, sizeof *found);
	chi_process_memory_part *part = chi_alloc_array(NUMBERS, sizeof *part);
	const pid_t pid = start(numbers);
	for (int i = 0; i < NUMBERS; i++) // in reverse
		part[i] = (chi_process_memory_part){ &found[NUMBERS - 1 - i], (uintptr_t) &numbers[i],
			sizeof found[0] };
	if (!chi_process_memory_read(pid, part, NUMBERS))
		skip(); // the system does not allow it
	for (int i = 0; i < NUMBERS; i++)
		assert_int_equal(found[i], NUMBERS - i);
	assert_true(chi_process_memory_read(pid, part, 0));
	part[NUMBERS - 1].from = 4096; // no memory
	assert_false(chi_process_memory_read(pid, part, NUMBERS));
	chi_process_memory_refuse(true);
	assert_false(chi_process_memory_read(pid, part, 1));
	chi_process_memory_refuse(false);
	assert_true(chi_process_memory_read(pid, part, 1));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(chi_process_memory_read(pid, part, 1));
	chi_free(part);
	chi_free(found);
	chi_free(numbers);
}
