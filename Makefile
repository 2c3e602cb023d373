# Thin targets over cargo. `make demo` and `make test` work on a fresh machine with cargo, a C and a C++ compiler,
# binutils, make and python3; everything they make lies under target/.

TARGET ?= $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
CANN := $(TARGET)/cann

.PHONY: all build cann portable check-portable demo test loom tsan asan aarch64 dist check-install header manual lint clean

all: build

# The library in a directory under the names of the vendor's: of the one that reports go to, and of the one behind it.
define drop_ins
mkdir -p $(1)/cann $(1)/cann-impl
ln -sf ../libmsprof_agent.so $(1)/cann/libprofapi.so
ln -sf ../libmsprof_agent.so $(1)/cann-impl/libprofimpl.so
endef

# The library files, the drop-in directories and the controller.
build:
	cargo build --release --workspace
	$(call drop_ins,$(RELEASE))

# What runs on old hosts: `make portable ARCH=x86_64` or `ARCH=aarch64` (this machine's own if not said) puts
#
#   libmsprof_agent.so  libmsprof_agent.a  msprof
#
# into $(TARGET)/portable/<ARCH>. They want glibc 2.17 or newer and nothing but glibc: zig, by cargo-zigbuild, links with the
# symbols of that version, and brings the unwinder along that the files of `make build` take from libgcc_s.so.1. It is the
# shipped build, LTO included. tests/binary.rs says what must hold of them. Their own unwinder does not know the contexts of
# gcc's: a C++ exception that a handler lets out ends the program with SIGSEGV, and not with SIGABRT as it does with the
# files of `make build`; no exception may cross the library in either.
# rustup's rustc is taken where it has std for ARCH, else Debian's.
ARCH ?= $(shell uname -m)
TRIPLE = $(ARCH)-unknown-linux-gnu
PORTABLE = $(TARGET)/portable/$(ARCH)
ZIGBUILT = $(TARGET)/zigbuild/$(TRIPLE)/release
RUSTCS = $(or $(RUSTC),rustc) /usr/bin/rustc
# Sets the shell's RUSTC.
define find_rustc
for RUSTC in $(RUSTCS) ""; do \
	test -z "$$RUSTC" || ls "$$($$RUSTC --print target-libdir --target $(TRIPLE) 2>/dev/null)"/libstd-* >/dev/null 2>&1 || continue; \
	break; \
done; \
if [ -z "$$RUSTC" ]; then \
	echo "no std for $(TRIPLE): rustup target add $(TRIPLE), or on Debian the packages rustc-web and" \
		"libstd-rust-web-dev:arm64, after dpkg --add-architecture arm64" >&2; \
	exit 1; \
fi; \
export RUSTC
endef
portable:
	@cargo zigbuild --help >/dev/null 2>&1 || { echo "cargo-zigbuild is missing: pip install cargo-zigbuild, which brings zig" \
		"along; in a virtual environment its bin/ has to be in PATH" >&2; exit 1; }
	@$(find_rustc); set -x; CARGO_TARGET_DIR=$(TARGET)/zigbuild cargo zigbuild --release --workspace --target $(TRIPLE).2.17
	mkdir -p $(PORTABLE)
	cp $(addprefix $(ZIGBUILT)/,libmsprof_agent.so libmsprof_agent.a msprof) $(PORTABLE)/

# The gates of tests/binary.rs on them.
check-portable: portable
	MSPROF_TEST_PORTABLE=$(abspath $(PORTABLE)) cargo test --test binary

# The stand-in CANN and the demo task.
cann: build
	$(MAKE) -s -f tests/cann/build.mk OUT=$(CANN) AGENT_DIR=$(abspath $(RELEASE)) all linked

# The main job: a demo AI task under the agent, captured and summed up.
demo: cann
	TARGET=$(TARGET) sh examples/demo.sh

# A shell that starts this in the background has SIGINT ignored, which tests of Ctrl-C would inherit.
DEFAULT_SIGNALS := $(shell env --default-signal true 2>/dev/null && echo env --default-signal)

test: cann
	$(DEFAULT_SIGNALS) cargo test --workspace --no-fail-fast

# Models of the code between a report and the drain (agent/tests/loom). In a directory of its own, since the flag has
# everything built anew.
LOOM := CARGO_TARGET_DIR=$(TARGET)/loom RUSTFLAGS="--cfg loom"
loom:
	$(LOOM) CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		cargo test --release -p msprof-agent-core --test loom

HOST = $(shell rustc -vV | sed -n 's/^host: //p')

# Reports, drain and captures under ThreadSanitizer: tests with several threads, and captures that start and stop while
# threads report. std is built along (which wants the component rust-src): what the ready-made one orders, in a lock, a
# channel or an Arc, the sanitizer does not see and takes for races.
TSAN := RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$(TARGET)/tsan RUSTFLAGS=-Zsanitizer=thread \
	cargo test -Zbuild-std -p msprof-agent-core --target
tsan:
	$(TSAN) $(HOST) --lib -- arena:: capture:: clock:: components:: copy:: diverted:: gate:: lanes:: ring:: waiting:: write_back::
	$(TSAN) $(HOST) --test ledger

# The C programs of the end-to-end tests and the library in them under AddressSanitizer, leaks included, the programs
# under UndefinedBehaviorSanitizer too; all go by gcc's runtime. What the sanitizers have to say goes to files, since a
# test may not look at how its program ends.
ASAN := $(abspath $(TARGET))/asan
ASAN_CFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ASAN_TESTS := components environment header main_job names panics process recover ways_in
# What a forked child has from its parent's other threads, who are not in it, counts as leaked.
ASAN_TESTS_WITHOUT_LEAKS := forks
# Programs that are not built here and so do not bring the sanitizer's runtime: python3, and one of Rust.
ASAN_SKIPPED := --skip a_python_program --skip a_handler_that_panics_or_throws
# A preloaded library comes before libasan.
ASAN_OPTIONS := verify_asan_link_order=0:log_path=$(ASAN)/reports/asan
ASAN_TEST := MSPROF_TEST_TARGET=$(ASAN) MSPROF_TEST_CFLAGS="$(ASAN_CFLAGS)" UBSAN_OPTIONS=print_stacktrace=1
asan: build
	RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$(ASAN) RUSTFLAGS="-Zsanitizer=address -Clink-arg=-lasan" \
		CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=1 CARGO_PROFILE_RELEASE_STRIP=none \
		cargo build --release -p msprof-agent --target $(HOST)
	rm -rf $(ASAN)/reports
	mkdir -p $(ASAN)/reports $(ASAN)/release
	cp $(RELEASE)/msprof $(ASAN)/release/
	ln -sf $(addprefix $(ASAN)/$(HOST)/release/,libmsprof_agent.so libmsprof_agent.a) $(ASAN)/release/
	$(call drop_ins,$(ASAN)/release)
	$(MAKE) -s -f tests/cann/build.mk OUT=$(ASAN)/cann AGENT_DIR=$(ASAN)/release CFLAGS="-O1 -g $(ASAN_CFLAGS)" \
		all linked
	$(ASAN_TEST) ASAN_OPTIONS=$(ASAN_OPTIONS) cargo test --no-fail-fast $(ASAN_TESTS:%=--test %) -- $(ASAN_SKIPPED)
	$(ASAN_TEST) ASAN_OPTIONS=$(ASAN_OPTIONS):detect_leaks=0 \
		cargo test --no-fail-fast $(ASAN_TESTS_WITHOUT_LEAKS:%=--test %)
	@! cat $(ASAN)/reports/* 2>/dev/null

include tests/aarch64.mk
include packaging/install.mk

# A tarball and a .deb under $(TARGET)/dist, of the release build or of files that were built elsewhere.
DIST_FROM ?= $(RELEASE)
dist:
	sh packaging/dist.sh $(DIST_FROM) $(ARCH) $(TARGET)/dist

# The installation in a fresh Debian without Rust, and the main job there; wants root and debootstrap. In an older one
# than this machine with DIST_FROM and DEMO that were built for it.
DEMO ?= $(CANN)
check-install: cann
	sh packaging/check-install.sh $(abspath $(DIST_FROM)) $(abspath $(DEMO))

# Refreshes the committed C header.
header:
	MSPROF_AGENT_UPDATE_HEADER=1 cargo build --release

# The man page and the completions in packaging/, which are made of the tables of options.
manual:
	MSPROF_UPDATE_MANUAL=1 cargo test -p msprof --bin msprof manual

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(LOOM) cargo clippy -p msprof-agent-core --all-targets -- -D warnings

clean:
	cargo clean
