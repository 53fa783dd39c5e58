/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line per event, written whole.
 *
 *   text     2026-11-21T03:52:00.125Z info wpkd worker_joined worker=w1 cores=2
 *   json     {"time":"2026-11-21T03:52:00.125Z","level":"info","program":"wpkd",
 *             "event":"worker_joined","worker":"w1","cores":"2"}
 *   journal  <6>worker_joined worker=w1 cores=2
 *
 * Log an error or return it, never both: only main, the loop and the command line write here.
 * main sets the log up before it starts threads; level and format may change at any time. Lines of
 * several threads do not mix. Control characters are escaped, so that no value can forge a line.
 * The caller quotes a value that may contain blanks: reason=\"%s\".
 *
 * At most WPK_LOG_REPEATS_MAX warnings and errors of one event are written in WPK_LOG_REPEATS_S
 * seconds; the first line after that has suppressed=N, the number of lines that were dropped. */
#ifndef WPK_COMMON_LOG_H
#define WPK_COMMON_LOG_H

#include "common/err.h"

#define WPK_LOG_LINE_MAX 2048 /* bytes; a longer line is cut and ends in "..." */
#define WPK_LOG_REPEATS_MAX 20
#define WPK_LOG_REPEATS_S 10

#define WPK_LOG_LEVEL_LIST(X)                                                                      \
    X(DEBUG, "debug")                                                                              \
    X(INFO, "info")                                                                                \
    X(WARN, "warn")                                                                                \
    X(ERROR, "error")

#define WPK_LOG_FORMAT_LIST(X)                                                                     \
    X(TEXT, "text")                                                                                \
    X(JSON, "json")                                                                                \
    X(JOURNAL, "journal") /* the level in sd-daemon(3)'s form; the journal adds the rest */

#define WPK_LOG_ENUM(name, text) WPK_LOG_##name,
enum wpk_log_level { WPK_LOG_LEVEL_LIST(WPK_LOG_ENUM) };

#define WPK_LOG_FORMAT_ENUM(name, text) WPK_LOG_FORMAT_##name,
enum wpk_log_format { WPK_LOG_FORMAT_LIST(WPK_LOG_FORMAT_ENUM) };

/* `program` is borrowed for good. Before this call: level info, standard error, no program. */
void wpk_log_init(const char *program, enum wpk_log_level level, int fd);
void wpk_log_set_level(enum wpk_log_level level);
void wpk_log_set_format(enum wpk_log_format format);

/* The current level and format; a program passes them to the programs that it starts. */
enum wpk_log_level wpk_log_get_level(void);
enum wpk_log_format wpk_log_get_format(void);

const char *wpk_log_level_name(enum wpk_log_level level);
const char *wpk_log_format_name(enum wpk_log_format format);
wpk_err wpk_log_level_parse(const char *text, enum wpk_log_level *level);
wpk_err wpk_log_format_parse(const char *text, enum wpk_log_format *format);
bool wpk_log_enabled(enum wpk_log_level level);

/* `event`: lower_case_with_underscores; `format`: key=value pairs, or "" for none. */
void wpk_log(enum wpk_log_level level, const char *event, const char *format, ...) WPK_PRINTF(3, 4);

/* Log an event with a failure's code and detail; `diag` may be NULL. */
void wpk_log_failure(enum wpk_log_level level, const char *event, wpk_err err,
                     const struct wpk_diag *diag);

#endif
