/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a module of PTX and runs what it accepts for a while: whatever a kernel does, it stays in
 * its registers and in memory that it has. */
#include "tests/fuzz/fuzz.h"
#include "tests/gpu/launch.h"

#include <stdlib.h>
#include <string.h>

static void run(const struct wpk_ptx *ptx, const struct wpk_ptx_entry *entry,
                struct wpk_device_memory *memory, uint64_t address)
{
    struct wpk_launch_counts counts = {0};
    struct wpk_kernel_fault_report report = {0};
    uint64_t *parameters = calloc(1, (size_t)entry->parameter_size + sizeof(*parameters));
    WPK_ASSERT(parameters != NULL);
    for (uint32_t i = 0; i < entry->parameter_size / sizeof(*parameters); i++) {
        parameters[i] = address;
    }
    const struct wpk_launch launch = {.ptx = ptx,
                                      .entry = entry,
                                      .grid = {2, 1, 1},
                                      .block = {40, 1, 1},
                                      .parameters = parameters,
                                      .memory = memory,
                                      .steps_max = 300};
    if (entry->shared_size <= WPK_LAUNCH_SHARED_MAX && entry->local_size <= 4096) {
        wpk_err err = wpk_launch_run(&launch, &counts, &report);
        WPK_ASSERT(err == WPK_OK || err == WPK_EINVAL);
    }
    free(parameters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_ptx ptx = {0};
    struct wpk_diag diag = {0};
    struct wpk_device_memory memory;
    uint64_t address = 0;
    char *text = malloc(size + 1);

    WPK_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    wpk_err err = wpk_ptx_parse(text, &ptx, &diag);
    free(text);
    if (err != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    WPK_ASSERT(wpk_device_memory_init(&memory, 1 << 20) == WPK_OK);
    WPK_ASSERT(wpk_device_memory_new(&memory, 4096, &address) == WPK_OK);
    wpk_device_memory_store(&memory, address, 4096);
    for (int i = 0; i < ptx.entry_count; i++) {
        run(&ptx, &ptx.entry[i], &memory, address);
    }
    wpk_device_memory_fini(&memory);
    wpk_ptx_fini(&ptx);
    return 0;
}
