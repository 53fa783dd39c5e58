/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/gate_file.h"

#include "common/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FILE_SIZE_MAX ((size_t)4 << 20)
#define ENTRIES_SIZE (BENCH_GATE_ENTRIES_MAX * sizeof(struct bench_gate_entry))

wpk_err bench_gate_file_init(struct bench_gate_file *file, const char *path, const char *head)
{
    void *entries =
        mmap(NULL, ENTRIES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (entries == MAP_FAILED) {
        return WPK_ENOMEM;
    }
    *file = (struct bench_gate_file){.path = path, .head = head, .entries = entries};
    return WPK_OK;
}

void bench_gate_file_fini(struct bench_gate_file *file)
{
    bench_gate_file_select(file, NULL, 0);
    if (file->entries != NULL) {
        munmap(file->entries, ENTRIES_SIZE);
    }
    *file = (struct bench_gate_file){0};
}

wpk_err bench_gate_file_add(struct bench_gate_file *file, const struct bench_gate_entry *entry,
                            const char *candidate, size_t size)
{
    if (file->count == BENCH_GATE_ENTRIES_MAX) {
        return WPK_ENOSPC;
    }
    char *copy = strndup(candidate, size);
    if (copy == NULL) {
        return WPK_ENOMEM;
    }
    struct bench_gate_entry *added = &file->entries[file->count++];
    *added = *entry;
    added->candidate = copy;
    added->line = file->count + 1;
    return WPK_OK;
}

void bench_gate_file_select(struct bench_gate_file *file, const char *only, int count)
{
    int kept = 0;
    for (int i = 0; i < file->count; i++) {
        const struct bench_gate_entry *entry = &file->entries[i];
        if (kept < count && (only == NULL || strcmp(entry->op, only) == 0)) {
            file->entries[kept++] = *entry;
        } else {
            free(entry->candidate);
        }
    }
    file->count = kept;
}

static wpk_err read_line(struct bench_gate_file *file, const char *text, size_t size)
{
    struct bench_gate_entry entry = {0};
    int used = 0;
    int fields =
        sscanf(text, "%63s %7s %d %64s %64s %64s %n", entry.op, entry.layouts, &entry.threads,
               entry.expected[BENCH_GATE_SCHEDULE], entry.expected[BENCH_GATE_OBJECT],
               entry.expected[BENCH_GATE_PREPARE], &used);
    if (fields != 6 || entry.threads < 1 || (size_t)used >= size) {
        return WPK_EPARSE;
    }
    return bench_gate_file_add(file, &entry, text + used, size - (size_t)used);
}

wpk_err bench_gate_file_read(struct bench_gate_file *file, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(file->path, FILE_SIZE_MAX, &text, diag);
    const char *at = wpk_buf_text(&text);
    size_t size = strcspn(at, "\n");
    if (err == WPK_OK && (size != strlen(file->head) || memcmp(at, file->head, size) != 0)) {
        wpk_diag_set_at(diag, 1, 0,
                        "made with \"%.*s\", and this program has \"%s\", so its objects are "
                        "others; make the file anew in the tree without the change",
                        (int)size, at, file->head);
        err = WPK_EMISMATCH;
    }
    for (at += size; err == WPK_OK && *at == '\n' && at[1] != '\0'; at += size) {
        at++;
        size = strcspn(at, "\n");
        err = read_line(file, at, size);
        if (err != WPK_OK) {
            wpk_diag_set_at(diag, file->count + 2, 0,
                            "not operator, layouts, threads, three hashes and candidate, or more "
                            "than %d lines",
                            BENCH_GATE_ENTRIES_MAX);
        }
    }
    if (err != WPK_OK && diag->line > 0) {
        snprintf(diag->file, sizeof(diag->file), "%s", file->path);
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err bench_gate_file_write(const struct bench_gate_file *file, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    bool whole = true;
    wpk_buf_printf(&text, "%s\n", file->head);
    for (int i = 0; i < file->count; i++) {
        const struct bench_gate_entry *entry = &file->entries[i];
        wpk_buf_printf(&text, "%s %s %d", entry->op, entry->layouts, entry->threads);
        for (int h = 0; h < BENCH_GATE_HASH_COUNT; h++) {
            wpk_buf_printf(&text, " %s", entry->made[h]);
            whole = whole && entry->made[h][0] != '\0';
        }
        wpk_buf_printf(&text, " %s\n", entry->candidate);
    }
    wpk_err err = wpk_buf_status(&text);
    if (err == WPK_OK && !whole) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED,
                       "%s stays as it was: not all candidates could be built", file->path);
    }
    if (err == WPK_OK) {
        err = wpk_fs_write(file->path, text.data, text.size, 0644, diag);
    }
    wpk_buf_fini(&text);
    return err;
}
