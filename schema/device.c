/* SPDX-License-Identifier: Apache-2.0 */
/* Probing the machine: the processor, sysfs and the scheduler.
 *
 * An instruction set counts only if the operating system saves its registers, for which the
 * compiler's __builtin_cpu_supports reads XGETBV. */
#include "schema/device.h"

#include "common/machine.h"
#include "common/quota.h"
#include "schema/fields.h"

#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((int64_t)1 << 50)
#define AVX_VNNI_BIT (1U << 4) /* CPUID 7.1, EAX */
#define CAPABILITY_MIN 50
#define CAPABILITY_MAX 999
#define RATE_MAX 1e18 /* peaks: beyond any machine, and far inside a double */

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
        device->cuda.capability = CAPABILITY_MIN;
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
    char host[64] = "", group[WPK_QUOTA_PATH_MAX];
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
    wpk_quota_find("", group);
    device.core_count = wpk_quota_cpus(group, CPU_COUNT(&cpus));
    probe_model(device.model, sizeof(device.model));
    probe_caches((int)first, &device);
    snprintf(device.instance, sizeof(device.instance), "%s/cpu%d", host, 0);
    *out = device;
    return WPK_OK;
}

static void print_cuda_class(const struct wpk_device *device, char *out, size_t size)
{
    snprintf(out, size, WPK_DEVICE_CUDA "/%s/sm_%d/%d", device->model, device->cuda.capability,
             device->cuda.sm_count);
}

void wpk_device_class(const struct wpk_device *device, char *out, size_t size)
{
    if (wpk_device_is_cuda(device)) {
        print_cuda_class(device, out, size);
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

static void claim_flags(struct wpk_json_reader *r WPK_UNUSED, void *object)
{
    struct wpk_device *device = object;
    wpk_device_claim(device->cpu.flags, device);
}

static void take_one_core(struct wpk_json_reader *r WPK_UNUSED, void *object)
{
    struct wpk_device *device = object;
    device->core_count = 1;
}

static const struct wpk_field cpu_fields[] = {
    {WPK_FIELD(COPY, "kind", device, kind)},
    {WPK_FIELD(LABEL, "model", device, model)},
    {WPK_FIELD_CUSTOM("flags", device, cpu.flags, wpk_cpu_flags_put, wpk_cpu_flags_get)},
    {WPK_FIELD_CHECK(claim_flags)},
    {WPK_FIELD_INT("core_count", device, core_count, 1, 1 << 16)},
    {WPK_FIELD_INT("l1_bytes", device, cpu.l1_bytes, 1, BYTES_MAX)},
    {WPK_FIELD_INT("l2_bytes", device, cpu.l2_bytes, 1, BYTES_MAX)},
    {WPK_FIELD_INT("l3_bytes", device, cpu.l3_bytes, 1, BYTES_MAX)},
    {WPK_FIELD_REAL("peak_flops_per_s", device, peak_flops_per_s, 0, RATE_MAX)},
    {WPK_FIELD_REAL("peak_bytes_per_s", device, peak_bytes_per_s, 0, RATE_MAX)},
    {WPK_FIELD(LABEL, "instance", device, instance)},
    {WPK_FIELD_END},
};

static const struct wpk_field cuda_fields[] = {
    {WPK_FIELD(COPY, "kind", device, kind)},
    {WPK_FIELD(LABEL, "model", device, model)},
    {WPK_FIELD_INT("capability", device, cuda.capability, CAPABILITY_MIN, CAPABILITY_MAX)},
    {WPK_FIELD_INT("sm_count", device, cuda.sm_count, 1, WPK_DEVICE_SM_MAX)},
    {WPK_FIELD_COUNT("memory_bytes", device, cuda.memory_bytes)},
    {WPK_FIELD_INT("driver", device, cuda.driver, 0, INT32_MAX)},
    {WPK_FIELD_CHECK(take_one_core)},
    {WPK_FIELD(LABEL, "instance", device, instance)},
    {WPK_FIELD_END},
};

void wpk_device_put(struct wpk_json_writer *w, const char *key, const void *device)
{
    wpk_fields_put(w, key, wpk_device_is_cuda(device) ? cuda_fields : cpu_fields, device);
}

void wpk_device_get(struct wpk_json_reader *r, const char *key, void *device)
{
    struct wpk_device *out = device;
    const struct wpk_fields_in in = {.r = r};
    *out = (struct wpk_device){.core_count = 0};
    wpk_json_enter(r, key);
    wpk_json_get_copy(r, "kind", out->kind, sizeof(out->kind));
    wpk_fields_get_here(&in, wpk_device_is_cuda(out) ? cuda_fields : cpu_fields, out);
    wpk_json_leave(r);
}

/* A GPU's class has its multiprocessors: rules of the search read them, and one model is sold with
 * different numbers of them. */

bool wpk_device_is_cuda(const struct wpk_device *device)
{
    return strcmp(device->kind, WPK_DEVICE_CUDA) == 0;
}

bool wpk_device_is_emulated(const struct wpk_device *device)
{
    return wpk_device_is_cuda(device) && strcmp(device->model, WPK_DEVICE_EMULATED) == 0;
}

bool wpk_device_class_is_emulated(const char *text)
{
    return wpk_begins(text, WPK_DEVICE_CUDA "/" WPK_DEVICE_EMULATED "/");
}

/* The number of an architecture, up to `end`; 0: it is none. */
static int read_architecture(const char *text, const char *end)
{
    static const char head[] = "sm_";
    char *rest = NULL;
    bool begins = wpk_begins(text, head) && text[strlen(head)] >= '1' && text[strlen(head)] <= '9';
    long number = begins ? strtol(text + strlen(head), &rest, 10) : 0;
    return rest == end && number >= CAPABILITY_MIN && number <= CAPABILITY_MAX ? (int)number : 0;
}

wpk_err wpk_device_emulate(const char *architecture, int sm_count, struct wpk_device *out,
                           struct wpk_diag *diag)
{
    struct wpk_device device = {
        .kind = WPK_DEVICE_CUDA, .model = WPK_DEVICE_EMULATED, .core_count = 1};
    char host[64] = "";
    device.cuda.capability = read_architecture(architecture, architecture + strlen(architecture));
    device.cuda.sm_count = sm_count;
    if (device.cuda.capability == 0) {
        return wpk_fail(diag, WPK_EINVAL, "'%.24s' is no architecture of a GPU, such as sm_90",
                        architecture);
    }
    if (sm_count < 1 || sm_count > WPK_DEVICE_SM_MAX) {
        return wpk_fail(diag, WPK_ERANGE, "a GPU has 1 to %d multiprocessors", WPK_DEVICE_SM_MAX);
    }
    if (gethostname(host, sizeof(host) - 1) != 0) {
        return WPK_ESYSTEM;
    }
    snprintf(device.instance, sizeof(device.instance), "%s/" WPK_DEVICE_EMULATED, host);
    *out = device;
    return WPK_OK;
}

static wpk_err cuda_of_class(const char *text, struct wpk_device *out)
{
    static const char head[] = WPK_DEVICE_CUDA "/";
    struct wpk_device device = {.kind = WPK_DEVICE_CUDA, .core_count = 1};
    char again[2 * WPK_DEVICE_TEXT_MAX];
    const char *last = strrchr(text, '/'), *model = text + strlen(head);
    const char *architecture = last;
    if (!wpk_begins(text, head) || last <= model) {
        return WPK_EPARSE;
    }
    while (architecture > model && architecture[-1] != '/') {
        architecture--;
    }
    size_t length = architecture <= model ? 0 : (size_t)(architecture - 1 - model);
    if (length == 0 || length >= sizeof(device.model)) {
        return WPK_EPARSE;
    }
    memcpy(device.model, model, length);
    device.cuda.capability = read_architecture(architecture, last);
    long count = strtol(last + 1, NULL, 10);
    device.cuda.sm_count = count >= 1 && count <= WPK_DEVICE_SM_MAX ? (int)count : 0;
    print_cuda_class(&device, again, sizeof(again));
    if (device.cuda.capability == 0 || device.cuda.sm_count == 0 || strcmp(again, text) != 0) {
        return WPK_EPARSE;
    }
    *out = device;
    return WPK_OK;
}

wpk_err wpk_device_of_class(const char *text, struct wpk_device *out)
{
    return wpk_begins(text, WPK_DEVICE_CUDA "/") ? cuda_of_class(text, out)
                                                 : cpu_of_class(text, out);
}
