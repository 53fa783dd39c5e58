/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/block.h"

#include <string.h>

static const char *const fault_texts[] = {
#define TEXT(name, text) text,
    WPK_KERNEL_FAULT_LIST(TEXT)};

const char *wpk_kernel_fault_text(enum wpk_kernel_fault fault)
{
    return (unsigned)fault < WPK_KERNEL_FAULT_COUNT ? fault_texts[fault] : "an unknown fault";
}

void wpk_block_fault(struct wpk_warp *warp, const struct wpk_ptx_instruction *in,
                     enum wpk_kernel_fault fault, int lane, uint64_t address)
{
    struct wpk_block *block = warp->block;
    if (block->report.fault == WPK_KERNEL_FAULT_NONE) {
        block->report = (struct wpk_kernel_fault_report){
            .fault = fault,
            .line = in->line,
            .thread = lane < 0 ? -1 : warp->number * WPK_WARP_LANES + lane,
            .address = address};
        memcpy(block->report.block, block->index, sizeof(block->index));
    }
}
