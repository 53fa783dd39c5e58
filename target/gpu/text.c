/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC has no headers here: it knows the functions of CUDA's mathematics by their names, and the
 * texts of functions are those of the back end c, which call gcc's. */
#include "target/gpu/kernel.h"

#include "target/gpu/point.h"

#define BUILTIN(name)                                                                              \
    "#define __builtin_" #name "f " #name "f\n#define __builtin_" #name " " #name "\n"

/* Moves of four f32, and asynchronous ones of 4 and 16 bytes, which store zeros for what is not
 * inside. Those of 16 bytes leave the first cache out. */
static void put_moves(const struct wpk_c_kernel *k, struct wpk_buf *out)
{
    if (k->launch->any_moves) {
        wpk_buf_append_text(out,
                            "INLINE void wpk_move16(f32 *to, const f32 *from)"
                            " { *(float4 *)to = *(const float4 *)from; }\n"
                            "INLINE void wpk_move16_inside(f32 *to, const f32 *from, bool inside)\n"
                            "{\n"
                            "  float4 v = {0, 0, 0, 0};\n"
                            "  if (inside) {\n"
                            "    v = *(const float4 *)from;\n"
                            "  }\n"
                            "  *(float4 *)to = v;\n"
                            "}\n");
    }
    for (int bytes = 4; bytes <= 16 && k->launch->any_ahead; bytes *= 4) {
        const char *caches = bytes == 16 ? "cg" : "ca";
        wpk_buf_printf(out,
                       "INLINE void wpk_ahead%d(f32 *to, const f32 *from)\n"
                       "{\n"
                       "  asm volatile(\"cp.async.%s.shared.global [%%0], [%%1], %d;\" ::"
                       " \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(from) : \"memory\");\n"
                       "}\n"
                       "INLINE void wpk_ahead%d_inside(f32 *to, const f32 *from, bool inside)\n"
                       "{\n"
                       "  asm volatile(\"cp.async.%s.shared.global [%%0], [%%1], %d, %%2;\" ::"
                       " \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(from),"
                       " \"r\"(inside ? %d : 0) : \"memory\");\n"
                       "}\n",
                       bytes, caches, bytes, bytes, caches, bytes, bytes);
    }
}

void wpk_cuda_put_prologue(const struct wpk_c_kernel *k, struct wpk_buf *out)
{
    wpk_buf_append_text(out, "#define INLINE static __device__ __forceinline__\n"
                             "#define restrict __restrict__\n");
    wpk_buf_append_text(
        out, "#define __builtin_inff() __int_as_float(0x7f800000)\n"
             "#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)\n" BUILTIN(fabs)
                 BUILTIN(sqrt) BUILTIN(floor) BUILTIN(ceil) BUILTIN(rint) BUILTIN(trunc)
                     BUILTIN(exp) BUILTIN(log) BUILTIN(sin) BUILTIN(cos) BUILTIN(pow));
    wpk_buf_append_text(out, "typedef unsigned long u64;\n");
    for (int type = 0; type < WPK_C_TYPE_COUNT; type++) {
        wpk_buf_printf(out, "typedef %s %s;\n", wpk_c_type_text((enum wpk_c_type)type),
                       wpk_c_type_name((enum wpk_c_type)type));
    }
    wpk_buf_append_text(
        out, "INLINE i32 wpk_quotient(i32 a, i32 b) { return a / b - (a % b < 0); }\n"
             "INLINE i32 wpk_remainder(i32 a, i32 b) { return a - b * wpk_quotient(a, b); }\n"
             "INLINE i32 wpk_limit(i32 a, i32 low, i32 high)"
             " { return a < low ? low : a > high ? high : a; }\n"
             "INLINE i32 wpk_least(i32 a, i32 b) { return a < b ? a : b; }\n");
    put_moves(k, out);
    wpk_c_put_functions(&k->text, out);
}

bool wpk_cuda_is_placed(const struct wpk_nest_entry *entry, const struct wpk_cuda_definition *d,
                        int i)
{
    return !entry->inlined && entry->place.entry == d->entry && entry->place.update == d->update &&
           entry->place.loop == i - d->added && i >= d->added;
}

void wpk_cuda_count_parallel(struct wpk_cuda_definition *d, const int64_t *size, int64_t *blocks)
{
    d->threads = d->width;
    *blocks = 1;
    for (int i = d->count - 1; i >= 0; i--) {
        const struct wpk_nest_loop *loop = &d->loop[i];
        int64_t covered = size[loop->axis];
        for (int j = 0; j < i; j++) {
            bool cuts = d->loop[j].axis == loop->axis && d->loop[j].step < covered;
            covered = cuts ? d->loop[j].step : covered;
        }
        d->most[i] = (covered + loop->step - 1) / loop->step;
        if (wpk_bind_is_block(loop->binding)) {
            d->inside[i] = *blocks;
            *blocks *= d->most[i];
        } else if (wpk_bind_is_thread(loop->binding)) {
            d->inside[i] = d->threads;
            d->threads *= d->most[i];
        }
    }
}

bool wpk_cuda_has_thread_loop(const struct wpk_cuda_definition *d, enum wpk_loop_binding first,
                              enum wpk_loop_binding last)
{
    bool has = false;
    for (int i = 0; i < d->count; i++) {
        has = has || (d->loop[i].binding >= first && d->loop[i].binding <= last);
    }
    return has;
}

void wpk_cuda_begin_definition(struct wpk_c_kernel *k, int e, bool update,
                               struct wpk_cuda_definition *d)
{
    const struct wpk_stage *stage = &k->program->stages[k->nest->entry[e].stage];
    *d = (struct wpk_cuda_definition){.entry = e, .update = update, .stage = stage};
    d->count = wpk_c_list_loops(k, e, update, d->loop, &d->added);
    for (int i = 0; i < d->count; i++) {
        for (int p = e + 1; p < k->nest->entry_count; p++) {
            d->hosts[i] = d->hosts[i] || wpk_cuda_is_placed(&k->nest->entry[p], d, i);
        }
    }
    const struct wpk_nest_entry *entry = &k->nest->entry[e];
    for (int i = 0; i < entry->update.count; i++) {
        enum wpk_loop_binding binding = wpk_nest_at(k->nest, &entry->update, i)->binding;
        d->shares =
            d->shares || (wpk_nest_is_shared_out(k->nest, entry, i) && wpk_bind_is_thread(binding));
    }
    d->own = wpk_cuda_is_private(k, d->stage->output);
    d->width = wpk_cuda_has_thread_loop(d, WPK_BIND_THREAD_Z, WPK_BIND_THREAD_Y) &&
                       !wpk_cuda_has_thread_loop(d, WPK_BIND_THREAD_X, WPK_BIND_THREAD_X)
                   ? wpk_nest_width(k->nest, entry)
                   : 1;
}

bool wpk_cuda_has_parts(const struct wpk_cuda_definition *d)
{
    return d->update && d->count > d->added && wpk_bind_is_block(d->loop[d->added].binding) &&
           d->loop[d->added].axis >= d->stage->rank;
}
