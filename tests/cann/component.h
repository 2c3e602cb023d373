/*
 * What every component of CANN has: a switch word that its handler sets, and the
 * decorator that wraps its calls.  Built into each of the three libraries.
 */
#ifndef CANN_COMPONENT_H
#define CANN_COMPONENT_H

#include "counts.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct Switches {
    enum Component who;
    _Atomic uint64_t bits; /* 0 while nothing is captured */
    pthread_mutex_t lock;  /* around the two below; never held across an ABI call */
    uint32_t started[PROF_MAX_DEVICES];
    uint32_t started_count;
} Switches;

#define SWITCHES_INIT(component) {.who = (component), .lock = PTHREAD_MUTEX_INITIALIZER}

/* What a command changed. */
typedef enum Change {
    CHANGE_NONE,   /* init, finalize, one device of several */
    CHANGE_START,  /* the first device was started */
    CHANGE_STOP,   /* the last device was stopped */
    CHANGE_BAD,    /* not a command: refused */
} Change;

/*
 * Checks a command as a handler receives it and works out what it changes.  Does
 * not touch the switch bits: the component sets them when it is ready.
 */
Change switches_command(Switches *switches, uint32_t type, const void *data, uint32_t len);

static inline bool switches_on(const Switches *switches, uint64_t mask)
{
    return (atomic_load_explicit(&switches->bits, memory_order_relaxed) & mask) != 0;
}

/* ---- one traced call ---------------------------------------------------- */

typedef struct Call {
    enum Traced what;
    uint16_t level;
    uint32_t type;
    uint64_t window; /* 0: this call is not traced */
    uint64_t begin;
    uint64_t item_id;
} Call;

/* Reads the switch once; what happens to it later does not change this call. */
Call call_begin(const Switches *switches, uint64_t mask, uint16_t level, enum Traced what,
                uint32_t type);
void call_end(Call *call);

/* In place of call_end, a call may report an event when it begins and one when it ends. */
void call_event(const Call *call, uint32_t request_id, enum ProfAging aging);
void call_event_end(const Call *call, uint32_t request_id, enum ProfAging aging);

uint32_t this_thread(void);

/* Fills the head; the payload must be in place. */
void report_compact(enum Traced what, uint16_t level, uint32_t type, ProfCompact *record,
                    uint32_t data_len, uint64_t time, enum ProfAging aging);
void report_additional(enum Traced what, uint16_t level, uint32_t type, ProfAdditional *record,
                       uint32_t data_len, uint64_t time, enum ProfAging aging);

#endif
