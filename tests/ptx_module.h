/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a module of PTX with memory that it may access. */
#ifndef WPK_TESTS_PTX_MODULE_H
#define WPK_TESTS_PTX_MODULE_H

#include "common/buf.h"
#include "tests/gpu/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define TAIL "\nret;\n}\n"
#define REGISTERS ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n"

struct ptx_module {
    struct wpk_ptx ptx;
    struct wpk_device_memory memory;
};

/* The module is `head`, `body` and `tail`, one after another; the test fails if it is refused. */
void set_up(struct ptx_module *s, const char *head, const char *body, const char *tail);
void tear_down(struct ptx_module *s);

/* Memory of the device. */
void *allocate(struct ptx_module *s, size_t size);

/* Run a grid of blocks x rows blocks of `threads`. `counts` may be NULL. */
struct wpk_kernel_fault_report launch(struct ptx_module *s, const char *entry,
                                      uint32_t blocks, uint32_t rows, uint32_t threads,
                                      const void *parameters, struct wpk_launch_counts *counts);

/* %r1 is the thread's number, %d2 its word of y. */
#define THREADS_HEAD                                                                               \
    HEAD ".entry k(.param .u64 y)\n{\n" REGISTERS                                                  \
         "ld.param.u64 %d1, [y];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\n"               \
         "add.s64 %d2, %d2, %d1;\n"

#endif
