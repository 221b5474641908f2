/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured logging to standard error: one line an event, key=value. The level
 * comes from HOLDFAST_LOG (error, warn, info, debug; default error). Never a
 * secret, never a row of data.
 * Thread: any.
 */
#ifndef HF_BASE_LOG_H
#define HF_BASE_LOG_H

#include "base/error.h"

typedef enum log_level { LOG_ERROR = 0, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;

/* Tells whether a line of this level would be written. */
bool log_is_on(log_level level);
/* Writes "<time> <level> <subsystem> <format…>"; the format holds key=value pairs. */
void log_event(log_level level, const char *subsystem, const char *format, ...) HF_PRINTF(3, 4);

#endif
