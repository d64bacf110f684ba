// Handlers of the signals that ask a command to stop.
#include "stop_signals.h"

#include <signal.h>
#include <stddef.h>

void catch_stop_signals(void (*handler)(int number), int flags)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		struct sigaction before;
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}
