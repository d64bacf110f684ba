"""TensorFlow peer: the cases of `choir bench train` with MirroredStrategy on logical CPU devices (REPLICAS of them, a core each).

With a fourth argument THREADS, one device with that many cores.
"""
import json, os, resource, sys, time
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')
CORES = int((sys.argv + [sys.argv[2]])[4])
os.sched_setaffinity(0, range(min(CORES, os.cpu_count())))
import tensorflow as tf
from tf_models import build_model, batch_of, optimizer_of, global_batch, step_of


def main(case, replicas, seconds):
    cpus = tf.config.list_physical_devices('CPU')
    tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * replicas)
    strategy = (tf.distribute.MirroredStrategy([f'CPU:{i}' for i in range(replicas)]) if replicas > 1
                else tf.distribute.OneDeviceStrategy('CPU:0'))
    total = global_batch(case)
    with strategy.scope():
        model, optimizer = build_model(case), optimizer_of(case)
        optimizer.build(model.trainable_variables)
    x, y = batch_of(case, total // replicas)
    values = lambda t: strategy.experimental_distribute_values_from_function(lambda _: t)
    x, y = values(x), values(y)

    step = step_of(case, strategy, model, optimizer)
    for _ in range(5):
        step(x, y).numpy()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(3):
            loss = step(x, y)
        loss.numpy()
        times.append((time.perf_counter() - start) / 3)
    times.sort()
    print(json.dumps({'peer': 'tf-' + tf.__version__, 'strategy': type(strategy).__name__, 'case': case,
                      'replicas': replicas, 'cores': CORES, 'step_ms_median': 1e3 * times[len(times) // 2],
                      'step_ms_min': 1e3 * times[0], 'examples_per_s': total / times[len(times) // 2],
                      'rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
