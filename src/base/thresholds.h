// Measured; numbers are pages of docs/decisions. Sizes that change results are with their
// algorithm.
#pragma once

enum {
	CHI_GATE_SPIN_US = 40, // until a waiter sleeps: 0009
	CHI_PROGRESS_SPIN_US = 100, // until a stream asks another server: 0106
	CHI_NONTEMPORAL_COPY_BYTES = 16 << 10, // smaller copies fit L1: 0033

	CHI_DIVIDED_ELEMENTS = 16 << 10, // smaller calls are whole: 0063
	CHI_DIVIDED_SUM_ELEMENTS = 64 << 10,
	CHI_TURNED_GEMM_TERMS = 512, // of a sum in a transposed product: 0062
	CHI_LARGE_TABLE_ROWS = 4096, // with a sparse gradient from here on
	CHI_WINOGRAD_MIN_TILES = 64, // 0067
	CHI_WINOGRAD_MIN_CHANNELS = 32 * 32, // of x times those of y: 0067
	CHI_WINOGRAD_MAX_CHANNELS = 8 << 10, // with more, the filter fills the cache: 0067

	CHI_SMALL_ALL_REDUCE_BYTES = 16 << 10, // largest without a lock: 0058
	CHI_SMALL_ALL_REDUCE_REPLICAS = 8,
	CHI_PACKED_ALL_REDUCE_BYTES = 64 << 10, // largest tensor in a pack: 0064
	CHI_HELPED_SUM_BYTES = 256 << 10, // other threads help from here on
	CHI_ROUND_LOOKS = 200, // polls of another thread's sum of one chunk
	CHI_WORK_RANGES = 8, // of a collective's chunks: 0070
	CHI_NONTEMPORAL_SUM_BYTES = 32 << 20,
	CHI_OVERLAPPED_ELEMENTS = 16 << 10, // the update sums smaller gradients: 0064
	CHI_FETCHED_ROWS = 12, // ahead of a gather or a sparse update
	CHI_FETCHED_ROW_BYTES = 512,

	CHI_ONE_ROUND_BYTES = 256 << 10, // one message each way: 0060
	CHI_SEPARATE_SUM_BYTES = 16 << 10, // summed apart and then copied: 0060
	CHI_BUCKET_SUM_BYTES = 64 << 10, // largest in a bucket: 0060
	CHI_BUCKET_BYTES = 1 << 20, // 0060
};
