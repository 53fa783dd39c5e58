/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/format.h"
#include "common/json.h"
#include "common/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {WPK_LOG_LEVEL_LIST(WPK_LIST_TEXT)};
static const char *const format_names[] = {WPK_LOG_FORMAT_LIST(WPK_LIST_TEXT)};

/* Program and descriptor are written by main before threads start. */
static struct {
    const char *program;
    int fd;
    _Atomic int level;
    _Atomic int format;
} target = {.program = "", .fd = STDERR_FILENO, .level = WPK_LOG_INFO};

/* Warnings and errors of late, by event; one that has no place here (EVENTS_MAX others were all
 * written in the same seconds) is written. */
#define EVENTS_MAX 64
#define EVENT_SIZE 40

struct repeats {
    char event[EVENT_SIZE];
    uint64_t since_ns; /* start of its WPK_LOG_REPEATS_S seconds */
    uint64_t count;    /* in them, with those not written */
};

static pthread_mutex_t repeats_lock = PTHREAD_MUTEX_INITIALIZER; /* over `repeats` */
static struct repeats repeats[EVENTS_MAX];

void wpk_log_init(const char *program, enum wpk_log_level level, int fd)
{
    WPK_ASSERT(program != NULL);
    target.program = program;
    target.fd = fd;
    wpk_log_set_level(level);
    wpk_log_set_format(WPK_LOG_FORMAT_TEXT);
    pthread_mutex_lock(&repeats_lock);
    memset(repeats, 0, sizeof(repeats));
    pthread_mutex_unlock(&repeats_lock);
}

void wpk_log_set_level(enum wpk_log_level level)
{
    WPK_ASSERT((size_t)level < sizeof(level_names) / sizeof(level_names[0]));
    atomic_store_explicit(&target.level, (int)level, memory_order_relaxed);
}

void wpk_log_set_format(enum wpk_log_format format)
{
    WPK_ASSERT((size_t)format < sizeof(format_names) / sizeof(format_names[0]));
    atomic_store_explicit(&target.format, (int)format, memory_order_relaxed);
}

enum wpk_log_level wpk_log_get_level(void)
{
    return (enum wpk_log_level)atomic_load_explicit(&target.level, memory_order_relaxed);
}

enum wpk_log_format wpk_log_get_format(void)
{
    return (enum wpk_log_format)atomic_load_explicit(&target.format, memory_order_relaxed);
}

WPK_LIST_NAME(wpk_log_level_name, enum wpk_log_level, level_names)
WPK_LIST_NAME(wpk_log_format_name, enum wpk_log_format, format_names)
WPK_LIST_PARSE(wpk_log_level_parse, enum wpk_log_level, level_names)
WPK_LIST_PARSE(wpk_log_format_parse, enum wpk_log_format, format_names)

bool wpk_log_enabled(enum wpk_log_level level)
{
    return (int)level >= atomic_load_explicit(&target.level, memory_order_relaxed);
}

/* ---- repeats */

/* The event's entry, or the oldest one for it; NULL when even that is too young to be forgotten. */
static struct repeats *find_repeats(const char *event, uint64_t now_ns)
{
    struct repeats *oldest = &repeats[0];
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        if (strncmp(repeats[i].event, event, EVENT_SIZE - 1) == 0) {
            return &repeats[i];
        }
        oldest = repeats[i].since_ns < oldest->since_ns ? &repeats[i] : oldest;
    }
    if (oldest->count > 0 && now_ns - oldest->since_ns < WPK_LOG_REPEATS_S * WPK_NS_PER_S) {
        return NULL;
    }
    *oldest = (struct repeats){.since_ns = now_ns};
    memcpy(oldest->event, event, strnlen(event, EVENT_SIZE - 1));
    return oldest;
}

/* True if this line is written; *suppressed is how many before it were not. */
static bool admit(enum wpk_log_level level, const char *event, uint64_t *suppressed)
{
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
    bool written = true;
    *suppressed = 0;
    if (level < WPK_LOG_WARN) {
        return true;
    }
    pthread_mutex_lock(&repeats_lock);
    struct repeats *entry = find_repeats(event, now_ns);
    if (entry != NULL) {
        if (now_ns - entry->since_ns >= WPK_LOG_REPEATS_S * WPK_NS_PER_S) {
            *suppressed =
                entry->count > WPK_LOG_REPEATS_MAX ? entry->count - WPK_LOG_REPEATS_MAX : 0;
            entry->since_ns = now_ns;
            entry->count = 0;
        }
        entry->count++;
        written = entry->count <= WPK_LOG_REPEATS_MAX;
    }
    pthread_mutex_unlock(&repeats_lock);
    if (!written) {
        wpk_metric_add(WPK_COUNTER_LOG_SUPPRESSED, 0, 1);
    }
    return written;
}

/* ---- lines */

/* Append with control characters, and what is no text, as \xNN: a line stays one line, a terminal
 * stays sane, and the journal shows it. */
static void append_escaped(struct wpk_buf *line, const char *text)
{
    for (const char *p = text; *p != '\0';) {
        unsigned char c = (unsigned char)*p;
        size_t length = wpk_utf8_length(p, strnlen(p, 4));
        if (wpk_utf8_is_control(p) || length == 0) {
            wpk_buf_printf(line, "\\x%02x", c);
            length = 1;
        } else {
            wpk_buf_append(line, p, length);
        }
        p += length;
    }
}

/* Cut to `size` bytes, "..." at the end, and not within a character. */
static void cut(struct wpk_buf *text, size_t size)
{
    static const char ellipsis[] = "...";
    if (text->size <= size) {
        return;
    }
    size_t kept = size - (sizeof(ellipsis) - 1);
    while (kept > 0 && ((unsigned char)text->data[kept] & 0xc0) == 0x80) {
        kept--;
    }
    wpk_buf_truncate(text, kept);
    wpk_buf_append_text(text, ellipsis);
}

static void print_text(struct wpk_buf *line, enum wpk_log_level level, const char *event,
                       const struct wpk_buf *fields)
{
    char when[WPK_CLOCK_TEXT_SIZE];
    wpk_clock_format(wpk_clock_wall_ns(wpk_clock_system()), when);
    wpk_buf_printf(line, "%s %s %s%s%s", when, wpk_log_level_name(level), target.program,
                   target.program[0] != '\0' ? " " : "", event);
    if (fields->size > 0) {
        wpk_buf_append_byte(line, ' ');
        append_escaped(line, wpk_buf_text(fields));
    }
    cut(line, WPK_LOG_LINE_MAX - 1);
}

static void print_journal(struct wpk_buf *line, enum wpk_log_level level, const char *event,
                          const struct wpk_buf *fields)
{
    static const int priorities[] = {7, 6, 4, 3}; /* of syslog */
    wpk_buf_printf(line, "<%d>%s", priorities[level], event);
    if (fields->size > 0) {
        wpk_buf_append_byte(line, ' ');
        append_escaped(line, wpk_buf_text(fields));
    }
    cut(line, WPK_LOG_LINE_MAX - 1);
}

/* True if a quoted value ends here: a quote, and then another field or the end. A caller does not
 * escape quotes inside a value. */
static bool ends_value(const char *text)
{
    if (text[0] != '"') {
        return false;
    }
    if (text[1] == '\0') {
        return true;
    }
    size_t name = strspn(text + 2, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return text[1] == ' ' && name > 0 && text[2 + name] == '=';
}

/* `fields` is "name=value name=\"value with blanks\"": a member each. Other content becomes
 * "text". */
static void put_fields(struct wpk_json_writer *writer, char *fields)
{
    while (*fields != '\0') {
        size_t name = strspn(fields, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (name == 0 || fields[name] != '=') {
            wpk_json_put_text(writer, "text", fields);
            return;
        }
        char *value = fields + name + 1;
        fields[name] = '\0';
        char *end = value;
        if (*value == '"') {
            value++;
            for (end = value; *end != '\0' && !ends_value(end); end++) {
            }
        } else {
            end += strcspn(value, " ");
        }
        char *next = *end == '"' ? end + 1 : end;
        next += *next == ' ';
        *end = '\0';
        wpk_json_put_text(writer, fields, value);
        fields = next;
    }
}

static void print_json(struct wpk_buf *line, enum wpk_log_level level, const char *event,
                       struct wpk_buf *fields)
{
    char when[WPK_CLOCK_TEXT_SIZE];
    struct wpk_json_writer *writer = wpk_json_writer_new_object();
    cut(fields, WPK_LOG_LINE_MAX - 512); /* room for the rest; escapes may double what is inside */
    wpk_clock_format(wpk_clock_wall_ns(wpk_clock_system()), when);
    wpk_json_put_text(writer, "time", when);
    wpk_json_put_text(writer, "level", wpk_log_level_name(level));
    wpk_json_put_text(writer, "program", target.program);
    wpk_json_put_text(writer, "event", event);
    if (fields->size > 0) {
        put_fields(writer, fields->data);
    }
    if (wpk_json_print(writer, false, line) != WPK_OK) {
        wpk_buf_reset(line);
    }
    wpk_json_writer_free(writer);
}

/* One write per line, so that lines of several threads and processes do not mix. A line that cannot
 * be written is lost: there is no place to report it. */
static void write_line(struct wpk_buf *line)
{
    wpk_buf_append_byte(line, '\n');
    for (size_t done = 0; done < line->size;) {
        ssize_t written = write(target.fd, line->data + done, line->size - done);
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
    uint64_t suppressed = 0;
    va_list args;

    if (!wpk_log_enabled(level) || !admit(level, event, &suppressed)) {
        return;
    }
    va_start(args, format);
    wpk_buf_vprintf(&fields, format, args);
    va_end(args);
    if (suppressed > 0) {
        wpk_buf_printf(&fields, "%ssuppressed=%" PRIu64, fields.size > 0 ? " " : "", suppressed);
    }
    switch (atomic_load_explicit(&target.format, memory_order_relaxed)) {
    case WPK_LOG_FORMAT_JSON:
        print_json(&line, level, event, &fields);
        break;
    case WPK_LOG_FORMAT_JOURNAL:
        print_journal(&line, level, event, &fields);
        break;
    default:
        print_text(&line, level, event, &fields);
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
