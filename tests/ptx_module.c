/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ptx_module.h"

void set_up(struct ptx_module *s, const char *head, const char *body, const char *tail)
{
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    *s = (struct ptx_module){0};
    wpk_buf_append_text(&text, head);
    wpk_buf_append_text(&text, body);
    wpk_buf_append_text(&text, tail);
    if (wpk_ptx_parse(wpk_buf_text(&text), &s->ptx, &diag) != WPK_OK) {
        fail_msg("%d: %s\n%s", diag.line, diag.text, body);
    }
    wpk_buf_fini(&text);
    assert_int_equal(wpk_device_memory_init(&s->memory, (uint64_t)1 << 30), WPK_OK);
}

void tear_down(struct ptx_module *s)
{
    wpk_device_memory_fini(&s->memory);
    wpk_ptx_fini(&s->ptx);
}

void *allocate(struct ptx_module *s, size_t size)
{
    uint64_t address = 0;
    assert_int_equal(wpk_device_memory_new(&s->memory, size, &address), WPK_OK);
    wpk_device_memory_store(&s->memory, address, size);
    return (void *)(uintptr_t)address; // NOLINT: a device address is a host's
}

struct wpk_kernel_fault_report launch(struct ptx_module *s, const char *entry, uint32_t blocks,
                                      uint32_t rows, uint32_t threads, const void *parameters,
                                      struct wpk_launch_counts *counts)
{
    struct wpk_launch_counts unread = {0};
    struct wpk_kernel_fault_report report = {0};
    const struct wpk_launch one = {.ptx = &s->ptx,
                                   .entry = wpk_ptx_find(&s->ptx, entry),
                                   .grid = {blocks, rows, 1},
                                   .block = {threads, 1, 1},
                                   .parameters = parameters,
                                   .memory = &s->memory,
                                   .steps_max = 1 << 20};
    assert_non_null(one.entry);
    assert_int_equal(wpk_launch_run(&one, counts == NULL ? &unread : counts, &report), WPK_OK);
    return report;
}
