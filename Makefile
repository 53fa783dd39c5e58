# SPDX-License-Identifier: Apache-2.0
# The front door; meson does the work. `make help` lists what there is.

SETUP := deploy/setup.sh
BIN := build/bin

.PHONY: all configured help wheel setup setup-gpu setup-gpu-vendors packages image demo demo-gpu check test test-all test-image test-packages test-schedulers test-onnx soak bench bench-gpu bench-models bench-python bench-search bench-tune bench-weights format clean

all: configured ## build; the programs are in build/bin/
	@deploy/build.py build

# A changed meson.build configures anew, which nobody has to read unless it fails.
configured: build/build.ninja
	@ninja -C build build.ninja >.deps/configure.log 2>&1 || { cat .deps/configure.log >&2; exit 1; }

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install what is missing (Debian packages; Halide and oneDNN into .deps/)
	@$(SETUP)

setup-gpu: ## install NVRTC, the compiler of CUDA C, into .deps/ (134 MB; no GPU is needed)
	@$(SETUP) gpu

setup-gpu-vendors: ## install cuBLASLt and cuDNN into .deps/ (1.2 GB)
	@$(SETUP) gpu-vendors

.deps/stamp: setup

# Configured anew when the wheels change: what they offer decides what is built.
# lib: without dpkg-dev meson takes Debian for a system with lib64, where pkg-config finds nothing.
build/build.ninja: .deps/stamp
	@echo 'make: configuring' >&2
	@if [ -e $@ ]; then meson setup --reconfigure build; else meson setup build --libdir lib; fi \
	    >.deps/configure.log 2>&1 || { cat .deps/configure.log >&2; rm -f $@; exit 1; }

demo: all ## tune a real ResNet-18 convolution and show it beside the vendor's
	@$(BIN)/wpkctl tune examples/demo.json
	@$(BIN)/wpkctl why c6 | head -n 3

demo-gpu: all ## tune three operators on a GPU, or on one that is emulated
	@$(SETUP) gpu
	@if $(BIN)/wpk-worker --gpu 0 --check; then gpu=0; else gpu=emulated; fi; \
	    echo "tuning on --gpu $$gpu"; $(BIN)/wpkctl tune examples/demo-gpu.json --gpu $$gpu

check: all ## the tests of the plain build, for everyday work
	@$(SETUP) test
	@tests/run.py plain

test: configured ## every test once: most under ASan, threads under TSan, tidy; clang compiles (ten minutes)
	@$(SETUP) test
	@tests/run.py test

test-all: all ## every test with gcc, clang, ASan and TSan, and the simulator's thousand seeds
	@$(SETUP) test
	@tests/run.py all

packages: ## Debian packages of the committed tree, into build/packages/
	@$(SETUP) packages
	@mkdir -p build
	@deploy/packages.sh build/packages >build/packages.log 2>&1 || { tail -n 20 build/packages.log >&2; exit 1; }
	@ls -sh build/packages

image: packages ## container images of wpkd and wpk-worker, as OCI layouts, into build/images/
	@deploy/image.py build/packages build/images >build/images.log 2>&1 || { tail -n 20 build/images.log >&2; exit 1; }
	@grep MB build/images.log

test-image: ## run these images without an engine, as root, and tune an operator in them
	@tests/images.py build/images

wheel: all ## the Python packages, into build/wheel/
	@$(SETUP) wheel
	@python/make_wheel.sh build build/wheel

test-packages: ## Debian packages, built twice, read by lintian and piuparts, as root (half an hour)
	@$(SETUP) packages
	@tests/packages.py build/packages

test-schedulers: all ## workers started by Slurm, as root, and by Ray, each a private one on this machine (minutes)
	@$(SETUP) schedulers
	@tests/schedulers.py

test-onnx: all ## ONNX's node tests, each interpreted, then tuned: passed, refused, wrong (half an hour)
	@$(SETUP) test
	@.deps/test-venv/bin/python3 tests/onnx_nodes.py $(BIN)/wpkctl --tune

soak: all ## what the tests do, for an hour: a hundred kills, random programs, and the simulator's seeds from SEED on
	@deploy/build.py build tests/sim/sim target/lower_test
	@WPK_TEST_PROGRAMS=2000 build/target/lower_test
	@WPK_KILLS=100 python3 tests/e2e/test_kills.py
	@build/tests/sim/sim --seed $(or $(SEED),1001) --count 50000

bench: all ## compare with ONNX Runtime, OpenVINO, oneDNN, ncnn, MNN (minutes)
	@$(SETUP) bench
	@bench/run.sh compare

bench-gpu: all ## tune the bench's operators on a GPU and time them beside PyTorch; GPU=emulated rehearses; DIR (bench/results/gpu)
	@$(SETUP) gpu
	@bench/gpu/run.sh --gpu $(or $(GPU),0) $(if $(filter emulated,$(GPU)),--small --op-seconds 6 --candidates 2) \
	    $(or $(DIR),bench/results/gpu)

bench-models: all ## tune whole models and time them beside ONNX Runtime and OpenVINO (an hour)
	@$(SETUP) bench
	@bench/setup.sh
	@.deps/bench-venv/bin/python bench/models.py $(MODELS)

bench-python: all ## what a run costs from Python, beside ONNX Runtime's; import, forked processes (a minute)
	@$(SETUP) test
	@WPK_BIN=$(CURDIR)/$(BIN) WOODPECKER_LIBRARY=$(CURDIR)/build/runtime/libwpk.so.0 PYTHONPATH=python \
	    .deps/test-venv/bin/python3 bench/python.py

bench-weights: all ## one row by weights of 320 MB, beside the rate at which memory is read (minutes)
	@$(SETUP) bench
	@bench/setup.sh
	@ninja -C build --quiet bench/bench-read-rate
	@.deps/bench-venv/bin/python bench/weights.py $(KINDS)

bench-search: all ## replay every strategy on the tables of bench/search/ (minutes)
	@ninja -C build --quiet bench/bench-search
	@for table in bench/search/*.table; do echo $$table; \
	    for strategy in $$(build/bin/wpkctl strategies | grep -o '^[a-z]*' | grep -vx strategy); do \
	        build/bench/bench-search replay $$table $$strategy --seeds $(or $(SEEDS),40) || exit 1; done; done

bench-tune: all ## tune what the bench compares (long)
	@$(SETUP) bench
	@bench/run.sh tune

format: ## lay out the C and C++ sources as .clang-format says
	@git ls-files '*.c' '*.cc' | xargs clang-format -i

clean: ## remove what was built; .deps/ stays
	rm -rf build build-test
