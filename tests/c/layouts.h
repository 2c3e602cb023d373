/* Layouts, once more on this side of the boundary. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include <msprof_agent.h>

#include <stddef.h>

#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define PLACE(type, field, at) \
    _Static_assert(offsetof(struct type, field) == (at), #type "." #field)
SIZE(MsprofApi, 40);
PLACE(MsprofApi, magicNumber, 0);
PLACE(MsprofApi, level, 2);
PLACE(MsprofApi, type, 4);
PLACE(MsprofApi, threadId, 8);
PLACE(MsprofApi, reserve, 12);
PLACE(MsprofApi, beginTime, 16);
PLACE(MsprofApi, endTime, 24);
PLACE(MsprofApi, itemId, 32);
SIZE(MsprofEvent, 40);
PLACE(MsprofEvent, requestId, 12);
PLACE(MsprofEvent, timeStamp, 16);
PLACE(MsprofEvent, eventFlag, 24);
PLACE(MsprofEvent, itemId, 32);
SIZE(MsprofCompactInfo, 64);
PLACE(MsprofCompactInfo, dataLen, 12);
PLACE(MsprofCompactInfo, timeStamp, 16);
PLACE(MsprofCompactInfo, data, 24);
SIZE(MsprofAdditionalInfo, 256);
PLACE(MsprofAdditionalInfo, dataLen, 12);
PLACE(MsprofAdditionalInfo, timeStamp, 16);
PLACE(MsprofAdditionalInfo, data, 24);
PLACE(MsprofAgentStatus, size, 0);
PLACE(MsprofAgentStatus, captures, 16);

#endif
