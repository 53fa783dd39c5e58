/* SPDX-License-Identifier: Apache-2.0 */
/* Probing the machine: the processor, sysfs and the scheduler.
 *
 * An instruction set counts only if the operating system saves its registers, for which the
 * compiler's __builtin_cpu_supports reads XGETBV. */
#include "schema/device.h"

#include "common/caches.h"
#include "common/json.h"
#include "schema/device_cuda.h"

#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((int64_t)1 << 50)
#define RATE_MAX 1e18 /* peaks: beyond any machine, and far inside a double */

static const char *const isa_names[] = {WPK_ISA_LIST(WPK_LIST_TEXT)};

/* Vectors that the generator may use under each name; registers are those of the architecture. */
static const struct {
    int vector_bytes;
    int vector_registers;
} isa_shape[] = {
    [WPK_ISA_SSE41] = {16, 16},
    [WPK_ISA_AVX] = {32, 16},
    [WPK_ISA_AVX2] = {32, 16},
    [WPK_ISA_AVX512] = {64, 32},
};

_Static_assert(sizeof(isa_names) / sizeof(isa_names[0]) == WPK_ISA_COUNT, "one name each");
_Static_assert(sizeof(isa_shape) / sizeof(isa_shape[0]) == WPK_ISA_COUNT, "one shape each");

const char *wpk_isa_name(enum wpk_isa isa)
{
    WPK_ASSERT((int)isa >= 0);
    WPK_ASSERT(isa < WPK_ISA_COUNT);
    return isa_names[isa];
}

wpk_err wpk_isa_parse(const char *text, enum wpk_isa *out)
{
    for (int i = 0; i < WPK_ISA_COUNT; i++) {
        if (strcmp(text, isa_names[i]) == 0) {
            *out = (enum wpk_isa)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

void wpk_device_claim(uint64_t flags, enum wpk_isa isa_max, struct wpk_device *device)
{
    static const uint64_t needed[WPK_ISA_COUNT] = {
        [WPK_ISA_AVX] = WPK_CPU_AVX,
        [WPK_ISA_AVX2] = WPK_CPU_AVX2 | WPK_CPU_FMA | WPK_CPU_F16C,
        [WPK_ISA_AVX512] = WPK_CPU_AVX512F | WPK_CPU_AVX512CD | WPK_CPU_AVX512BW |
                           WPK_CPU_AVX512DQ | WPK_CPU_AVX512VL,
    };
    const uint64_t zen4 = WPK_CPU_AVX512BF16 | WPK_CPU_AVX512VNNI | WPK_CPU_AVX512IFMA |
                          WPK_CPU_AVX512VBMI | WPK_CPU_AVX512VBMI2 | WPK_CPU_AVX512BITALG |
                          WPK_CPU_AVX512VPOPCNTDQ | WPK_CPU_SSE4A;
    enum wpk_isa isa = WPK_ISA_SSE41;

    for (int i = WPK_ISA_AVX; i <= (int)isa_max && (flags & needed[i]) == needed[i]; i++) {
        isa = (enum wpk_isa)i;
    }
    device->cpu.isa = isa;
    device->cpu.bf16 = isa == WPK_ISA_AVX512 && (flags & zen4) == zen4;
    device->cpu.vnni = isa == WPK_ISA_AVX512 && (flags & WPK_CPU_AVX512VNNI) != 0;
    device->cpu.vector_bytes = isa_shape[isa].vector_bytes;
    device->cpu.vector_registers = isa_shape[isa].vector_registers;
}

void wpk_device_make_plain(struct wpk_device *device)
{
    if (wpk_device_is_cuda(device)) {
        device->cuda.capability = WPK_DEVICE_CUDA_LEAST;
        return;
    }
    wpk_device_claim(0, WPK_ISA_SSE41, device);
}

/* F16C is not among the names that every compiler's __builtin_cpu_supports knows. It works on
 * AVX registers: where the system saves those, CPUID's bit is enough. */
static bool cpu_has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

static uint64_t probe_flags(void)
{
    uint64_t flags = cpu_has_f16c() ? WPK_CPU_F16C : 0;

    __builtin_cpu_init();
#define ADD_FLAG(name, text) flags |= __builtin_cpu_supports(text) ? (uint64_t)WPK_CPU_##name : 0;
    WPK_CPU_FLAG_LIST(ADD_FLAG)
#undef ADD_FLAG
    return flags;
}

/* Kernels spell the model with runs of blanks; keys want one spelling. */
static void copy_words(const char *text, char *out, size_t size)
{
    size_t length = 0;

    for (const char *p = text; *p != '\0' && *p != '\n' && length + 1 < size; p++) {
        bool blank = *p == ' ' || *p == '\t';
        if (!blank || (length > 0 && out[length - 1] != ' ')) {
            out[length++] = blank ? ' ' : *p;
        }
    }
    while (length > 0 && out[length - 1] == ' ') {
        length--;
    }
    out[length] = '\0';
}

/* The words behind the colon of a line "key : words", or NULL. */
static const char *value_of(const char *line, const char *key)
{
    const char *colon = strchr(line, ':');
    size_t length = strlen(key);
    bool named = strncmp(line, key, length) == 0 && strspn(line + length, " \t:") > 0;
    return named && colon != NULL ? colon + 1 : NULL;
}

/* A hypervisor may leave the number out of the brand: the family then tells the generation. */
static void probe_model(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    long family = 0;
    bool found = false;

    copy_words("unknown", out, size);
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        const char *number = value_of(line, "cpu family"), *brand = value_of(line, "model name");
        family = number == NULL ? family : strtol(number, NULL, 10);
        if (brand != NULL) {
            copy_words(brand, out, size);
            found = true;
        }
    }
    if (found && family > 0 && strpbrk(out, "0123456789") == NULL) {
        size_t used = strlen(out);
        snprintf(out + used, size - used, " family %ld", family);
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* Containers hide caches at times; tile sizes then come from what every x86-64 has. */
static void probe_caches(int cpu, struct wpk_device *device)
{
    device->cpu.l1_bytes = wpk_caches_size(cpu, 1);
    device->cpu.l2_bytes = wpk_caches_size(cpu, 2);
    device->cpu.l3_bytes = wpk_caches_size(cpu, 3);
    if (device->cpu.l1_bytes == 0) {
        device->cpu.l1_bytes = 32 << 10;
    }
    if (device->cpu.l2_bytes == 0) {
        device->cpu.l2_bytes = 256 << 10;
    }
    if (device->cpu.l3_bytes == 0) {
        device->cpu.l3_bytes = device->cpu.l2_bytes;
    }
}

wpk_err wpk_device_probe(enum wpk_isa isa_max, struct wpk_device *out)
{
    struct wpk_device device = {.kind = "cpu"};
    char host[64] = "";
    cpu_set_t cpus;
    size_t first = 0;

    WPK_ASSERT(isa_max < WPK_ISA_COUNT);
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 ||
        gethostname(host, sizeof(host) - 1) != 0) {
        return WPK_ESYSTEM;
    }
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &cpus)) {
        first++;
    }
    wpk_device_claim(probe_flags(), isa_max, &device);
    device.core_count = CPU_COUNT(&cpus);
    probe_model(device.model, sizeof(device.model));
    probe_caches((int)first, &device);
    snprintf(device.instance, sizeof(device.instance), "%s/cpu%d", host, 0);
    *out = device;
    return WPK_OK;
}

void wpk_device_class(const struct wpk_device *device, char *out, size_t size)
{
    if (wpk_device_is_cuda(device)) {
        wpk_device_cuda_class(device, out, size);
        return;
    }
    snprintf(out, size, "%s/%s/%s%s%s", device->kind, device->model, wpk_isa_name(device->cpu.isa),
             device->cpu.bf16 ? "+bf16" : "", device->cpu.vnni ? "+vnni" : "");
}

static wpk_err cpu_of_class(const char *text, struct wpk_device *out)
{
    struct wpk_device device = {0};
    char isa[16];
    char again[2 * WPK_DEVICE_TEXT_MAX];
    const char *model = strchr(text, '/');
    const char *features = strrchr(text, '/');
    if (model == NULL || features == model || (size_t)(model - text) >= sizeof(device.kind) ||
        (size_t)(features - model) > sizeof(device.model)) {
        return WPK_EPARSE;
    }
    memcpy(device.kind, text, (size_t)(model - text));
    memcpy(device.model, model + 1, (size_t)(features - model) - 1);
    features++;
    snprintf(isa, sizeof(isa), "%.*s", (int)strcspn(features, "+"), features);
    if (wpk_isa_parse(isa, &device.cpu.isa) != WPK_OK) {
        return WPK_EPARSE;
    }
    device.cpu.bf16 = strstr(features, "+bf16") != NULL;
    device.cpu.vnni = strstr(features, "+vnni") != NULL;
    device.cpu.vector_bytes = isa_shape[device.cpu.isa].vector_bytes;
    device.cpu.vector_registers = isa_shape[device.cpu.isa].vector_registers;
    wpk_device_class(&device, again, sizeof(again));
    if (strcmp(again, text) != 0) {
        return WPK_EPARSE; /* a suffix that is not known, or in another order */
    }
    *out = device;
    return WPK_OK;
}

wpk_err wpk_device_of_class(const char *text, struct wpk_device *out)
{
    bool cuda = strncmp(text, WPK_DEVICE_CUDA "/", sizeof(WPK_DEVICE_CUDA)) == 0;
    return cuda ? wpk_device_cuda_of_class(text, out) : cpu_of_class(text, out);
}

void wpk_device_put(struct wpk_json_writer *w, const char *key, const struct wpk_device *device)
{
    wpk_json_begin_object(w, key);
    if (wpk_device_is_cuda(device)) {
        wpk_device_cuda_put(w, device);
        wpk_json_end(w);
        return;
    }
    wpk_json_put_text(w, "kind", device->kind);
    wpk_json_put_text(w, "model", device->model);
    wpk_json_put_text(w, "isa", wpk_isa_name(device->cpu.isa));
    wpk_json_put_bool(w, "bf16", device->cpu.bf16 != 0);
    wpk_json_put_bool(w, "vnni", device->cpu.vnni != 0);
    wpk_json_put_int(w, "core_count", device->core_count);
    wpk_json_put_int(w, "l1_bytes", device->cpu.l1_bytes);
    wpk_json_put_int(w, "l2_bytes", device->cpu.l2_bytes);
    wpk_json_put_int(w, "l3_bytes", device->cpu.l3_bytes);
    wpk_json_put_int(w, "vector_bytes", device->cpu.vector_bytes);
    wpk_json_put_int(w, "vector_registers", device->cpu.vector_registers);
    wpk_json_put_real(w, "peak_flops_per_s", device->peak_flops_per_s);
    wpk_json_put_real(w, "peak_bytes_per_s", device->peak_bytes_per_s);
    wpk_json_put_text(w, "instance", device->instance);
    wpk_json_end(w);
}

/* Loops over lanes end for the shapes of the table only. */
static void get_shape(struct wpk_json_reader *r, struct wpk_device *out)
{
    out->cpu.vector_bytes = (int)wpk_json_get_int(r, "vector_bytes", 1, 4096);
    out->cpu.vector_registers = (int)wpk_json_get_int(r, "vector_registers", 1, 4096);
    if (out->cpu.vector_bytes != isa_shape[out->cpu.isa].vector_bytes) {
        wpk_json_fail(r, "vector_bytes", WPK_EINVAL, "vectors of %s have %d bytes",
                      isa_names[out->cpu.isa], isa_shape[out->cpu.isa].vector_bytes);
    }
    if (out->cpu.vector_registers != isa_shape[out->cpu.isa].vector_registers) {
        wpk_json_fail(r, "vector_registers", WPK_EINVAL, "%s has %d vector registers",
                      isa_names[out->cpu.isa], isa_shape[out->cpu.isa].vector_registers);
    }
}

void wpk_device_get(struct wpk_json_reader *r, const char *key, struct wpk_device *out)
{
    wpk_json_enter(r, key);
    wpk_json_get_copy(r, "kind", out->kind, sizeof(out->kind));
    if (wpk_json_status(r) == WPK_OK && wpk_device_is_cuda(out)) {
        wpk_device_cuda_get(r, out);
        wpk_json_leave(r);
        return;
    }
    WPK_JSON_ALLOW(r, "kind", "model", "isa", "bf16", "vnni", "core_count", "l1_bytes", "l2_bytes",
                   "l3_bytes", "vector_bytes", "vector_registers", "peak_flops_per_s",
                   "peak_bytes_per_s", "instance");
    out->cuda = (struct wpk_device_cuda){0};
    wpk_json_get_label(r, "model", out->model, sizeof(out->model));
    out->cpu.isa = (enum wpk_isa)wpk_json_get_choice(r, "isa", isa_names, WPK_ISA_COUNT);
    out->cpu.bf16 = wpk_json_get_bool(r, "bf16");
    out->cpu.vnni = wpk_json_get_bool(r, "vnni");
    out->core_count = (int)wpk_json_get_int(r, "core_count", 1, 1 << 16);
    out->cpu.l1_bytes = wpk_json_get_int(r, "l1_bytes", 1, BYTES_MAX);
    out->cpu.l2_bytes = wpk_json_get_int(r, "l2_bytes", 1, BYTES_MAX);
    out->cpu.l3_bytes = wpk_json_get_int(r, "l3_bytes", 1, BYTES_MAX);
    get_shape(r, out);
    out->peak_flops_per_s = wpk_json_get_real(r, "peak_flops_per_s", 0, RATE_MAX);
    out->peak_bytes_per_s = wpk_json_get_real(r, "peak_bytes_per_s", 0, RATE_MAX);
    wpk_json_get_label(r, "instance", out->instance, sizeof(out->instance));
    wpk_json_leave(r);
}
