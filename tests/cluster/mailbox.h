// A transport that uses only the public headers: two workers in one process, simple and slow.
#pragma once

#include "choir/extend/transport_table.h"

typedef struct mailbox mailbox; // what the two workers share

typedef struct {
	mailbox *box;
	int worker;
} mailbox_argument; // of the table's open

mailbox *mailbox_new(void);
void mailbox_free(mailbox *b); // after both workers have left
extern const choir_transport_table mailbox_table; // "mailbox"
