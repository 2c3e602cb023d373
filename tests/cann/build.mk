# The stand-in CANN and the demo task, built from the repository's root:
#
#   make -f tests/cann/build.mk OUT=<dir>                    libraries and mlp_task
#   make -f tests/cann/build.mk OUT=<dir> AGENT_DIR=<dir> mlp_task_linked
#
# AGENT_DIR holds libmsprof_agent.so.  CC and CFLAGS are honoured; a different
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

LIBS := $(addprefix $(OUT)/,libprofapi.so libruntime.so libge_executor.so libascendcl.so)

.PHONY: all mlp_task mlp_task_linked clean
all: $(LIBS) $(OUT)/mlp_task
mlp_task: $(OUT)/mlp_task
mlp_task_linked: $(OUT)/mlp_task_linked

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

$(OBJ):
	mkdir -p $@

clean:
	rm -rf $(OBJ) $(LIBS) $(OUT)/mlp_task $(OUT)/mlp_task_linked

-include $(wildcard $(OBJ)/*.d)
