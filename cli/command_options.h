// The options of a command: a table says what there is, one function reads the arguments, another
// prints the help. Numbers are read strictly, and what is not known is answered with what is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a command ends with.
// EXIT_STOPPED (EX_TEMPFAIL): a training was stopped as asked and can go on from its checkpoint.
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_STOPPED = 75 };

typedef enum {
	OPTION_FLAG, // to: bool
	OPTION_TEXT, // to: const char *
	OPTION_CHOICE, // to: const char *, one of choices
	OPTION_INTEGER, // to: int64_t, from least to most
	OPTION_SEED, // to: uint64_t
	OPTION_NUMBER // to: double, finite and greater than 0, or 0 where zero is set
} option_kind;

typedef struct {
	const char *name; // "--batch"
	const char *value; // what the help calls its value; NULL: a flag
	const char *help;
	option_kind kind;
	void *to; // holds the default, and is set where the option is given
	int64_t min, max; // of OPTION_INTEGER; most 0: as large as they come
	const char *const *choices; // of OPTION_CHOICE, ending in NULL
	bool zero; // OPTION_NUMBER: 0 is a value, too
	bool recorded; // options_write writes it; no flag
	bool own; // each of several workers may have another
} option;

typedef struct {
	const char *name; // "choir train"
	const char *operands; // "FILE"; "": none
	int max_operands;
	bool needs_operand; // at least one
	const char *about; // for the help
	size_t n;
	const option *options;
} command;

typedef enum { OPTIONS_GIVEN, OPTIONS_HELP, OPTIONS_WRONG } options_result;

// Reads the arguments (without the command's name). operands has room for the command's most;
// the ones that are not given stay as they are. OPTIONS_HELP: the help was printed;
// OPTIONS_WRONG: what is wrong was said on standard error.
options_result options_read(const command *c, int argc, char **argv, const char *operands[]);

// What an option is now, in ASCII; nothing for what is 0, NULL or off. Returns the length;
// size or more: there is no room for it.
size_t options_value(const option *o, char *to, size_t size);
// What the recorded options are now, as lines of PREFIX/NAME=VALUE that have no byte but those of
// ASCII; none for those that are 0 or NULL. False: they need more than size bytes.
bool options_write(const command *c, const char *prefix, char *text, size_t size);
// Sets an option from what was written of it; text is the option's from then on, and changed.
// False: it is no value of the option.
bool options_read_back(const option *o, char *text);

// "choir train: text" as a line on standard error, after what was printed before. What a file has
// put into text commands no terminal.
void print_error(const char *who, const char *text);
// "choir train: " and a message, and a newline, on standard error. Returns EXIT_USAGE.
__attribute__((format(printf, 2, 3))) int wrong_use(const command *c, const char *fmt, ...);
// The same with choir_error(). Returns EXIT_FAILED.
int failed(const command *c);

// The known name that is most like text; NULL: none is.
const char *nearest(const char *text, size_t n, const char *const known[]);
