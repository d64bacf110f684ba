"""Plants faults in libchoir-cuda, one after another, and checks that its tests on the stand-in find each.
Arguments: the project's folder, the build's folder, a C++ compiler, and numbers of faults (default: all).
A fault changes one file, so only that file is compiled again."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

# What is planted, the file, the text, what replaces it, and the programs of which one must fail.
FAULTS = [
    ("nothing", "copy.cu", "", "", ["convolutions", "tf32", "device", "cross", "library", "training"]),
    ("sums do not wait for the members' streams", "peer.cu",
     "\tCHOIR_TRY(await_members(x, s, owner));\n", "", ["training"]),
    ("a stream does not wait for another", "stream.cu",
     "\t\t\treturn CALL(s->d, cudaStreamWaitEvent, s->s, p.second, 0);",
     "\t\t\treturn CHOIR_OK;", ["device", "training"]),
    ("waits end at once", "stream.cu", "\telse if (mark <= s->reached)\n", "\telse if (true)\n",
     ["device"]),
    ("a staging buffer is used again too early", "stream.cu",
     "\ts->stagings.push_back({ s->marked + 1, g });", "\tgive_staging(s->d, g);", ["device"]),
    ("the host reads what has not come yet", "copy.cu",
     "CALL(s->d, cudaLaunchHostFunc, s->s, land, l);",
     "(land(l), CHOIR_OK);", ["device"]),
    ("an event is used again too early", "stream.cu",
     "\t\tif (error != cudaSuccess)\n\t\t\treturn error;\n\t\ts->reached", "\t\ts->reached",
     ["device", "training"]),
    ("another GPU is current", "launch.h", "\ton_gpu on(s->d->gpu);\n\tcudaLaunchConfig_t c", "\tcudaLaunchConfig_t c",
     ["cross"]),
    ("a barrier is missing", "block_reduce.h", "\t__syncthreads();\n\tdouble all = 0;", "\tdouble all = 0;",
     ["kernels"]),
    ("the first barrier is missing", "block_reduce.h",
     "\t__syncthreads(); // all have read part of an earlier call\n", "", ["kernels"]),
    ("half a workspace", "matmul.cu", "workspace, WORKSPACE, s->s)", "workspace, WORKSPACE / 512, s->s)",
     ["kernels"]),
    ("no peer access", "peer.cu", "const cudaError_t error = cudaDeviceEnablePeerAccess(from, 0);",
     "(void) from;\n\tconst cudaError_t error = cudaSuccess;", ["cross"]),
    ("sums in another order", "tree.cu", "\tint half = 1;\n\twhile (half * 2 < hi - lo)\n\t\thalf *= 2;",
     "\tint half = (hi - lo) / 2;", ["training"]),
    ("memory is freed while it is used", "stream.cu",
     "\ts->dirty = true;\n\treturn CALL(s->d, cudaMemsetAsync",
     "\tvoid *more = NULL;\n\tif (cudaMalloc(&more, 64) == cudaSuccess)\n"
     "\t\t(void) cudaMemsetAsync(more, 0, 64, s->s), (void) cudaFree(more);\n"
     "\ts->dirty = true;\n\treturn CALL(s->d, cudaMemsetAsync", ["device"]),
    ("one element too many", "elementwise.cu", "\tEACH (i, n)\n\t\tout[i] = (T) F::template of<T>(",
     "\tEACH (i, n + 1024)\n\t\tout[i] = (T) F::template of<T>(", ["kernels"]),
    ("a sum is told before it is there", "collective.cu",
     "\tchoir_status status = await_done(x, s, seconds);", "\tchoir_status status = CHOIR_OK;", ["cross"]),
    ("the wrong stream", "launch.h", "\tc.stream = s->s;\n\ts->dirty = true;\n\treturn CALL(s->d, cudaLaunchKernelEx, &c, kernel",
     "\tstatic cudaStream_t other;\n\tother = other == NULL ? s->s : other;\n\tc.stream = other;\n"
     "\ts->dirty = true;\n\treturn CALL(s->d, cudaLaunchKernelEx, &c, kernel", ["cross", "training"]),
    ("a host kernel's result is not copied back", "host_kernel.cu", "if (!to_host && p->written)", "if (!to_host && false)",
     ["kernels"]),
    ("a host kernel reads before its inputs are there", "host_kernel.cu",
     "\tCHOIR_TRY(copy_parts(s, h.get(), g, true));\n", "", ["kernels"]),
    ("an algorithm whose bits vary", "cudnn.cu", "\t\t\t\tresults[i].determinism == CUDNN_DETERMINISTIC &&\n", "", ["kernels"]),
    ("TF32 in convolutions", "cudnn.cu", "? CUDNN_DEFAULT_MATH", "|| true ? CUDNN_DEFAULT_MATH", ["tf32"]),
    ("TF32 in products", "matmul.cu", "? CUBLAS_COMPUTE_32F_FAST_TF32", "|| true ? CUBLAS_COMPUTE_32F_FAST_TF32", ["tf32"]),
    ("an algorithm of f32 for TF32", "cudnn.cu", "(v->tf32 * 4 + v->of) * 8", "v->of * 8", ["tf32"]),
    ("one side of the padding counts", "cudnn.cu", "return v->top != v->bottom || v->left != v->right;", "return false;",
     ["convolutions"]),
    ("a query sees the next key", "attention.cu", "% queries + 1 + keys", "% queries + 2 + keys", ["kernels"]),
    ("operands count as aligned", "matmul.cu", "const uintptr_t address = (uintptr_t) memory | ALIGNED;",
     "const uintptr_t address = (uintptr_t) memory * 0 | ALIGNED;", ["kernels"]),
    ("a refused update is written", "update.cu", "return a.gate != nullptr && a.gate[1] != 0;", "return false;", ["kernels"]),
    ("NCCL's messages are summed too early", "nccl.cu", "\tCHOIR_TRY(send_group(x, s, &p, send_parts));\n", "", ["cross"]),
    ("a stream does not wait for a sum", "collective.cu", "\t\tif (s->works[i])\n\t\t\tCHOIR_TRY", "\t\tif (false)\n\t\t\tCHOIR_TRY",
     ["cross", "training"]),
    ("cuDNN does not hear of groups", "cudnn.cu",
     "\tTRY_DNN(cudnnSetConvolutionGroupCount(d->convolution, (int) v->groups));\n", "", ["convolutions"]),
    ("cuDNN does not hear of dilation", "cudnn.cu", "dilation = (int) v->dilation;", "dilation = 1;", ["convolutions"]),
    ("a frame is too narrow", "cudnn.cu", "is_framed(v) ? v->left + v->w + v->right : v->w",
     "is_framed(v) ? v->left + v->w + v->left : v->w", ["convolutions"]),
    ("an image lies beside its place in the frame", "cudnn.cu", "pixel % w - (back ? 0 : v.left)",
     "pixel % w - (back ? 0 : v.right)", ["convolutions"]),
    ("another padding's algorithm", "cudnn.cu", "v->top << 32 | v->bottom", "v->top << 32", ["convolutions"]),
    ("pools begin a row too late", "pooling.cu", "top = r * p.stride - p.top;", "top = r * p.stride - p.left;", ["kernels"]),
    ("a list of updates is cut short", "update.cu", "dim3(grid_for(most), (unsigned) count)", "dim3(grid_for(most), (unsigned) (count > 1 ? count - 1 : count))",
     ["kernels"]),
    ("a missing NCCL is not told", "nccl.cu", "\t\twarn_once();\n", "\t\t(void) warn_once;\n", ["library"]),
    ("a full GPU keeps unused memory", "peer.cu", "with.release_unused(x->group->devices[member])", "false", ["cross"]),
]


def compile_with(fault, root, build, compiler, folder):
    """Makes a library in which one file is changed; a changed header changes all files."""
    _, file, old, new, _ = fault
    text = (root / "cuda" / file).read_text(encoding="utf-8")
    if old and text.count(old) != 1:
        sys.exit(f"{fault[0]}: the text occurs {text.count(old)} times in cuda/{file}")
    changed = folder / "cuda"
    for source in (root / "cuda").iterdir():
        (changed / source.name).write_bytes(source.read_bytes())
    (changed / file).write_text(text.replace(old, new) if old else text, encoding="utf-8")
    objects = build / "tests/cuda/CMakeFiles/choir_cuda_standin.dir"
    kept = {path: path for path in objects.rglob("*.o")}
    sources = sorted(changed.glob("*.cu")) if file.endswith(".h") else [changed / file]
    if file == "block_reduce.h":
        sources = [changed / name for name in ("reduce.cu", "softmax.cu")]
    made = [folder / (source.name + ".o") for source in sources]

    def compile_one(source, to):
        subprocess.run([compiler, "-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fPIC", "-D_GNU_SOURCE",
                        '-DCHOIR_CUDA_ALIASES="cuda,far"', f"-I{root}/include", f"-I{root}/tests/cuda/standin/include",
                        f"-I{root}/tests/cuda/standin", "-xc++", "-c", str(source), "-o", str(to)], check=True)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, sources, made))
    names = {path.name for path in made}
    rest = [str(path) for path in kept if path.name not in names]
    library = folder / "libchoir_cuda_standin.so"
    subprocess.run([compiler, "-shared", "-o", str(library), "-Wl,-soname,libchoir_cuda_standin.so", *rest,
                    *map(str, made), "-ldl", "-lpthread"], check=True)
    return library


def find(programs, build, library):
    """How a program found the fault; None: none did."""
    environment = dict(os.environ, CHOIR_CUDA=str(library), CHOIR_TEST_STANDIN=str(library), LD_LIBRARY_PATH=str(library.parent),
                       STANDIN_DEVICES="4", STANDIN_DELAY="200")
    for program in programs:
        try:
            done = subprocess.run([str(build / f"tests/cuda/test_cuda_{program}")], env=environment, timeout=200,
                                  capture_output=True, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            return f"{program} hangs"
        if done.returncode != 0:
            told = [line for line in done.stderr.splitlines() if line.startswith("stand-in:")]
            return f"{program}: {told[0] if told else 'status ' + str(done.returncode)}"
    return None


def main():
    root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    numbers = [int(number) for number in sys.argv[4:]] or range(len(FAULTS))
    missed = 0
    for number in numbers:
        fault = FAULTS[number]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "cuda").mkdir()
            library = compile_with(fault, root, build, compiler, folder)
            found = find(fault[4], build, library)
        good = (found is None) == (fault[2] == "")
        missed += not good
        print(f"{number} {'ok' if good else 'MISSED'}: {fault[0]}: {found or 'nothing found'}", flush=True)
    sys.exit(1 if missed else 0)


main()
