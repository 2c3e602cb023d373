#ifndef CANN_RUNTIME_NAMES_H
#define CANN_RUNTIME_NAMES_H

#include "apis.h"

void register_runtime_names(void);

#endif
