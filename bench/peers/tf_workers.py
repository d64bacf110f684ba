"""TensorFlow peer: the cases of `choir bench train` with MultiWorkerMirroredStrategy, one process a worker on this machine."""
import json, os, resource, subprocess, sys, time


def worker(case, index, workers, seconds):
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')
    os.sched_setaffinity(0, {index % os.cpu_count()})
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    from tf_models import build_model, batch_of, optimizer_of, global_batch, step_of
    total = global_batch(case)
    with strategy.scope():
        model, optimizer = build_model(case), optimizer_of(case)
        optimizer.build(model.trainable_variables)
    x, y = batch_of(case, total // workers)

    step = step_of(case, strategy, model, optimizer)
    for _ in range(5):
        step(x, y).numpy()
    start = time.perf_counter()
    for _ in range(5):
        step(x, y).numpy()
    steps = max(10, int(5 * seconds / (time.perf_counter() - start)) // 10 * 10)
    steps = int(strategy.reduce('SUM', tf.constant(steps if index == 0 else 0, tf.int64), axis=None))
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step(x, y).numpy()
        times.append(time.perf_counter() - start)
    if index == 0:
        times.sort()
        print(json.dumps({'peer': 'tf-' + tf.__version__, 'strategy': 'MultiWorkerMirroredStrategy', 'case': case,
                          'replicas': workers, 'step_ms_median': 1e3 * times[len(times) // 2],
                          'step_ms_min': 1e3 * times[0], 'examples_per_s': total / times[len(times) // 2],
                          'rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


if __name__ == '__main__':
    case, workers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if 'TF_CONFIG' in os.environ:
        worker(case, json.loads(os.environ['TF_CONFIG'])['task']['index'], workers, seconds)
    else:
        addresses = [f'127.0.0.1:{29600 + i}' for i in range(workers)]
        children = [subprocess.Popen([sys.executable, __file__] + sys.argv[1:], env=dict(
            os.environ, TF_CONFIG=json.dumps({'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}})))
            for i in range(workers)]
        sys.exit(max(c.wait() for c in children))
