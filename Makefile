# Thin targets over cargo. `make demo` and `make test` work on a fresh machine with cargo, a C compiler,
# make and python3; everything they make lies under target/.

TARGET ?= $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
CANN := $(TARGET)/cann

.PHONY: all build cann demo test loom header lint clean

all: build

# The library files, the drop-in directory and the controller.
build:
	cargo build --release --workspace
	mkdir -p $(RELEASE)/cann
	ln -sf ../libmsprof_agent.so $(RELEASE)/cann/libprofapi.so

# The stand-in CANN and the demo task.
cann: build
	$(MAKE) -s -f tests/cann/build.mk OUT=$(CANN) AGENT_DIR=$(abspath $(RELEASE)) all mlp_task_linked

# The main job: a demo AI task under the agent, captured and summed up.
demo: cann
	TARGET=$(TARGET) sh examples/demo.sh

test: cann
	cargo test --workspace --no-fail-fast

# Models of the code between a report and the drain (agent/tests/loom.rs). In a directory of its own, since the flag has
# everything built anew.
LOOM := CARGO_TARGET_DIR=$(TARGET)/loom RUSTFLAGS="--cfg loom"
loom:
	$(LOOM) CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		cargo test --release -p msprof-agent-core --test loom

# Refreshes the committed C header.
header:
	MSPROF_AGENT_UPDATE_HEADER=1 cargo build --release

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(LOOM) cargo clippy -p msprof-agent-core --all-targets -- -D warnings

clean:
	cargo clean
