// The options of a command as a table. It reads arguments, prints help, and writes metadata.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// EXIT_STOPPED (EX_TEMPFAIL of sysexits.h): a signal stopped a training after a checkpoint.
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_STOPPED = 75 };

typedef enum {
	OPTION_FLAG, // to: bool
	OPTION_TEXT, // to: const char *
	OPTION_CHOICE, // to: const char *, one of choices
	OPTION_INTEGER, // to: int64_t, from min to max
	OPTION_SEED, // to: uint64_t
	OPTION_NUMBER // to: double, finite and greater than 0; also 0 if zero is set
} option_kind;

typedef struct {
	const char *name; // "--batch"
	const char *value; // in the help; NULL: a flag
	option_kind kind;
	void *to; // has the default
	const char *help;
	const char *alias; // older name, still read, and the name in metadata; NULL: none
	int64_t min, max; // of OPTION_INTEGER; max 0: no limit
	const char *const *choices; // of OPTION_CHOICE, ending in NULL
	bool zero; // OPTION_NUMBER: 0 is allowed
	bool recorded; // by options_write; not for flags
	bool own; // workers may differ
} option;

typedef struct {
	const char *name; // "choir train"
	const char *operands; // "FILE", or "[options] -- PROGRAM"; NULL: none
	int max_operands; // 0: 1
	bool optional; // the operand
	const char *about; // begins with one sentence
	const char *examples[2];
	size_t n;
	const option *options;
} command;

extern const char json_help[], devices_help[], replicas_help[];

// Reads the arguments after the command's name. After "--" all are operands, of which there are at
// most max_operands; those not given stay unchanged. Help and wrong use end the process.
void options_read(const command *c, int argc, char **argv, const char *operands[]);

// Writes a value in ASCII; nothing for 0, NULL and off. Returns the length; size or more: too
// long.
size_t options_value(const option *o, char *to, size_t size);
// Writes the recorded options with a value as lines PREFIX/KEY=VALUE. False: too long.
bool options_write(const command *c, const char *prefix, char *text, size_t size);
// The name in metadata: the oldest one, without "--".
const char *options_key(const option *o);
// The choice that text names, also by an older word; NULL: none.
const char *options_choice(const option *o, const char *text);
// Sets an option from a written value. Changes text, which must live as long as the option.
bool options_read_back(const option *o, char *text);

// Prints "choir train: text" on standard error, escaped, after standard output.
void print_error(const char *who, const char *text);
// The same with a format. Returns EXIT_USAGE.
__attribute__((format(printf, 2, 3))) int wrong_use(const command *c, const char *fmt, ...);
// The same with choir_error(). Returns EXIT_FAILED.
int failed(const command *c);

// Prints an unknown name of a kind ("--model", "command") with a similar one and all known ones.
// Returns EXIT_USAGE.
int unknown_name(
		const command *c, const char *of, const char *name, size_t n, const char *const known[]);
