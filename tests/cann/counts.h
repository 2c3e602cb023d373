/*
 * The tests' oracle: how many calls began, and how many records were made,
 * while profiling was on.  Kept apart from the reporting, in libruntime.so.
 *
 * A window is what lies between the first START and the STOP of the last
 * started device, as the runtime's handler sees them.  Windows are numbered
 * from 1.  For each kind of call:
 *
 *     began - open  <=  records of the kind in the capture  <=  began + carried
 *
 * `open` calls had begun but not reported when the window closed; `carried` ones
 * began in an earlier window and reported after its end, so that they may be in
 * this window's capture.  Each is at most the calls that a stop or start cut.
 */
#ifndef CANN_COUNTS_H
#define CANN_COUNTS_H

#include "apis.h"
#include "export.h"

/* Who is commanded: one row each in the JSON's "commands". */
enum Component { COMPONENT_RUNTIME, COMPONENT_ACL, COMPONENT_GE, COMPONENT_COUNT };

/*
 * Counts one call or record and returns its window's number, or 0 when no window
 * is open: then the caller reports nothing.  cannCountEnd says that all reports of
 * a counted call are made.
 */
CANN_EXPORT uint64_t cannCountBegin(enum Traced what);
CANN_EXPORT void cannCountEnd(enum Traced what, uint64_t window);

/* Round each report call of a counted call; the first's result goes to the second. */
CANN_EXPORT uint64_t cannReportBegin(enum Traced what, uint64_t window);
CANN_EXPORT void cannReportEnd(enum Traced what, uint64_t window, uint64_t lands);

/*
 * A process-wide running number in the low 40 bits with the window's number
 * above, when CANN_STANDIN_STAMP=1 is set; 0 when not.
 */
CANN_EXPORT uint64_t cannStamp(uint64_t window);

/* The runtime's handler opens and closes windows; all handlers note commands. */
void cannWindowOpen(uint64_t switches, uint64_t switches_hi);
void cannWindowDevice(void);
void cannWindowClose(void);
CANN_EXPORT void cannCountCommand(enum Component component, uint32_t kind);
CANN_EXPORT void cannCountBadCommand(void);

#endif
