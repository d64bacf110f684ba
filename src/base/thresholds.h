// Chosen by measurement. A comment ends with the page of docs/decisions that has the figures, if
// there is one. Sizes that change results are defined with their algorithm.
#pragma once

enum {
	CHI_GATE_SPIN_US = 40, // microseconds until a waiter sleeps: 0009
	CHI_NONTEMPORAL_COPY_BYTES = 16 << 10, // smaller copies fit the L1 cache: 0033

	// Operations.
	CHI_DIVIDED_ELEMENTS = 16 << 10, // smaller calls are not divided: 0063
	CHI_DIVIDED_SUM_ELEMENTS = 64 << 10, // of a sum on more than one thread: 0063
	CHI_TURNED_GEMM_TERMS = 512, // of a sum in a product that is transposed afterwards: 0062
	CHI_LARGE_TABLE_ROWS = 4096, // a gradient of a table of as many rows is sparse
	CHI_WINOGRAD_MIN_TILES = 64, // with fewer, transforming the filter costs too much: 0067
	CHI_WINOGRAD_MIN_CHANNELS = 32 * 32, // of x times those of y; fewer are too few: 0067
	CHI_WINOGRAD_MAX_CHANNELS = 8 << 10, // with more, the filter fills the cache: 0067

	// Sums on one worker.
	CHI_SMALL_ALL_REDUCE_BYTES = 16 << 10, // largest without a lock: 0058
	CHI_SMALL_ALL_REDUCE_REPLICAS = 8, // most of them: 0058
	CHI_PACKED_ALL_REDUCE_BYTES = 64 << 10, // largest tensor in a pack: 0064
	CHI_HELPED_SUM_BYTES = 256 << 10, // across replicas; other threads help from here on
	CHI_ROUND_LOOKS = 200, // polls of a sum of one chunk that another thread makes
	CHI_WORK_RANGES = 8, // most ranges of a collective's chunks: 0070
	CHI_NONTEMPORAL_SUM_BYTES = 32 << 20, // exceeds most caches with its parts: 0070
	CHI_OVERLAPPED_ELEMENTS = 16 << 10, // the update sums and applies smaller gradients: 0064
	CHI_FETCHED_ROWS = 12, // prefetched ahead of a gather or a sparse update
	CHI_FETCHED_ROW_BYTES = 512, // most of each of them

	// Sums among workers.
	CHI_ONE_ROUND_BYTES = 256 << 10, // most for one message each way: 0060
	CHI_SEPARATE_SUM_BYTES = 16 << 10, // summed apart and then copied: 0060
	CHI_BUCKET_SUM_BYTES = 64 << 10, // largest sum in a bucket: 0060
	CHI_BUCKET_BYTES = 1 << 20, // of a bucket: 0060
};
