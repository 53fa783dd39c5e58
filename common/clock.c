/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);

    WPK_ASSERT(rc == 0);
    return (uint64_t)now.tv_sec * WPK_NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t system_now_ns(const struct wpk_clock *clock WPK_UNUSED)
{
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t system_wall_ns(const struct wpk_clock *clock WPK_UNUSED)
{
    return read_clock(CLOCK_REALTIME);
}

const struct wpk_clock *wpk_clock_system(void)
{
    static const struct wpk_clock system = {.now_ns = system_now_ns, .wall_ns = system_wall_ns};

    return &system;
}

uint64_t wpk_clock_ns(void)
{
    return wpk_clock_now_ns(wpk_clock_system());
}

uint64_t wpk_clock_now_ns(const struct wpk_clock *clock)
{
    return clock->now_ns(clock);
}

uint64_t wpk_clock_wall_ns(const struct wpk_clock *clock)
{
    return clock->wall_ns(clock);
}

void wpk_clock_format(uint64_t wall_ns, char out[WPK_CLOCK_TEXT_SIZE])
{
    time_t seconds = (time_t)(wall_ns / WPK_NS_PER_S);
    unsigned ms = (unsigned)(wall_ns % WPK_NS_PER_S / WPK_NS_PER_MS);
    struct tm tm;

    /* 2^64 ns end in the year 2554, so four digits hold every year. */
    gmtime_r(&seconds, &tm);
    snprintf(out, WPK_CLOCK_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
}

/* Read exactly `count` digits with a value in [min, max] and step over them. */
static bool read_digits(const char **text, int count, int min, int max, int *value)
{
    int sum = 0;

    for (int i = 0; i < count; i++) {
        char c = (*text)[i];
        if (c < '0' || c > '9') {
            return false;
        }
        sum = sum * 10 + (c - '0');
    }
    *text += count;
    *value = sum;
    return sum >= min && sum <= max;
}

static bool read_char(const char **text, const char *accepted)
{
    if (**text == '\0' || strchr(accepted, **text) == NULL) {
        return false;
    }
    ++*text;
    return true;
}

/* ".125" as nanoseconds; nothing there is 0. */
static bool read_fraction(const char **text, uint64_t *ns)
{
    uint64_t unit = WPK_NS_PER_S;

    *ns = 0;
    if (**text != '.') {
        return true;
    }
    ++*text;
    const char *first = *text;
    while (**text >= '0' && **text <= '9') {
        unit /= 10;
        *ns += (uint64_t)(**text - '0') * unit;
        ++*text;
    }
    return *text > first && *text - first <= 9;
}

/* "Z", "+02:00" or "-05:30" as seconds east of Greenwich. */
static bool read_offset(const char **text, int64_t *seconds)
{
    int sign = **text == '-' ? -1 : 1;
    int hours;
    int minutes;

    *seconds = 0;
    if (read_char(text, "Zz")) {
        return true;
    }
    if (!read_char(text, "+-") || !read_digits(text, 2, 0, 23, &hours) || !read_char(text, ":") ||
        !read_digits(text, 2, 0, 59, &minutes)) {
        return false;
    }
    *seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

/* timegm would turn 31 February into March. */
static int days_in_month(int year, int month)
{
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

wpk_err wpk_clock_parse(const char *text, uint64_t *wall_ns)
{
    /* The last year whose every nanosecond fits 64 bits is 2553. */
    const int year_max = 2553;
    struct tm tm = {0};
    uint64_t ns;
    int64_t offset;

    if (!read_digits(&text, 4, 1970, year_max, &tm.tm_year) || !read_char(&text, "-") ||
        !read_digits(&text, 2, 1, 12, &tm.tm_mon) || !read_char(&text, "-") ||
        !read_digits(&text, 2, 1, 31, &tm.tm_mday) || !read_char(&text, "Tt ") ||
        !read_digits(&text, 2, 0, 23, &tm.tm_hour) || !read_char(&text, ":") ||
        !read_digits(&text, 2, 0, 59, &tm.tm_min) || !read_char(&text, ":") ||
        !read_digits(&text, 2, 0, 60, &tm.tm_sec) || !read_fraction(&text, &ns) ||
        !read_offset(&text, &offset) || *text != '\0') {
        return WPK_EPARSE;
    }
    if (tm.tm_mday > days_in_month(tm.tm_year, tm.tm_mon)) {
        return WPK_EPARSE;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t seconds = (int64_t)timegm(&tm) - offset;
    if (seconds < 0) {
        return WPK_EPARSE;
    }
    *wall_ns = (uint64_t)seconds * WPK_NS_PER_S + ns;
    return WPK_OK;
}
