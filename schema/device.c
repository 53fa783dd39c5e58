/* SPDX-License-Identifier: Apache-2.0 */
/* Probing the machine: the processor, sysfs and the scheduler.
 *
 * An instruction set counts only if the operating system saves its registers, for which the
 * compiler's __builtin_cpu_supports reads XGETBV. */
#include "schema/device.h"

#include "common/json.h"
#include "common/machine.h"

#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((int64_t)1 << 50)
#define AVX_VNNI_BIT (1U << 4) /* CPUID 7.1, EAX */
#define RATE_MAX 1e18          /* peaks: beyond any machine, and far inside a double */

void wpk_device_claim(wpk_cpu_flags flags, struct wpk_device *device)
{
    enum wpk_cpu_level level = wpk_cpu_flags_level(flags);
    device->cpu.flags = flags;
    device->cpu.vector_bytes = wpk_cpu_level_vector_bytes(level);
    device->cpu.vector_registers = wpk_cpu_level_vector_registers(level);
}

void wpk_device_make_plain(struct wpk_device *device)
{
    if (wpk_device_is_cuda(device)) {
        device->cuda.capability = WPK_DEVICE_CUDA_LEAST;
        return;
    }
    wpk_device_claim(WPK_CPU_SET_SSE41, device);
}

/* Flags that not every compiler's __builtin_cpu_supports knows. They work on AVX registers: where
 * the system saves those, CPUID's bit is enough. */
static wpk_cpu_flags probe_cpuid(void)
{
    unsigned a = 0, b, c = 0, d;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    bool vnni = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & AVX_VNNI_BIT) != 0;

    return (f16c ? (wpk_cpu_flags)WPK_CPU_F16C : 0) | (vnni ? (wpk_cpu_flags)WPK_CPU_AVX_VNNI : 0);
}

static wpk_cpu_flags probe_flags(void)
{
    wpk_cpu_flags flags = 0;

    __builtin_cpu_init();
#define ADD_FLAG(suffix, text, option)                                                             \
    flags |= __builtin_cpu_supports(option) ? (wpk_cpu_flags)WPK_CPU_##suffix : 0;
    WPK_CPU_X86_LIST(ADD_FLAG)
#undef ADD_FLAG
    return flags | ((flags & WPK_CPU_AVX) != 0 ? probe_cpuid() : 0);
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

wpk_err wpk_device_probe(wpk_cpu_flags flags_max, struct wpk_device *out)
{
    struct wpk_device device = {.kind = "cpu"};
    char host[64] = "";
    cpu_set_t cpus;
    size_t first = 0;

    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 ||
        gethostname(host, sizeof(host) - 1) != 0) {
        return WPK_ESYSTEM;
    }
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &cpus)) {
        first++;
    }
    wpk_device_claim(probe_flags() & flags_max, &device);
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
    char level[WPK_CPU_FLAGS_TEXT_MAX];
    wpk_cpu_flags_print(wpk_cpu_level_flags(wpk_cpu_flags_level(device->cpu.flags)), level);
    snprintf(out, size, "%s/%s/%s", device->kind, device->model, level);
}

static wpk_err cpu_of_class(const char *text, struct wpk_device *out)
{
    struct wpk_device device = {0};
    wpk_cpu_flags flags;
    char again[2 * WPK_DEVICE_TEXT_MAX];
    const char *model = strchr(text, '/');
    const char *features = strrchr(text, '/');
    if (model == NULL || features == model || (size_t)(model - text) >= sizeof(device.kind) ||
        (size_t)(features - model) > sizeof(device.model)) {
        return WPK_EPARSE;
    }
    memcpy(device.kind, text, (size_t)(model - text));
    memcpy(device.model, model + 1, (size_t)(features - model) - 1);
    if (wpk_cpu_flags_parse(features + 1, &flags) != WPK_OK) {
        return WPK_EPARSE;
    }
    wpk_device_claim(flags, &device);
    wpk_device_class(&device, again, sizeof(again));
    if (strcmp(again, text) != 0) {
        return WPK_EPARSE; /* flags that split no history */
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
    wpk_cpu_flags_put(w, "flags", device->cpu.flags);
    wpk_json_put_int(w, "core_count", device->core_count);
    wpk_json_put_int(w, "l1_bytes", device->cpu.l1_bytes);
    wpk_json_put_int(w, "l2_bytes", device->cpu.l2_bytes);
    wpk_json_put_int(w, "l3_bytes", device->cpu.l3_bytes);
    wpk_json_put_real(w, "peak_flops_per_s", device->peak_flops_per_s);
    wpk_json_put_real(w, "peak_bytes_per_s", device->peak_bytes_per_s);
    wpk_json_put_text(w, "instance", device->instance);
    wpk_json_end(w);
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
    WPK_JSON_ALLOW(r, "kind", "model", "flags", "core_count", "l1_bytes", "l2_bytes", "l3_bytes",
                   "peak_flops_per_s", "peak_bytes_per_s", "instance");
    out->cuda = (struct wpk_device_cuda){0};
    wpk_json_get_label(r, "model", out->model, sizeof(out->model));
    wpk_device_claim(wpk_cpu_flags_get(r, "flags"), out);
    out->core_count = (int)wpk_json_get_int(r, "core_count", 1, 1 << 16);
    out->cpu.l1_bytes = wpk_json_get_int(r, "l1_bytes", 1, BYTES_MAX);
    out->cpu.l2_bytes = wpk_json_get_int(r, "l2_bytes", 1, BYTES_MAX);
    out->cpu.l3_bytes = wpk_json_get_int(r, "l3_bytes", 1, BYTES_MAX);
    out->peak_flops_per_s = wpk_json_get_real(r, "peak_flops_per_s", 0, RATE_MAX);
    out->peak_bytes_per_s = wpk_json_get_real(r, "peak_bytes_per_s", 0, RATE_MAX);
    wpk_json_get_label(r, "instance", out->instance, sizeof(out->instance));
    wpk_json_leave(r);
}
