/*
 * Commands in, records out: the part that is the same in every component.
 *
 * A command is checked as strictly as the documented layout allows; a handler
 * that took anything would hide a wrong size or a device list in the wrong place.
 */
#include "component.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_MODEL = -1, NOT_AN_NPU_SHIFT = 31 };

/* ---- commands ----------------------------------------------------------- */

static bool well_formed(const ProfCommand *command)
{
    if (command->kind > PROF_COMMAND_FINALIZE) {
        return false; /* model subscription is not for this kind of component */
    }
    if (command->params_len >= sizeof command->params) {
        return false;
    }
    if (command->kind == PROF_COMMAND_INIT || command->kind == PROF_COMMAND_FINALIZE) {
        return command->switches == 0 && command->device_count == 0;
    }
    if (command->device_count == 0 || command->device_count > PROF_MAX_DEVICES ||
        command->model_id != (uint32_t)NO_MODEL || command->cache_flag != 0) {
        return false;
    }
    for (uint32_t i = 0; i < command->device_count; i++) {
        if (command->devices[i] >> NOT_AN_NPU_SHIFT != 0) {
            return false;
        }
    }
    return true;
}

static bool add_device(Switches *switches, uint32_t device)
{
    for (uint32_t i = 0; i < switches->started_count; i++) {
        if (switches->started[i] == device) {
            return true;
        }
    }
    if (switches->started_count == PROF_MAX_DEVICES) {
        return false;
    }
    switches->started[switches->started_count++] = device;
    return true;
}

static void remove_device(Switches *switches, uint32_t device)
{
    for (uint32_t i = 0; i < switches->started_count; i++) {
        if (switches->started[i] == device) {
            switches->started[i] = switches->started[--switches->started_count];
            return;
        }
    }
}

Change switches_command(Switches *switches, uint32_t type, const void *data, uint32_t len)
{
    ProfCommand command;
    if (type != PROF_COMMAND_TYPE || data == NULL || len != sizeof command) {
        cannCountBadCommand();
        return CHANGE_BAD;
    }
    memcpy(&command, data, sizeof command);
    if (!well_formed(&command)) {
        cannCountBadCommand();
        return CHANGE_BAD;
    }
    cannCountCommand(switches->who, command.kind);
    if (command.kind != PROF_COMMAND_START && command.kind != PROF_COMMAND_STOP) {
        return CHANGE_NONE;
    }

    pthread_mutex_lock(&switches->lock);
    bool before = switches->started_count != 0;
    for (uint32_t i = 0; i < command.device_count; i++) {
        if (command.kind == PROF_COMMAND_STOP) {
            remove_device(switches, command.devices[i]);
        } else if (!add_device(switches, command.devices[i])) {
            cannCountBadCommand();
        }
    }
    bool after = switches->started_count != 0;
    pthread_mutex_unlock(&switches->lock);

    if (before == after) {
        return CHANGE_NONE;
    }
    return after ? CHANGE_START : CHANGE_STOP;
}

/* ---- calls -------------------------------------------------------------- */

/* Not cached: a cached number would be the parent's in a forked child. */
uint32_t this_thread(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

Call call_begin(const Switches *switches, uint64_t mask, uint16_t level, enum Traced what,
                uint32_t type)
{
    Call call = {.what = what, .level = level, .type = type};
    if (switches_on(switches, mask)) {
        call.window = cannCountBegin(what);
        if (call.window != 0) {
            call.begin = MsprofSysCycleTime();
        }
    }
    return call;
}

void call_end(Call *call)
{
    if (call->window == 0) {
        return;
    }
    ProfApi api = {
        .magic = PROF_MAGIC,
        .level = call->level,
        .type = call->type,
        .thread_id = this_thread(),
        .begin = call->begin,
        .end = MsprofSysCycleTime(),
        .item_id = call->item_id,
    };
    uint64_t lands = cannReportBegin(call->what, call->window);
    (void)MsprofReportApi(PROF_AGING, &api);
    cannReportEnd(call->what, call->window, lands);
    cannCountEnd(call->what, call->window);
}

void call_event(const Call *call, uint32_t request_id, enum ProfAging aging)
{
    if (call->window == 0) {
        return;
    }
    ProfEvent event = {
        .magic = PROF_MAGIC,
        .level = call->level,
        .type = call->type,
        .thread_id = this_thread(),
        .request_id = request_id,
        .time = MsprofSysCycleTime(),
        .event_mark = PROF_EVENT_MARK,
        .item_id = call->item_id,
    };
    uint64_t lands = cannReportBegin(call->what, call->window);
    (void)MsprofReportEvent(aging, &event);
    cannReportEnd(call->what, call->window, lands);
}

void call_event_end(const Call *call, uint32_t request_id, enum ProfAging aging)
{
    call_event(call, request_id, aging);
    if (call->window != 0) {
        cannCountEnd(call->what, call->window);
    }
}

/* ---- records that are no calls ------------------------------------------ */

static ProfHead head(uint16_t level, uint32_t type, uint32_t data_len, uint64_t time)
{
    return (ProfHead){
        .magic = PROF_MAGIC,
        .level = level,
        .type = type,
        .thread_id = this_thread(),
        .data_len = data_len,
        .time = time,
    };
}

void report_compact(enum Traced what, uint16_t level, uint32_t type, ProfCompact *record,
                    uint32_t data_len, uint64_t time, enum ProfAging aging)
{
    uint64_t window = cannCountBegin(what);
    if (window == 0) {
        return;
    }
    record->head = head(level, type, data_len, time);
    uint64_t lands = cannReportBegin(what, window);
    (void)MsprofReportCompactInfo(aging, record, sizeof *record);
    cannReportEnd(what, window, lands);
    cannCountEnd(what, window);
}

void report_additional(enum Traced what, uint16_t level, uint32_t type, ProfAdditional *record,
                       uint32_t data_len, uint64_t time, enum ProfAging aging)
{
    uint64_t window = cannCountBegin(what);
    if (window == 0) {
        return;
    }
    record->head = head(level, type, data_len, time);
    uint64_t lands = cannReportBegin(what, window);
    (void)MsprofReportAdditionalInfo(aging, record, sizeof *record);
    cannReportEnd(what, window, lands);
    cannCountEnd(what, window);
}
