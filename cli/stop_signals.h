// The signals that ask a command to stop: SIGTERM, SIGINT and SIGHUP.
#pragma once

// Signals that are ignored at the start stay ignored, as under nohup. flags: of sigaction.
void catch_stop_signals(void (*handler)(int number), int flags);
