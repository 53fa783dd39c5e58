/* SPDX-License-Identifier: Apache-2.0 */
/* A tile whose terms are dealt out to several blocks. Each block leaves its results in memory and
 * takes a ticket of the tile. The last one to come adds the parts up in the order of their numbers,
 * whichever block it is, so that the bits are always the same, and goes on. Tickets count modulo
 * the number of parts: they are 0 again when the launch ends. */
#include "target/gpu/point.h"

#include <inttypes.h>

/* Number `cell` of the thread's results, in a block's part. */
static void put_place(struct wpk_c_kernel *k, const char *block, int64_t cell, int64_t threads)
{
    wpk_c_put(&k->text, "%s[%" PRId64 "]", block, cell * threads);
}

static void leave_part(struct wpk_c_kernel *k, int tensor, int64_t cells, int64_t threads)
{
    for (int64_t i = 0; i < cells; i++) {
        wpk_c_indent(&k->text);
        put_place(k, "mine", i, threads);
        wpk_c_put(&k->text, " = ");
        wpk_c_storage_put_cell(k, tensor, i);
        wpk_c_put(&k->text, ";\n");
    }
}

static void take_parts(struct wpk_c_kernel *k, const struct wpk_stage *stage, enum wpk_dtype dtype,
                       int64_t cells, int64_t threads)
{
    for (int64_t i = 0; i < cells; i++) {
        wpk_c_indent(&k->text);
        wpk_c_storage_put_cell(k, stage->output, i);
        wpk_c_put(&k->text, " = __ldcg(&");
        put_place(k, "from", i, threads);
        wpk_c_put(&k->text, ");\n");
    }
    wpk_c_line(&k->text, "for (i32 part = 1; part < %" PRId64 "; part++) {", k->launch->parts);
    wpk_c_line(&k->text, "from += %" PRId64 ";", k->launch->tiles * cells * threads);
    for (int64_t i = 0; i < cells; i++) {
        /* Other blocks wrote the parts: they are read past the first cache. */
        struct wpk_c_value before = wpk_c_begin(&k->text, dtype, 1);
        wpk_c_storage_put_cell(k, stage->output, i);
        wpk_c_end(&k->text);
        struct wpk_c_value part = wpk_c_begin(&k->text, dtype, 1);
        wpk_c_put(&k->text, "__ldcg(&");
        put_place(k, "from", i, threads);
        wpk_c_put(&k->text, ")");
        wpk_c_end(&k->text);
        part = wpk_c_binary(k, wpk_c_joining(stage->reduction), &before, &part);
        wpk_c_indent(&k->text);
        wpk_c_storage_put_cell(k, stage->output, i);
        wpk_c_put(&k->text, " = ");
        wpk_c_put_value(&k->text, &part, 1);
        wpk_c_end(&k->text);
    }
    wpk_c_line(&k->text, "}");
}

void wpk_cuda_join_parts(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d)
{
    struct wpk_cuda_launch *launch = k->launch;
    enum wpk_dtype dtype = k->storage[k->storage_of[d->stage->output]]->dtype;
    enum wpk_c_type type = wpk_c_memory_type(dtype);
    int64_t cells = wpk_c_storage_cells(k, d->stage->output), owners = wpk_cuda_owners(d);
    int64_t block = cells * owners;
    if (launch->parts * launch->tiles > INT32_MAX / block) {
        wpk_c_refuse(k, "parts over blocks have more elements than an index of 32 bits counts");
        return;
    }
    launch->part_bytes = launch->parts * launch->tiles * block * wpk_c_type_bytes(type);
    wpk_cuda_open_first(k, d);
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "%s *const mine = (%s *)parts + ((i32)blockIdx.x * %" PRId64 " + ",
              wpk_c_type_name(type), wpk_c_type_name(type), block);
    wpk_cuda_put_owner(k, d);
    wpk_c_put(&k->text, ");\n");
    leave_part(k, d->stage->output, cells, owners);
    wpk_c_line(&k->text, "}");
    /* The block's ticket, which all of its threads see: the last one goes on. */
    wpk_c_line(&k->text, "__threadfence();");
    wpk_c_line(&k->text, "__syncthreads();");
    wpk_c_line(&k->text, "if (threadIdx.x == 0)");
    wpk_c_line(&k->text,
               "    ticket[0] = atomicInc(&tickets[(i32)blockIdx.x %% %" PRId64 "], %" PRId64 "u);",
               k->launch->tiles, k->launch->parts - 1);
    wpk_c_line(&k->text, "__syncthreads();");
    wpk_c_line(&k->text, "if (ticket[0] != %" PRId64 "u)", k->launch->parts - 1);
    wpk_c_line(&k->text, "    return;");
    wpk_c_line(&k->text, "__threadfence();");
    wpk_c_line(&k->text, "{");
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text,
              "const %s *from = (const %s *)parts + ((i32)blockIdx.x %% %" PRId64 " * %" PRId64
              " + ",
              wpk_c_type_name(type), wpk_c_type_name(type), launch->tiles, block);
    wpk_cuda_put_owner(k, d);
    wpk_c_put(&k->text, ");\n");
    take_parts(k, d->stage, dtype, cells, owners);
    wpk_c_line(&k->text, "}");
    launch->pending = false;
}
