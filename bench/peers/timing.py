"""What the peers' programs share: groups of three steps after five to warm up, and the line that tools/bench-peers reads."""
import json
import resource
import time

WARM_UP, GROUP = 5, 3
IMAGES, TEXTS, LENGTH, WIDTH, BYTES, CLASSES = 128, 64, 64, 256, 256, 10 # of resnet18 and mobilenet; of lstm
# mobilenet: factors of the first convolution's 32 channels, and strides
BLOCKS = [(2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1)]
STAGES = [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)] # resnet18


def measure(steps, seconds, is_over=lambda over: over):
    """steps(n) makes n steps and waits for their end. Returns the seconds of a step of each group, sorted."""
    steps(WARM_UP)
    times, end = [], time.perf_counter() + seconds
    while not is_over(bool(times) and time.perf_counter() > end):
        start = time.perf_counter()
        steps(GROUP)
        times.append((time.perf_counter() - start) / GROUP)
    return sorted(times)


def report(peer, case, replicas, strategy, times):
    middle = times[len(times) // 2]
    print(json.dumps({"peer": peer, "case": case, "replicas": replicas, "strategy": strategy,
                      "step_ms_median": 1e3 * middle, "step_ms_min": 1e3 * times[0],
                      "examples_per_s": (TEXTS if case == "lstm" else IMAGES) / middle,
                      "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)
