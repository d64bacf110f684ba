"""libchoir.so and libchoir-suites.a export exactly what the public headers declare, and all of it begins
with choir_; what files of libchoir.a share begins with choir_ or chi_; only a few named variables can be
written. Arguments: the project's folder, libchoir.so, libchoir.a, a C compiler, libchoir-suites.a."""

import pathlib
import re
import subprocess
import sys

from house import code, judge, must_find, output, project, read, sources

# The variables of the library that are not constant, with what they are for. Those of one thread and
# those inside a function count too. A new one needs a good reason: the host is a program with other
# users of Choir in it.
WRITABLE = {
    "alloc.c": {"heap": "counts allocations, and lets the n-th one fail"},
    "instruction_set.c": {"chosen": "the instruction set that kernels are chosen for, once for the process"},
    "log.c": {"sink max_level": "where log lines go, and which", "inside": "this thread is logging"},
    "status.c": {"last": "this thread's last failure"},
    "text.c": {"c_locale c_locale_once": "numbers are written the same in every locale"},
    "team.c": {"own": "the team of this thread"},
    "processors.c": {"processors processors_once": "what the process may use, asked once"},
    "thread.c": {"forks forks_once": "how often the process was forked"},
    "fs.c": {"hook": "lets a test refuse a call on files, or write it down"},
    "file.c": {"names": "numbers temporary files"},
    "device.c": {"list_mutex list_changed kinds kind_count": "the device list"},
    "cuda_loader.c": {"cuda cuda_mutex asked_for wanted warned missing_why": "libchoir-cuda, once it is open"},
    "remote_device.c": {"all": "the connections to servers of devices, and the devices' numbers"},
    "remote_client.c": {"waits": "how often a server was waited for, for tests"},
    "peer_transfer.c": {"requests": "how often servers have asked other servers, for tests"},
    "kernel_registry.c": {"registry": "the kernel registry"},
    "hdf5_library.c": {"hdf5 hdf5_mutex": "the HDF5 library, once it is loaded, and who is in it",
                       "hdf5_print hdf5_print_data": "what the host has it do with errors"},
    "quarantine.c": {"quarantine_mutex": "memory that streams whose waits ended late may still use"},
    "stream.c": {"wait_timeout": "how long a stream is waited for, for tests"},
    "buffer_pool.c": {"pools": "pools of memory by device: they outlive strategies"},
    "dlpack.c": {"waiting": "tensors of others to be deleted", "hold": "on this thread, later"},
    "onednn_primitive.c": {"engine engine_lock have_engine": "oneDNN's engine: its own cache of code refers to it"},
    "onednn_cache.c": {"caches": "where each thread keeps its primitives"},
    "cross_device_ops.c": {"registry registered": "the registered cross-device operations"},
    "recursive_lock.c": {"self": "its address says which thread this is"},
    "lock.c": {"held held_count": "the locks this thread holds, in debug builds"},
    "transport.c": {"registry registered": "the registered transports"},
    "process_memory.c": {"refuses read_bytes": "whether other processes' memory cannot be read, and how much was, for tests"},
    "health.c": {"chi_health_page own writing": "what this process tells its supervisor"},
    "trace.c": {"sink chi_trace_wanted": "the trace sink", "own_spans": "what each thread records"},
    "context.c": {"top set_strategy called calls": "the context this thread is in"},
    "default_strategy.c": {"the_default default_lock": "the default strategy, made at its first use"},
    "strategy.c": {"made": "numbers strategies, so that messages tell two of a kind apart",
                   "registry registered": "the registered strategies"},
}
RUNTIME = re.compile(r"^(__|_init$|_fini$|_edata$|_end$|_ITM|CHOIR_\d)")


def declared(root, compiler):
    """The functions that the public headers declare, after the preprocessor."""
    public = root / "include" / "choir"
    names = set()
    text = "".join(f"#include <choir/{path.relative_to(public)}>\n" for path in sources(public, "."))
    done = subprocess.run([compiler, "-std=c11", "-E", "-I", str(root / "include"), "-x", "c", "-"],
                          input=text, capture_output=True, text=True, check=True)
    ours, kept = False, []
    for line in done.stdout.splitlines():
        if line.startswith("# "):
            ours = "/choir/" in line
        elif ours and not line.startswith("#"):
            kept.append(line)
    text = code("\n".join(kept))
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    for statement in text.split(";"):
        statement = re.sub(r"__attribute__\s*\(\(.*?\)\)(?=\s|$)", "", " ".join(statement.split()))
        found = re.match(r"^(?!typedef|static|struct \w+$)[\w\s*]*?\b(choir_\w+)\s*\(", statement)
        if found:
            names.add(found.group(1))
    return names


def symbols(*arguments):
    """(object, type, name) of what nm lists."""
    found, where = [], ""
    for line in output("nm", *arguments).splitlines():
        if line.endswith(":"):
            where = line[:-1]
        elif len(line.split()) >= 2:
            kind, name = line.split()[-2:]
            found.append((where, kind, name.split("@")[0]))
    return found


def writable(archive):
    """"FILE: NAME" of the variables in .data and .bss (and their copies for threads), not of those that
    are constant once their addresses are known. Compilers add numbers or the function to local names."""
    found, file = set(), ""
    for line in output("objdump", "-t", str(archive)).splitlines():
        if "file format" in line:
            file = line.split(":")[0].removesuffix(".o")
        match = re.match(r"^[0-9a-f]+ .{7} (\.t?(?:data|bss)\S*)\s+[0-9a-f]+\s+(?:\.hidden )?(\S+)$", line)
        if match and match.group(1) != match.group(2) and not match.group(1).startswith(".data.rel.ro"):
            found.add(f"{file}: " + re.sub(r"\.\d+$", "", match.group(2)).split(".")[-1])
    return found


def allowed():
    return {f"{file}: {name}" for file, groups in WRITABLE.items()
            for names in groups for name in names.split()}


def check(root, shared, archive, compiler, *others):
    complaints = []
    exported = {name for _, kind, name in symbols("-D", "--defined-only", str(shared))
                if not RUNTIME.match(name)}
    exported |= {name for other in others for _, _, name in symbols("-g", "--defined-only", str(other))
                 if not name.startswith("chi_")}
    promised = declared(root, compiler)
    complaints += [f"{name}: exported, but does not begin with choir_"
                   for name in sorted(exported) if not name.startswith("choir_")]
    complaints += [f"{name}: declared in a public header, but not exported"
                   for name in sorted(promised - exported)]
    complaints += [f"{name}: exported, but declared in no public header"
                   for name in sorted(exported - promised) if name.startswith("choir_")]
    complaints += [f"{where}: {name} is seen by other files, but begins with neither choir_ nor chi_"
                   for where, _, name in symbols("-g", "--defined-only", str(archive))
                   if not RUNTIME.match(name) and not re.match(r"ch(oir|i)_", name)]
    complaints += [f"{name}: a variable that can be written and is not in the list of tests/house/names.py"
                   for name in sorted(writable(archive) - allowed())]
    for path in sources(root, "include", "src"):
        for line in code(read(path)).splitlines():
            found = re.match(r"\s*typedef\b.*?(\w+)(?:\[.*\])?;", line)
            if found and found.group(1).endswith("_t"):
                complaints.append(f"{path.relative_to(root)}: {found.group(1)} ends in _t")
            if re.match(r"\s*typedef\b[^()]*\*\s*\w+;", line):
                complaints.append(f"{path.relative_to(root)}: a pointer is hidden: {line.strip()}")
    return complaints


def built(root, compiler):
    shared, archive = root / "libtry.so", root / "libtry.a"
    files = [str(path) for path in sources(root, "src")]
    subprocess.run([compiler, "-fPIC", "-c", *files, "-o", f"{root}/try.o"], check=True)
    subprocess.run([compiler, "-shared", f"{root}/try.o", "-o", str(shared)], check=True)
    subprocess.run(["ar", "rc", str(archive), f"{root}/try.o"], check=True)
    return check(root, shared, archive, compiler)


def self_test(compiler):
    must_find(built, {
        "include/choir/a.h": "typedef struct choir_a { int (*choir_slot)(void); } choir_a;\n"
                             "typedef void choir_fn(void *user);\n"
                             "int choir_kept(choir_fn *fn, void *user) __attribute__((const));\n"
                             "choir_a *choir_missing(void);\n"
                             "static inline int choir_inline(int a) { return choir_kept(0, 0) + a; }\n"
                             "typedef int size_of_t;\ntypedef choir_a *choir_hidden;\n",
        "src/op/a.c": "int choir_kept(void); int choir_kept(void) { return 1; }\n"
                      "int choir_secret(void); int choir_secret(void) { return 2; }\n"
                      "int leak(void); int leak(void) { static int counter; return ++counter; }\n"
                      "static __thread int last; extern int *chi_last(void);\n"
                      "__attribute__((visibility(\"hidden\"))) int *chi_last(void) { return &last; }\n"
                      "static const char *const names[] = { \"a\", \"b\" };\n"
                      "const char *choir_kept_name(int i); __attribute__((visibility(\"hidden\")))\n"
                      "const char *choir_kept_name(int i) { return names[i]; }\n"
                      "static struct { int *at; } *list[] = { 0, (void *) list };\n"
                      "int *chi_list(void); __attribute__((visibility(\"hidden\")))\n"
                      "int *chi_list(void) { return list[1]->at; }\n",
    }, ["leak: exported, but does not begin", "choir_missing: declared", "choir_secret: exported, but",
        "leak is seen by other files", "try: counter: a variable", "last: a variable",
        "list: a variable", "size_of_t ends in _t",
        "a pointer is hidden: typedef choir_a *choir_hidden;"], compiler)


compiler = sys.argv[4]
self_test(compiler)
judge(check(project(), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), compiler, *sys.argv[5:]))
