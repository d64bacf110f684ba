# The verbs. The building itself is CMake's: see CMakeLists.txt and CMakePresets.json.
PREFIX ?= /usr/local
SECONDS ?= 60
SCHEDULES ?= 1000000
MISMATCHES ?= 10000
ROUNDS ?= 3
KILLS ?= 200
.DEFAULT_GOAL := build
.PHONY: build demo test quick fresh arm64 check conformance fuzz fuzz-short schedules mismatches crashes kills bench peers bench-short wheel reference fortran install format clean \
	faults cuda-sanitizers help

build: ## build the library, the command and the examples in build/release
	@tools/setup build
	@tools/build release

demo: ## train a small network on real digits with two replicas
	@tools/demo

test: ## build and run all test suites
	@tools/setup test
	@tools/test

quick: ## build the release and run its quick tests: for after an edit
	@tools/setup test
	@tools/quick

fresh: ## the README's commands on a bare Debian 12 and 13 (as root; build/fresh keeps them)
	@tools/fresh

arm64: ## build for 64-bit Arm and run the short tests under qemu (build/arm64 keeps its root): 10 minutes
	@tools/arm64

check: ## the tests of the house only: floors, sizes, names, headers
	@tools/setup test
	@tools/build ci
	@ctest --test-dir build/release --output-on-failure -L house

conformance: ## write tests/conformance.md, the map from rules to tests
	@python3 -B tests/house/conformance.py . --write

fuzz: ## run every fuzzer for SECONDS (60) each; what they find stays in build/fuzz
	@tools/setup test
	@for target in fuzz/*_fuzz.c; do \
		name=$$(basename $$target _fuzz.c); \
		printf '\n== %s\n' $$name; \
		fuzz/run $$name $(SECONDS) || exit 1; \
	done

fuzz-short: fuzz ## the same

schedules: ## SCHEDULES (1000000) random schedules, 10,000 random programs, and the larger models
	@tools/setup test
	@tools/build ci
	build/release/tests/schedule/schedules $(SCHEDULES)
	build/release/tests/test_random_programs all
	tests/model/check.sh small_all_reduce proved -DN=4 -DSUMS=1 -DSPURIOUS=0

mismatches: ## MISMATCHES (10000) random programs in which one worker differs, and 100 under each MPI
	@tools/setup test
	@tools/build ci
	CHOIR_MISMATCHES=$(MISMATCHES) build/release/tests/test_strategies_mismatch
	ctest --test-dir build/release --output-on-failure -R '^mpi/.*_suite'

crashes: ## 100,000 crashes while saving, as many flipped bits, 60 stops at random moments, on 1 and more workers
	@tools/setup test
	@tools/build ci
	CHOIR_CRASH_STATES=100000 build/release/tests/test_train_checkpoint_crash
	CHOIR_FLIPS=100000 build/release/tests/test_train_checkpoint_damage
	CHOIR_FLIPS=1 build/release/tests/test_data_source_hdf5_hdf5
	CHOIR_STOPS=60 ctest --test-dir build/release --output-on-failure \
		-R '^(cli/checkpoint|mpi/.*_checkpoint)$$'

cuda-sanitizers: ## the short tests of libchoir-cuda on the stand-in, with address and thread sanitizers
	CHOIR_CMAKE=-DCHOIR_CUDA_STANDIN=ON tools/test clang tsan cuda

faults: ## plant faults in libchoir-cuda, one after another; its tests on the stand-in must find each
	@tools/setup test
	@tools/build ci
	python3 -B tests/cuda/mutants.py . build/release c++

kills: ## choir run: KILLS (200) workers killed, stopped, and jobs ended in each way, under each MPI and without one, 100,000 schedules
	@tools/setup test
	@tools/build ci
	CHOIR_SUPERVISOR_SCHEDULES=100000 build/release/tests/test_supervisor_schedule
	for mpi in none openmpi mpich; do for what in kills stops leavings; do \
		python3 -B tests/mpi/supervised.py $$mpi $$what build/release/choir $(CURDIR)/build/release $(KILLS) \
			|| exit 1; \
	done; done
	python3 -B tests/mpi/supervised.py none worker-kills build/release/choir $(CURDIR)/build/release $(KILLS)

bench: build ## sums beside each MPI, training, closures and input beside peers (make peers), ROUNDS (3): an hour
	@tools/bench-mpi --rounds $(ROUNDS)
	@tools/bench-mpi --rounds $(ROUNDS) --shapes resnet50
	@tools/bench-mpi --rounds $(ROUNDS) --shapes gpt2
	@tools/bench-peers --rounds $(ROUNDS)
	@tools/bench-peers --rounds $(ROUNDS) --precision mixed_bf16
	@tools/bench-closures --rounds $(ROUNDS)
	@tools/bench-input --rounds $(ROUNDS)

peers: ## PyTorch, JAX and TensorFlow in build/peers, for bench (5 GB; minutes)
	@bench/peers/setup build/peers

bench-short: build ## the same in a minute, without peers
	@tools/bench-mpi --rounds 1 --most 1048576
	@tools/bench-mpi --rounds 1 --shapes resnet50
	@tools/bench-peers --rounds 1 --seconds 0.5 --only none
	@ENVIRONMENTS= tools/bench-input --rounds 1 --images 10000

wheel: ## a wheel of the module for Python in build/wheel (needs Python with cffi)
	@tools/setup build
	@tools/wheel

reference: ## web pages of the public headers in build/reference (Doxygen)
	@tools/setup reference
	@python3 -B tests/house/commented.py . build/reference

fortran: ## write the module for Fortran, bindings/fortran/choir.f90 (needs Python with cffi)
	@/usr/bin/env python3 -B bindings/fortran/generate.py include bindings/fortran/choir.f90

install: ## install under PREFIX (/usr/local)
	@tools/setup build
	@CHOIR_CMAKE='-DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX))' tools/build release
	@cmake --install build/release

format: ## put the sources into the house's layout
	@tools/setup test
	@python3 -B tests/house/format.py . --write

clean: ## remove all builds
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12
