# `make aarch64`: the tests for aarch64 on a machine of another kind, under qemu. Included by the Makefile.
#
# The agent's own tests are programs of aarch64. The end-to-end tests run as what they are; the programs that they start and
# look at from outside are of aarch64, and so are the files under test, which are the portable ones.
# qemu finds the libraries of aarch64 where dpkg puts them (multiarch); a second set by qemu's -L has threads spin for ever.
# Limits on time are ten times as long.
#
# `.ci/with-aarch64 make aarch64` has programs of aarch64 start others, and a shell, coreutils and a python3 of aarch64. What
# wants them is left out without it, and named.
AARCH64 := $(abspath $(TARGET))/aarch64
AARCH64_CC := aarch64-linux-gnu-
QEMU := qemu-aarch64-static

# What qemu starts by itself.
AARCH64_TESTS := binary clocks components cycles device_channels device_faults device_hangs device_lives devices dictionary \
	environment families field_reports forks header late_names log marks models names odd_families panics partial_runs \
	passed_on process recover refusals session_limits several_clients signals socket_file stock_client third_parties ways_in
# What wants `.ci/with-aarch64`.
AARCH64_TESTS_OF_STARTS := bad_output companions containers disks doctor failed_captures flood homes hostile images inert installed \
	linking list loader main_job manners one_shot opened other_libcs python record rescue several_pids storage_limit wants way_d

# What is left out always, and why:
#
# qemu has no filters of system calls: old_kernels, sandbox
# and no ptrace: rescue_cut_short, and
AARCH64_SKIPPED := a_debugger
# and no MADV_WIPEONFORK and MADV_DONTFORK; it says that it did, and does nothing
AARCH64_SKIPPED += does_not_hold_its_parents_buffers
# A program shares its address space with qemu, whose code and thread it has too, and whose memory grows with the code that it
# has translated: address_space, crowds, and
AARCH64_SKIPPED += takes_less_than_two_megabytes do_not_make_the_process_grow amid_reports_and_captures_leaves_nothing_behind \
	alone_in_a_namespace_of_its_own
# Rates that its speed does not allow.
AARCH64_SKIPPED += at_200_000_records_a_second under_heavy_load that_the_driver_had_no_room_for cost_each_what_the_first_ones_do
# Set-user-id bits are qemu's, which has none.
AARCH64_SKIPPED += a_set_user_id_program a_program_with_more_rights_than_its_user
# The portable files have an unwinder of their own (Makefile, `portable`): no C++ exception goes through the library.
AARCH64_SKIPPED += a_handler_that_panics_or_throws what_the_vendors_library_throws what_a_callback_throws
# Its thousands of children take longer than all others together: pool.
# Two clocks that are read one right after the other are microseconds apart in it: hosts.
# The agent looks whether a descriptor is its own right before it uses it. In qemu a program can come in between.
AARCH64_SKIPPED += a_program_that_takes_our_descriptors_as_soon
# The program of each process is qemu, which is also in its command line.
AARCH64_SKIPPED += a_launcher_is_listed of_a_launcher_the_task_is_named a_long_command_is_cut_in_the_table
# The cross compiler names one that is not of the C library that qemu finds.
AARCH64_SKIPPED += the_c_librarys_checking_allocator
# There is no ldd for aarch64: fresh_root.
# One of the agent's own tests starts itself anew, which is not to depend on `.ci/with-aarch64`.
#
# Nothing of aarch64 runs in them: dist, fuzz_replay, troubleshooting. What wants the vendor's parser: demo_timeline, device_exports,
# families_exported, families_joined, stock_parser. A browser is what it is about: view. Not tried: export,
# user_namespaces.
#
# Weak memory order qemu does not show on x86: `make loom` is for that.

AARCH64_CARGO = $(AARCH64_FORKS) CARGO_TARGET_DIR=$(AARCH64)/build CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$(AARCH64_CC)gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$(QEMU)
AARCH64_STARTS := $(AARCH64)/root/usr/bin/python3 -c '' 2>/dev/null
# qemu before 8.1 takes small memory from glib, whose lock of its own a child can inherit locked: of a program with threads that
# forks in mid translation every twentieth or so hangs. With this glib takes it from malloc, which a fork looks after.
AARCH64_FORKS := G_SLICE=always-malloc
AARCH64_TEST = $(AARCH64_FORKS) MSPROF_TEST_TARGET=$(AARCH64) MSPROF_TEST_PORTABLE=$(abspath $(PORTABLE)) MSPROF_TEST_CROSS=$(AARCH64_CC) \
	MSPROF_TEST_RUNNER=$(QEMU) MSPROF_TEST_SLOWER=10

aarch64: ARCH := aarch64
aarch64: portable
	@for tool in $(AARCH64_CC)gcc $(AARCH64_CC)g++ $(QEMU); do command -v $$tool >/dev/null || \
		{ echo "$$tool is missing: on Debian the packages gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu, qemu-user-static" \
		"and, after dpkg --add-architecture arm64, libc6:arm64 and libstdc++6:arm64" >&2; exit 1; }; done
	mkdir -p $(AARCH64)/release
	cp $(addprefix $(PORTABLE)/,libmsprof_agent.so libmsprof_agent.a msprof) $(AARCH64)/release/
	$(call drop_ins,$(AARCH64)/release)
	$(MAKE) -s -f tests/cann/build.mk OUT=$(AARCH64)/cann AGENT_DIR=$(AARCH64)/release CC=$(AARCH64_CC)gcc all linked
	@suites="$(AARCH64_TESTS)"; skipped="$(AARCH64_SKIPPED)"; \
	if $(AARCH64_STARTS); then \
		suites="$$suites $(AARCH64_TESTS_OF_STARTS)"; \
		PATH=$(AARCH64)/root/bin:$(AARCH64)/root/usr/bin:$$PATH; \
	else \
		skipped="$$skipped python"; \
		echo "left out without .ci/with-aarch64: tests with python3, and $(AARCH64_TESTS_OF_STARTS)"; \
	fi; \
	set -x; $(AARCH64_TEST) cargo test --no-fail-fast $$(printf -- '--test %s ' $$suites) -- $$(printf -- '--skip %s ' $$skipped)
	@$(find_rustc); set -x; $(AARCH64_CARGO) cargo test -p msprof-agent-core --target $(TRIPLE) --lib --test ledger \
		-- --skip files_never_become_the_standard_streams
