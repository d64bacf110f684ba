// Messages between the supervisor, agents and `choir status`, in frames of the room net.
#pragma once

#include "net/net_frame.h"
#include "supervisor/restart_policy.h"

enum {
	CHI_AGENT_JOIN = CHI_NET_OWN, // agent: attempt, worker, host, pid
	CHI_AGENT_START, // supervisor: start the program
	CHI_AGENT_REPORT, // agent: a report
	CHI_AGENT_OUTPUT, // agent: bytes; the stream is 1 or 2
	CHI_AGENT_ENDED, // agent: a report and an end
	CHI_AGENT_STOP, // supervisor: a signal for the program
	CHI_AGENT_KILL, // supervisor: end the program, then yourself
	CHI_STATUS_ASK, // choir status: whether as JSON
	CHI_STATUS_TEXT // supervisor: bytes; empty: the end
};

typedef struct {
	int attempt, worker;
	long pid;
	char host[CHI_HOST_NAME];
} chi_agent_join;

void chi_agent_join_pack(const chi_agent_join *j, chi_pack *p);
choir_status chi_agent_join_unpack(chi_unpack *u, chi_agent_join *j);
void chi_report_pack(const chi_worker_report *r, chi_pack *p);
void chi_report_unpack(chi_unpack *u, chi_worker_report *r);
void chi_end_pack(const chi_process_end *end, chi_pack *p);
void chi_end_unpack(chi_unpack *u, chi_process_end *end);
// By the launcher's environment; CHOIR_NONE: none.
int chi_launcher_rank(void);
