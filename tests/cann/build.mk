# The stand-in CANN and the demo task, built from the repository's root:
#
#   make -f tests/cann/build.mk OUT=<dir>                    libraries and mlp_task
#   make -f tests/cann/build.mk OUT=<dir> AGENT_DIR=<dir> linked
#
# AGENT_DIR holds libmsprof_agent.so and .a.  CC and CFLAGS are honoured; a different
# CFLAGS wants a different OUT, since flags are not part of a target's age.

ifeq ($(OUT),)
$(error OUT=<directory> is not set)
endif

CANN := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
EXAMPLES := $(CANN)/../../examples
OBJ := $(OUT)/obj

CFLAGS ?= -O2 -g
OWN_CFLAGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -pthread -fPIC -fvisibility=hidden -I$(CANN)
# All are used; a linker that drops what looks unused would lose a DT_NEEDED.
OWN_LDFLAGS := -pthread -L$(OUT) -Wl,--no-as-needed -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN'

# The driver, and one from before halProfDataFlush. Nobody is linked with it.
DRIVERS := $(addprefix $(OUT)/,libascend_hal.so old/libascend_hal.so)
LIBS := $(addprefix $(OUT)/,libprofapi.so libruntime.so libge_executor.so libascendcl.so) $(DRIVERS)

.PHONY: all mlp_task linked clean
all: $(LIBS) $(OUT)/mlp_task $(OUT)/libmlp_task.so
mlp_task: $(OUT)/mlp_task
linked: $(OUT)/mlp_task_linked $(OUT)/mlp_task_static

libprofapi_OBJS := profapi.o
libruntime_OBJS := runtime.o runtime_names.o component.o counts.o
libge_executor_OBJS := ge.o mlp.o component.o
libascendcl_OBJS := ascendcl.o component.o

define library
$$(OUT)/$(1).so: $$(addprefix $$(OBJ)/,$$($(1)_OBJS)) $(addprefix $(OUT)/lib,$(addsuffix .so,$(2)))
	$$(CC) $$(CFLAGS) -shared -Wl,-soname,$(1).so -o $$@ $$(filter %.o,$$^) $$(OWN_LDFLAGS) $(addprefix -l,$(2)) $(3) $$(LDFLAGS)
endef
$(eval $(call library,libprofapi,,))
$(eval $(call library,libruntime,profapi,))
$(eval $(call library,libge_executor,runtime profapi,-lm))
$(eval $(call library,libascendcl,ge_executor runtime profapi,))

HAL_OBJS := $(addprefix $(OBJ)/,hal_files.o hal_records.o hal_settings.o)
$(OUT)/libascend_hal.so: $(OBJ)/hal.o $(HAL_OBJS)
$(OUT)/old/libascend_hal.so: $(OBJ)/hal_old.o $(HAL_OBJS) | $(OUT)/old
$(DRIVERS):
	$(CC) $(CFLAGS) -shared -Wl,-soname,libascend_hal.so -o $@ $(filter %.o,$^) -pthread $(LDFLAGS)

$(OBJ)/hal_old.o: $(CANN)/hal.c | $(OBJ)
	$(CC) $(CFLAGS) $(OWN_CFLAGS) -DHAL_OLD -MMD -MP -c -o $@ $<

$(OBJ)/%.o: $(CANN)/%.c | $(OBJ)
	$(CC) $(CFLAGS) $(OWN_CFLAGS) -MMD -MP -c -o $@ $<

$(OBJ)/mlp_task.o: $(EXAMPLES)/mlp_task.c | $(OBJ)
	$(CC) $(CFLAGS) $(OWN_CFLAGS) -MMD -MP -c -o $@ $<

# The linker follows DT_NEEDED of the libraries it is given, hence -rpath-link.
$(OUT)/mlp_task: $(OBJ)/mlp_task.o $(LIBS)
	$(CC) $(CFLAGS) -o $@ $< $(OWN_LDFLAGS) -Wl,-rpath-link,$(OUT) -lascendcl -lruntime -lm $(LDFLAGS)

# The agent stands first, so that its symbols win over those of libprofapi.so.
$(OUT)/mlp_task_linked: $(OBJ)/mlp_task.o $(LIBS) $(AGENT_DIR)/libmsprof_agent.so
	$(CC) $(CFLAGS) -o $@ $< $(OWN_LDFLAGS) -Wl,-rpath-link,$(OUT) -Wl,-rpath,$(abspath $(AGENT_DIR)) -L$(AGENT_DIR) -lmsprof_agent -lascendcl -lruntime -lm $(LDFLAGS)

# Every object of the archive: a program calls next to none of it, and its libraries are to be bound to it.
$(OUT)/mlp_task_static: $(OBJ)/mlp_task.o $(LIBS) $(AGENT_DIR)/libmsprof_agent.a
	$(CC) $(CFLAGS) -o $@ $< -Wl,--whole-archive $(AGENT_DIR)/libmsprof_agent.a -Wl,--no-whole-archive $(OWN_LDFLAGS) -Wl,-rpath-link,$(OUT) -lascendcl -lruntime -lm -ldl $(LDFLAGS)

# The task for programs that load it: its main() is a function like others.
$(OBJ)/libmlp_task.o: $(EXAMPLES)/mlp_task.c | $(OBJ)
	$(CC) $(CFLAGS) $(OWN_CFLAGS) -fvisibility=default -MMD -MP -c -o $@ $<

$(OUT)/libmlp_task.so: $(OBJ)/libmlp_task.o $(LIBS)
	$(CC) $(CFLAGS) -shared -Wl,-soname,libmlp_task.so -o $@ $< $(OWN_LDFLAGS) -Wl,-rpath-link,$(OUT) -lascendcl -lruntime -lm $(LDFLAGS)

$(OBJ) $(OUT)/old:
	mkdir -p $@

clean:
	rm -rf $(OBJ) $(LIBS) $(OUT)/libmlp_task.so $(OUT)/mlp_task $(OUT)/mlp_task_linked $(OUT)/mlp_task_static

-include $(wildcard $(OBJ)/*.d)
