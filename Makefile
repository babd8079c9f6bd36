# `make run` trains on Fashion-MNIST, `make test` builds and tests; the other targets are for
# development. Variables: PRESET (release), JOBS (all cores), ARGS (for the program that is run).

PRESET ?= release
JOBS ?= $(shell nproc)
ARGS ?=
FUZZ_SECONDS ?= 120
BIN = build/$(PRESET)/bin

# libgomp's threads (oneDNN's) would otherwise spin where there are fewer cores than threads.
export OMP_WAIT_POLICY = passive

# gcc 12's thread sanitizer needs the address space layout of older kernels.
tsan: RUNNER = setarch --addr-no-randomize

CTEST = $(RUNNER) ctest --test-dir build/$(PRESET) --output-on-failure --no-tests=error -j $(JOBS)
CXX_SOURCES = git ls-files '*.cpp' '*.h'

.PHONY: run test bench bench-compare asan tsan fuzz format format-check lint docs clean setup configure build

run: configure
	cmake --build build/$(PRESET) -j $(JOBS) --target fornax fashion_mnist
	$(BIN)/fashion_mnist $(ARGS)

test: build
	$(CTEST)

bench: configure
	cmake --build build/$(PRESET) -j $(JOBS) --target fornax-bench
	$(BIN)/fornax-bench $(ARGS)

# Both sides: installs PyTorch into build/peer-venv on the first use.
bench-compare: configure
	cmake --build build/$(PRESET) -j $(JOBS) --target fornax-bench
	bench/compare.py --ours $(BIN)/fornax-bench $(ARGS)

asan tsan:
	$(MAKE) PRESET=$@ build
	$(MAKE) PRESET=$@ RUNNER="$(RUNNER)" ctest-only

ctest-only:
	$(CTEST)

fuzz: build
	FORNAX_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CTEST) -R '[Ff]uzz'

format:
	$(CXX_SOURCES) | xargs clang-format-14 -i

format-check:
	$(CXX_SOURCES) | xargs clang-format-14 --dry-run -Werror

lint: format-check
	tools/check_layers
	tools/check_headers

docs: configure
	cmake --build build/$(PRESET) -j $(JOBS) --target fornax
	$(BIN)/fornax ops --markdown > docs/operators.md

clean:
	rm -rf build/release build/debug build/dev build/asan build/tsan build/ci

setup:
	scripts/setup.sh

configure: setup
	cmake --preset $(PRESET) $(if $(VERBOSE),,--log-level=WARNING)

build: configure
	cmake --build build/$(PRESET) -j $(JOBS)
