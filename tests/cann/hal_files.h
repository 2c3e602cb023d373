/* The directory in which a test watches and steers the driver; see hal.h. */
#ifndef CANN_HAL_FILES_H
#define CANN_HAL_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* What one start of a channel has served. */
typedef struct HalServed {
    uint64_t records;
    uint64_t digest;
    uint32_t starts; /* of the channel */
    int count_file;  /* 0: none, as the one below */
    int bytes_file;
} HalServed;

/* At the begin of each call: notes the first one, and hangs if it is to. */
void hal_enter(const char *call, uint32_t device, uint32_t channel);
/* At the end of those that are noted each time; returns the result. */
int hal_leave(const char *call, uint32_t device, uint32_t channel, int result);
void hal_hang(const char *call, uint32_t device, uint32_t channel);
bool hal_is_gone(uint32_t device);

void hal_open_served(HalServed *served, uint32_t device, uint32_t channel);
void hal_count_served(HalServed *served, const void *record);
void hal_keep_served(const HalServed *served, const void *bytes, uint32_t len, uint64_t lost);
void hal_close_served(HalServed *served, uint64_t lost);

#endif
