/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/db/db_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_key(struct wpk_buf *text, const char *key)
{
    for (const char *at = key; *at != '\0'; at++) {
        wpk_buf_append_byte(text, *at == '_' ? ' ' : *at);
    }
}

void wpk_db_say(struct wpk_db_report *report, const char *key, int64_t number)
{
    wpk_json_put_int(report->json, key, number);
    put_key(&report->text, key);
    wpk_buf_printf(&report->text, ": %" PRId64 "\n", number);
}

void wpk_db_say_text(struct wpk_db_report *report, const char *key, const char *text)
{
    wpk_json_put_text(report->json, key, text);
    put_key(&report->text, key);
    wpk_buf_printf(&report->text, ": %s\n", text);
}

void wpk_db_found(struct wpk_db_report *report, const char *format, ...)
{
    va_list args;
    if (++report->found_count > WPK_DB_FOUND_MAX) {
        return;
    }
    va_start(args, format);
    wpk_buf_vprintf(&report->found, format, args);
    va_end(args);
    wpk_buf_append_byte(&report->found, '\n');
}
