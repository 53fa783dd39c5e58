/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include "common/buf.h"
#include "common/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {
#define WPK_LOG_NAME(name, text) text,
    WPK_LOG_LEVEL_LIST(WPK_LOG_NAME)
#undef WPK_LOG_NAME
};

#define LEVEL_COUNT (sizeof(level_names) / sizeof(level_names[0]))

/* Written by main before threads start, read by all. */
static struct {
    const char *program;
    enum wpk_log_level level;
    int fd;
} log_target = {.program = "", .level = WPK_LOG_INFO, .fd = STDERR_FILENO};

void wpk_log_init(const char *program, enum wpk_log_level level, int fd)
{
    WPK_ASSERT(program != NULL);
    WPK_ASSERT((size_t)level < LEVEL_COUNT);
    log_target.program = program;
    log_target.level = level;
    log_target.fd = fd;
}

const char *wpk_log_level_name(enum wpk_log_level level)
{
    return (size_t)level < LEVEL_COUNT ? level_names[level] : "unknown";
}

wpk_err wpk_log_level_parse(const char *text, enum wpk_log_level *level)
{
    WPK_ASSERT(text != NULL);
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level = (enum wpk_log_level)i;
            return WPK_OK;
        }
    }
    return WPK_EINVAL;
}

bool wpk_log_enabled(enum wpk_log_level level)
{
    return level >= log_target.level;
}

/* Append with control characters as \xNN: a line stays one line, a terminal stays sane. */
static void append_escaped(struct wpk_buf *line, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7f) {
            wpk_buf_printf(line, "\\x%02x", c);
        } else {
            wpk_buf_append_byte(line, *p);
        }
    }
}

/* One write per line, so that lines of several threads and processes do not mix. What cannot be
 * written is lost: there is nowhere to say so. */
static void write_line(struct wpk_buf *line)
{
    static const char ellipsis[] = "...";

    if (line->err != WPK_OK) {
        line->err = WPK_OK;
    }
    if (line->size > WPK_LOG_LINE_MAX - 1) {
        wpk_buf_truncate(line, WPK_LOG_LINE_MAX - sizeof(ellipsis));
        wpk_buf_append_text(line, ellipsis);
    }
    wpk_buf_append_byte(line, '\n');
    for (size_t done = 0; done < line->size;) {
        ssize_t written = write(log_target.fd, line->data + done, line->size - done);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            break;
        }
        done += (size_t)written;
    }
}

void wpk_log(enum wpk_log_level level, const char *event, const char *format, ...)
{
    struct wpk_buf line = {0};
    struct wpk_buf fields = {0};
    char when[WPK_CLOCK_TEXT_SIZE];
    va_list args;

    WPK_ASSERT(event != NULL);
    if (!wpk_log_enabled(level)) {
        return;
    }
    wpk_clock_format(wpk_clock_wall_ns(wpk_clock_system()), when);
    wpk_buf_printf(&line, "%s %s %s%s%s", when, wpk_log_level_name(level), log_target.program,
                   log_target.program[0] != '\0' ? " " : "", event);
    va_start(args, format);
    wpk_buf_vprintf(&fields, format, args);
    va_end(args);
    if (fields.size > 0) {
        wpk_buf_append_byte(&line, ' ');
        append_escaped(&line, wpk_buf_text(&fields));
    }
    write_line(&line);
    wpk_buf_fini(&fields);
    wpk_buf_fini(&line);
}

void wpk_log_failure(enum wpk_log_level level, const char *event, wpk_err err,
                     const struct wpk_diag *diag)
{
    char detail[WPK_LOG_LINE_MAX] = "";

    if (diag != NULL && diag->text[0] != '\0') {
        wpk_diag_format(diag, detail, sizeof(detail));
    }
    wpk_log(level, event, "error=%s reason=\"%s\"", wpk_err_name(err),
            detail[0] != '\0' ? detail : wpk_err_text(err));
}
