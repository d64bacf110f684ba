"""Words for which the field has better ones do not come back. A word counts where it is a part of an
identifier or the name of a file in the folder of the table, but where it is part of what is said
instead (read_ahead), or of a name that a lower room's header brings; in other folders, and in
comments, it may be the right one. Argument: the project's folder."""

import re

from house import FLOORS, code, judge, must_find, project, read, sources

# Folder: words and, after ">", what is said instead. "." is src, include, cli, mpi and net.
GONE = {
    ".": "crew>thread_pool meeting>rendezvous,sync_point cargo>chunk station>chunk relay>chunk "
         "peers>process_group ticket>request folder>directory disk>fs room>capacity most>max least>min "
         "ways>communication",
    "src/base": "guard>recursive_lock slot>thread_local paths>glob kept>scratch relaxed>copy "
                "cgroup>processors cpu>instruction_set,processor aside>suspend",
    "src/trace": "events>tensorboard",
    "src/device": "lane>device patience>timeout late>quarantine left>abandoned far>tests/far stage>staging_buffer",
    "src/cluster": "agree>consistency fact>setting",
    "src/tensor": "keep>record_error,retain",
    "src/value": "beside>colocated_with whole>parent alone>exclusive",
    "src/collective": "lane>device way>algorithm fold>partial_sums walk>tree_sum share>work_range "
                 "dealt>claimed piece>chunk bundle>bucket below>local_reduce between>exchange "
                 "above>local_broadcast spread>broadcast tell>set together>batch_bytes slot>round",
    "src/strategy": "lane>device patience>timeout meet>sync_point light>small_all_reduce "
                    "heavy>all_reduce_rendezvous "
                    "lone>all_reduce_single standing>default_run alone>isolated,exclusive home>owner "
                    "everyone>all_replicas asked>arrivals late>lazy settle>materialize between>worker "
                    "subject>label job>reduction see>view instance>pending_update item>device_gradient "
                    "landing>sum_buffer early>overlap touch>bump_version touched>written "
                    "slicing>chunk_context fold>partial_sums piece>chunk way>algorithm bundle>bucket "
                    "spread>touches_all_rows laid>dense_scratch taken>result",
    "src/op": "cut>parallel product>gemm,hessian_vector_product nest>broadcast_iterator judge>run_checked piece>chunk own>builtin",
    "src/data": "step>stage cell>ragged_value marks>seek_index late>reorder "
                "facts>info look>infer packed>array_file digit>glyph swap>byte_order wire>protobuf "
                "cut>subset",
    "src/input": "feed>example_stream split>rebatch ahead>read_ahead words>messages untold>unreported "
                 "spare>leftover arrays>shared_arrays",
    "src/train": "pieces>c_functions",
    "cli": "say>print see>inspect agree>check coded>percent_encoding tell>report",
}
# Neither the system's own names count (__ATOMIC_RELAXED, CPU_SET, SSL_OP_NO_TICKET) nor x.field and x->field, which use a
# name that a struct has given.
NAME = re.compile(r"(?<![.\w])(?<!->)(?!__|CPU_|SSL_|cpu_set_t\b)[A-Za-z_]\w*")


def names(root, folder):
    """The identifiers and the names of files below a folder, each once."""
    folders = ("src", "include", "cli", "mpi", "net") if folder == "." else (folder,)
    found = set()
    for path in sources(root, *folders):
        found.add(path.stem)
        found.update(NAME.findall(code(read(path))))
    floor = FLOORS.get(folder.removeprefix("src/"), 0)
    lower = sources(root, *(f"src/{room}" for room, of in FLOORS.items() if of < floor))
    for path in lower:
        if path.suffix == ".h":
            found.difference_update(re.findall(r"\b(?:chi|CHI)_\w+", code(read(path))))
    return found


def check(root):
    complaints = []
    for folder, pairs in GONE.items():
        said = sorted(names(root, folder))
        for word, instead in (pair.split(">") for pair in pairs.split()):
            good = "|".join(instead.split(","))
            used = [name for name in said
                    if word in re.sub(rf"(?<![^_])({good})(?![^_])", "", name.lower()).split("_")]
            if used:
                complaints.append(f"{folder}/{word}: in {len(used)} names, as {used[0]}; say {instead}")
    return complaints


must_find(check, {
    "src/op/a.c": "// A meeting.\nint chi_meeting_of(int crew_size) { return sizeof(\"disk\") + planes; }\n",
    "src/collective/relay.c": "int way_out;\n",
    "src/op/way.h": "int a = b.own + c->own;\n",
    "src/base/a.c": "int x = CPU_COUNT(__builtin_cpu_is());\ncpu_set_t a;\nint cpu_count;\n",
    "src/input/a.c": "int chi_read_ahead_new(void) { return chi_values_split_rows(ahead); }\n",
    "src/value/values.h": "int chi_values_split_rows(void);\n",
}, ["./meeting: in 1 names, as chi_meeting_of; say rendezvous", "./crew: in 1", "./relay: in 1",
    "src/collective/way: in 1 names, as way_out", "src/base/cpu: in 1 names, as cpu_count",
    "src/input/ahead: in 1 names, as ahead;"])
judge(check(project()))
