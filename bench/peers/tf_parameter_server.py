"""TensorFlow peer: ParameterServerStrategy with a ClusterCoordinator, over processes on this machine (gRPC).

    tf_parameter_server.py CASE WORKERS SECONDS [SERVERS] [optimizer]

One coordinator, WORKERS workers and SERVERS parameter servers (1), a process each. Every closure is one step on one
worker: it reads the variables from the servers, computes on a batch of its own, and has the servers update. Steps of
different workers do not wait for each other, so a step's batch is the whole batch of the case. Prints one JSON line:
steps_per_s counts the closures of all workers between two joins, after a warm-up.

Cases: mlp128, mlp1024, cnn, gpt128, gpt256 as in `choir bench train`; embed: 26 ids an example, uniform in 262,144 rows of 64
(64 MiB), their mean, dense 256 and ReLU, dense 1, sigmoid cross entropy, batch 512, SGD 0.01: what travels are rows;
embed_zipf: the same with ids of a Zipf distribution (1.2), so most rows of a batch are the same few; null: an empty
closure, which shows what scheduling one costs.

The updates are TensorFlow's fused kernels on the servers (ResourceApplyKerasMomentum and the like), which is the fastest
way that was found; with a fifth argument "keras" they are Keras's optimizer, as a user would write it.
"""
import ctypes, json, os, resource, signal, socket, subprocess, sys, time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')
os.environ.setdefault('GRPC_FAIL_FAST', 'use_caller')
ROWS, WIDTH, IDS, EMBED_BATCH = 1 << 18, 64, 26, 512


def serve():
    import tensorflow as tf
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                         protocol='grpc', config=config, start=True).join()


def free_addresses(n):
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(n)]
    addresses = [f'127.0.0.1:{s.getsockname()[1]}' for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def peak_mb(pid):
    with open(f'/proc/{pid}/status') as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith('VmHWM'))


def build(tf, case):
    """The model as variables and a function loss(); the updates as a function of gradients."""
    import numpy as np
    if case.startswith('embed'):
        rng = np.random.default_rng(0)
        ids = rng.integers(0, ROWS, (EMBED_BATCH, IDS)) if case == 'embed' else rng.zipf(1.2, (EMBED_BATCH, IDS)) % ROWS
        ids, y = tf.constant(ids.astype(np.int64)), tf.constant(rng.integers(0, 2, (EMBED_BATCH, 1)).astype(np.float32))
        table = tf.Variable(tf.random.stateless_normal([ROWS, WIDTH], [1, 2]) * 0.01, name='table')
        w1, b1 = tf.Variable(tf.random.stateless_normal([WIDTH, 256], [3, 4]) * 0.1), tf.Variable(tf.zeros([256]))
        w2, b2 = tf.Variable(tf.random.stateless_normal([256, 1], [5, 6]) * 0.1), tf.Variable(tf.zeros([1]))

        def loss():
            h = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), axis=1)
            logits = tf.matmul(tf.nn.relu(tf.matmul(h, w1) + b1), w2) + b2
            return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        return [table, w1, b1, w2, b2], loss, EMBED_BATCH
    from tf_models import build_model, batch_of, loss_of, global_batch
    n = global_batch(case)
    model = build_model(case)
    x, y = batch_of(case, n)
    variables = [getattr(v, 'value', v) for v in model.trainable_variables]
    return variables, lambda: tf.reduce_mean(loss_of(case, y, model(x, training=True))), n


def fused(tf, case, variables):
    """What each server does with a gradient, in one kernel beside the variable."""
    slots = []
    for v in variables:
        count = 0 if case.startswith('embed') else 1 if case.startswith('mlp') else 2
        slots.append([tf.Variable(tf.zeros_like(v)) for _ in range(count)])
    powers = tf.Variable(0.9), tf.Variable(0.999)
    raw = tf.raw_ops

    def apply(gradients):
        for v, s, g in zip(variables, slots, gradients):
            with tf.device(v.device):
                if isinstance(g, tf.IndexedSlices):
                    raw.ResourceScatterSub(resource=v.handle, indices=g.indices, updates=0.01 * g.values)
                elif case.startswith('embed'):
                    raw.ResourceApplyGradientDescent(var=v.handle, alpha=0.01, delta=g)
                elif case.startswith('mlp'):
                    raw.ResourceApplyKerasMomentum(var=v.handle, accum=s[0].handle, lr=0.01, grad=g, momentum=0.9)
                else:
                    raw.ResourceApplyAdam(var=v.handle, m=s[0].handle, v=s[1].handle, beta1_power=powers[0],
                                          beta2_power=powers[1], lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=g)
    return apply


def coordinate(case, workers, seconds, servers, how, children):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    batch, apply = 0, None
    if case != 'null':
        with strategy.scope():
            variables, loss_of, batch = build(tf, case)
            if how == 'keras':
                from tf_models import optimizer_of
                optimizer = tf.keras.optimizers.SGD(0.01) if case.startswith('embed') else optimizer_of(case)
                optimizer.build(variables)
                apply = lambda gradients: optimizer.apply_gradients(zip(gradients, variables))
            else:
                apply = fused(tf, case, variables)

    @tf.function
    def step():
        if case == 'null':
            return tf.constant(0.)

        def replica():
            with tf.GradientTape() as tape:
                loss = loss_of()
            apply(tape.gradient(loss, variables))
            return loss
        return strategy.run(replica)

    def go(n):
        start = time.perf_counter()
        for _ in range(n):
            last = coordinator.schedule(step)
        coordinator.join()
        return n / (time.perf_counter() - start), last

    go(4 * workers)
    rate, first = go(8 * workers)
    n = max(4 * workers, int(rate * seconds / 7))
    rates = sorted(go(n)[0] for _ in range(7))
    last = go(workers)[1]
    print(json.dumps({'peer': 'tf-' + tf.__version__, 'strategy': 'ParameterServerStrategy', 'case': case, 'workers': workers,
                      'servers': servers, 'updates': how, 'steps_per_s': rates[3], 'steps_per_s_best': rates[-1],
                      'examples_per_s': rates[3] * batch, 'ms_a_step_a_worker': 1e3 * workers / rates[3],
                      'loss': [float(first.fetch()), float(last.fetch())],
                      'rss_mb': {'coordinator': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                                 **{name: peak_mb(pid) for name, pid in children.items()}}}), flush=True)


if __name__ == '__main__':
    if os.environ.get('PEER_ROLE') == 'server':
        serve()
    case, workers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    servers, how = int((sys.argv + ['1'])[4]) if len(sys.argv) > 4 else 1, sys.argv[5] if len(sys.argv) > 5 else 'fused'
    address = iter(free_addresses(1 + workers + servers))
    cluster = {'chief': [next(address)], 'worker': [next(address) for _ in range(workers)],
               'ps': [next(address) for _ in range(servers)]}
    config = lambda kind, i: json.dumps({'cluster': cluster, 'task': {'type': kind, 'index': i}})
    started = {f'{kind}{i}': subprocess.Popen([sys.executable, __file__], preexec_fn=die_with_parent, env=dict(
        os.environ, PEER_ROLE='server', TF_CONFIG=config(kind, i))) for kind in ('worker', 'ps')
        for i in range(len(cluster[kind]))}
    os.environ['TF_CONFIG'] = config('chief', 0)
    try:
        coordinate(case, workers, seconds, servers, how, {name: p.pid for name, p in started.items()})
        sys.stdout.flush()
    finally:
        for p in started.values():
            p.kill()
    os._exit(0)  # the coordinator's threads would go on looking for its workers
