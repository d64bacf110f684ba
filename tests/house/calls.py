"""The library prints nothing, ends nothing, and reaches the system only through base. What may be
called where is the table below. Argument: the project's folder."""

import re

from house import code, judge, must_find, project, read, sources

# (what it is, names of functions, the files under src that may call them, what to use instead). Two
# files may print and end: check.c, for programs that ask for it (choir_check), and lock.c, in debug
# builds, where locks are taken in the wrong order. process.c starts and ends processes for a supervisor.
RULES = [
    ("prints", r"v?f?printf|puts|fputs|putchar|putc|fputc|perror|fwrite", r"base/(check|lock)\.c",
     "a status and chi_log"),
    ("ends the program", r"exit|_exit|_Exit|quick_exit|abort|raise|kill|atexit", r"base/(check|lock|process)\.c",
     "a status"),
    ("allocates", r"malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|strdup|strndup|"
     r"asprintf|vasprintf|getline|alloca|open_memstream", r"base/alloc\.c", "base/alloc.h"),
    ("waits or locks", r"pthread_\w+|sem_\w+|sleep|usleep|nanosleep|sched_\w+|syscall|poll|select",
     r"base/\w+\.c", "base/lock.h, base/thread.h or base/gate.h"),
    ("is atomic", r"atomic_\w+|__atomic_\w+|__sync_\w+", r"base/\w+\.[ch]", "base/atomic.h"),
    ("reads the clock", r"clock_gettime|gettimeofday|time|clock", r"base/\w+\.c", "base/clock.h"),
    ("reads the time of day, which may jump", r"chi_clock_wall", r"(base/clock|trace/\w+)\.[ch]", "chi_clock_now"),
    ("touches files", r"f?open(?:at)?|fdopen|fread|fclose|fsync|close|p?read|p?write|rename|unlink|"
     r"mkdir|f?stat|opendir", r"base/\w+\.c", "base/file.h"),
    ("draws numbers of no seed", r"s?rand(?:om)?|[dlmj]rand48|getrandom|getentropy", r"base/entropy\.c",
     "base/philox.h"),
    ("changes the host", r"signal|sigaction|pthread_sigmask|setlocale|setenv|putenv|chdir|umask|fork",
     r"base/(thread|process)\.c", "nothing: a library is a guest"),
]


def check(root):
    complaints = []
    for path in sources(root, "src"):
        where = str(path.relative_to(root / "src"))
        for number, line in enumerate(code(read(path)).splitlines(), 1):
            for what, names, where_allowed, instead in RULES:
                if re.fullmatch(where_allowed, where):
                    continue
                for name in re.findall(rf"(?<![\w.>*])({names})\s*\(", line):
                    complaints.append(f"src/{where}:{number}: {name} {what}; use {instead}")
            if re.search(r"\((?:void|char) \*\*+\) ?&", line):
                complaints.append(f"src/{where}:{number}: a pointer is read as one of another type; its address "
                                  "fits void *")
    return complaints


must_find(check, {
    "src/op/a.c": '#include <stdio.h>\n// malloc(1) in words\nvoid f(void)\n{\n\tprintf("free(p)");\n'
                  "\ttable->free(p);\n\tops.open (x);\n\tchi_free(p);\n\tsnprintf(a, 1, b);\n}\n",
    "src/base/alloc.c": "void *a(void) { return malloc(1); }\n",
    "src/base/check.c": "void a(void) { exit(1); }\n",
    "src/base/other.c": "void a(void) { pthread_mutex_lock(x); exit(1); }\n",
    "src/train/b.c": "void a(void)\n{\n\tfree (p);\n\tt = time(NULL);\n\tpthread_join(t, 0);\n\tgrow((void **) &x->items, (void *) &y);\n}\n",
    "src/net/c.c": "double f(void)\n{\n\treturn chi_clock_wall() + 5;\n}\n",
    "cli/main.c": 'int main(void) { printf("x"); exit(0); }\n',
}, ["a.c:5: printf prints", "other.c:1: exit ends", "b.c:3: free allocates", "b.c:4: time reads",
    "b.c:5: pthread_join waits", "c.c:3: chi_clock_wall reads", "b.c:6: a pointer is read as"])
judge(check(project()))
