// What the benchmarks share.
#pragma once

#include "command_options.h"

#include <choir/choir.h>

int bench_train_main(int argc, char **argv);
int bench_kernels_main(int argc, char **argv);
int bench_all_reduce_main(int argc, char **argv);
int bench_run_main(int argc, char **argv);
int bench_fit_main(int argc, char **argv);
int bench_input_main(int argc, char **argv);
int bench_closures_main(int argc, char **argv);

// A mirrored strategy whose devices are pinned, each to cores processors; with .cluster that of
// its workers. devices and more may be NULL.
choir_strategy *bench_strategy(
		int64_t replicas, const char *devices, int64_t cores, const choir_strategy_options *more);
// The gradients of "resnet50" or "gpt2". Writes their sizes unless elements is NULL.
size_t bench_shapes(const char *name, int64_t *elements);
const char *bench_version(char text[32]);
double bench_peak_mb(void); // the most memory that this process had
// Sorts values.
double median(size_t n, double values[]);
