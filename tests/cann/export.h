/* What a library of the stand-in shows to others; all else is built hidden. */
#ifndef CANN_EXPORT_H
#define CANN_EXPORT_H

#define CANN_EXPORT __attribute__((visibility("default")))

#endif
