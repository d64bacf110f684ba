// What the benchmarks share.
#pragma once

#include "command_options.h"

#include <choir/choir.h>

int bench_train_main(int argc, char **argv);
int bench_kernels_main(int argc, char **argv);
int bench_all_reduce_main(int argc, char **argv);
int bench_run_main(int argc, char **argv);
int bench_input_main(int argc, char **argv);

// Creates a mirrored strategy whose devices are pinned, each to cores processors. devices and
// operations (the all-reduce algorithm) may be NULL. NULL: an error.
choir_strategy *bench_strategy(
		int64_t replicas, const char *devices, int64_t cores, const char *operations);
// The same for the workers of a cluster.
choir_strategy *bench_workers(
		choir_cluster *c, int64_t replicas, const char *devices, int64_t cores);
// The number of gradients of a network ("resnet50", "gpt2"). Writes their sizes unless elements is
// NULL.
size_t bench_shapes(const char *name, int64_t *elements);
// Writes "choir-0.1.0".
const char *bench_version(char text[32]);
// The median. Sorts values.
double median(size_t n, double values[]);
