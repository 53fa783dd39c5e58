/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/orders.h"

#include "common/cuda_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESULT_LARGEST 999

static bool read_what(const char *text, struct wpk_order *out)
{
    char *end = NULL;
    static const struct {
        const char *name;
        enum wpk_order_kind kind;
    } words[] = {{"hang", WPK_ORDER_HANG}, {"lost", WPK_ORDER_LOST}, {"gone", WPK_ORDER_GONE}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i].name) == 0) {
            out->kind = words[i].kind;
            return true;
        }
    }
    long result = strtol(text, &end, 10);
    out->kind = WPK_ORDER_RESULT;
    out->result = (int)result;
    return end != text && *end == '\0' && result > 0 && result <= RESULT_LARGEST;
}

/* One order, which ends at the text's end. */
static bool read_order(const char *text, struct wpk_order *out)
{
    const char *colon = strchr(text, ':');
    char *end = NULL;
    *out = (struct wpk_order){0};
    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof(out->call)) {
        return false;
    }
    memcpy(out->call, text, (size_t)(colon - text));
    out->number = strtol(colon + 1, &end, 10);
    return out->number > 0 && *end == '=' && read_what(end + 1, out);
}

wpk_err wpk_orders_parse(const char *text, const char *path, struct wpk_orders *out)
{
    struct wpk_orders orders = {0};
    char one[WPK_ORDERS_CALL_MAX + 64];
    if (text == NULL) {
        *out = orders;
        return WPK_OK;
    }
    if (path != NULL && strlen(path) >= sizeof(orders.path)) {
        return WPK_ENOSPC;
    }
    snprintf(orders.path, sizeof(orders.path), "%s", path != NULL ? path : "");
    for (const char *at = text; *at != '\0';) {
        size_t size = strcspn(at, ";");
        if (orders.count == WPK_ORDERS_MAX) {
            return WPK_ENOSPC;
        }
        if (size >= sizeof(one)) {
            return WPK_EPARSE;
        }
        memcpy(one, at, size);
        one[size] = '\0';
        if (!read_order(one, &orders.order[orders.count++])) {
            return WPK_EPARSE;
        }
        at += size + (at[size] == ';');
    }
    *out = orders;
    return WPK_OK;
}

static int open_count(const struct wpk_orders *orders, int i, int flags)
{
    char path[WPK_ORDERS_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s.%d", orders->path, i);
    return open(path, flags | O_CLOEXEC, 0600);
}

/* The number of this call. A byte is appended to the file. An append leaves the descriptor at the
 * end of what it wrote, so processes that call at once get different numbers. */
static long count_call(struct wpk_orders *orders, int i)
{
    if (orders->path[0] == '\0') {
        return ++orders->order[i].calls;
    }
    int file = open_count(orders, i, O_WRONLY | O_APPEND | O_CREAT);
    long number = file >= 0 && write(file, ".", 1) == 1 ? (long)lseek(file, 0, SEEK_CUR) : 0;
    if (file >= 0) {
        close(file);
    }
    return number;
}

static int carry_out(struct wpk_orders *orders, const struct wpk_order *order)
{
    switch (order->kind) {
    case WPK_ORDER_HANG:
        for (;;) {
            pause();
        }
    case WPK_ORDER_LOST:
    case WPK_ORDER_GONE:
        orders->lost = true;
        return WPK_CUDA_UNKNOWN;
    case WPK_ORDER_RESULT:
        break;
    }
    return order->result;
}

int wpk_orders_call(struct wpk_orders *orders, const char *call)
{
    if (orders->lost) {
        return WPK_CUDA_UNKNOWN;
    }
    for (int i = 0; i < orders->count; i++) {
        const struct wpk_order *order = &orders->order[i];
        if (strcmp(order->call, call) == 0 && count_call(orders, i) == order->number) {
            return carry_out(orders, order);
        }
    }
    return 0;
}

bool wpk_orders_is_gone(const struct wpk_orders *orders)
{
    struct stat found = {0};
    for (int i = 0; i < orders->count && orders->path[0] != '\0'; i++) {
        int file = orders->order[i].kind == WPK_ORDER_GONE ? open_count(orders, i, O_RDONLY) : -1;
        bool gone =
            file >= 0 && fstat(file, &found) == 0 && found.st_size >= orders->order[i].number;
        if (file >= 0) {
            close(file);
        }
        if (gone) {
            return true;
        }
    }
    return false;
}
